//! What the benches of the controller share.
#![allow(dead_code, reason = "each bench uses its part")]

use std::path::Path;
use std::process::Stdio;

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// Installs Dogwatch's CRDs and its namespace.
pub async fn install_manifests(plane: &ControlPlane, program: &Path) {
    let words = [
        "manifests",
        "--ignore-cluster",
        "--image=none",
        "--controller-image=none",
        "--without-policies",
    ];
    let output = Command::new(program).args(words).output().await;
    let manifests = String::from_utf8(output.unwrap().stdout).unwrap();
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.run_kubectl(&apply, &manifests).await.unwrap();
    let kinds = [
        "crd/nodereboots.dogwatch.dev",
        "crd/rebootpolicies.dogwatch.dev",
    ];
    let wait = ["wait", "--for=condition=established", "--timeout=60s"];
    let established = [&wait[..], &kinds[..]].concat();
    plane.run_kubectl(&established, "").await.unwrap();
}

/// A controller whose log is piped. It is killed on drop.
pub fn controller_command(program: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("DOGWATCH_PROBE_LISTEN", "off")
        // As the manifests have it.
        .env("MALLOC_ARENA_MAX", "1")
        .args(["controller", "--log-format=json", "--listen=127.0.0.1:0"])
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Creates many objects, a hundred at a time.
pub async fn create_objects(plane: &ControlPlane, objects: &[Value]) {
    for part in objects.chunks(100) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": part });
        let (create, list) = (["create", "-f", "-"], list.to_string());
        plane.run_kubectl(&create, &list).await.unwrap();
    }
}

/// The lines of the log of a process whose stderr is piped.
pub fn read_lines(child: &mut Child) -> Lines<BufReader<ChildStderr>> {
    BufReader::new(child.stderr.take().expect("it is piped")).lines()
}

/// Later lines are discarded, as for a pod whose log nobody reads.
pub fn drain_log(mut log: Lines<BufReader<ChildStderr>>) {
    tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
}

/// A line of the process' status, in MiB.
pub fn resident_mebibytes(child: &Child, field: &str) -> f64 {
    let id = child.id().expect("it runs");
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = value.unwrap().split_whitespace().next().unwrap();
    kibibytes.parse::<f64>().unwrap() / 1024.0
}
