//! A control plane with everything that is shipped, hosts that are held off, and people.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dogwatch_testbed::{ControlPlane, fixtures, shared_control_plane};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub const KEY: &str = "reboot.metal3.io/machine-remediation";

pub fn command(kubeconfig: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
    command
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("DOGWATCH_PROBE_LISTEN", "off")
        .args(args)
        .stdin(Stdio::null());
    command
}

pub fn dogwatch(kubeconfig: &Path, args: &[&str]) -> (i32, String, String) {
    let output = command(kubeconfig, args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output.status.code().unwrap(), stdout, stderr)
}

pub async fn run(plane: &ControlPlane, words: &[&str]) -> String {
    plane.run_kubectl(words, "").await.unwrap()
}

pub async fn make(plane: &ControlPlane, object: &Value) -> Value {
    let words = ["create", "-f", "-", "-o", "json"];
    let made = plane.run_kubectl(&words, &object.to_string()).await;
    serde_json::from_str(&made.unwrap()).unwrap()
}

async fn status(plane: &ControlPlane, what: &[&str], status: &Value) {
    let status = json!({ "status": status }).to_string();
    let patch = ["--subresource=status", "--type=merge", "-p", &status];
    run(plane, &[&["patch"], what, &patch].concat()).await;
}

static INSTALLED: OnceCell<()> = OnceCell::const_new();

/// Installs everything that is shipped, OpenShift's Machines, and two people.
pub async fn installed() -> &'static ControlPlane {
    let plane = shared_control_plane().await;
    INSTALLED.get_or_init(async || install(plane).await).await;
    plane
}

const MANIFESTS: [&str; 4] = [
    "manifests",
    "--image=none",
    "--controller-image=none",
    "--without-policies",
];

async fn install(plane: &ControlPlane) {
    let mut manifests = Vec::new();
    for words in [&MANIFESTS[..], &["crds"], &["crds", "--hosts"]] {
        let (code, yaml, errors) = dogwatch(plane.admin_kubeconfig(), words);
        assert_eq!(code, 0, "{errors}");
        manifests.push(yaml);
    }
    // Not the first: kubectl 1.32 reads everything as JSON if the first document is JSON.
    manifests.push(fixtures::openshift_machines().to_string());
    let kinds = [
        "baremetalhosts.metal3.io",
        "machines.machine.openshift.io",
        "powerremediations.dogwatch.dev",
    ];
    let manifests = manifests.join("\n---\n");
    plane.install_manifests(&manifests, &kinds).await.unwrap();
    let policies =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/policies/remediation.yaml");
    run(plane, &["apply", "-f", policies.to_str().unwrap()]).await;
    run(plane, &["create", "namespace", "machines"]).await;
}

/// A service account with these ClusterRoles, the viewer's Role, and the right to read Events of
/// the hosts.
pub async fn somebody(plane: &ControlPlane, name: &str, roles: &[&str]) -> PathBuf {
    run(plane, &["create", "serviceaccount", name]).await;
    let account = format!("--serviceaccount=default:{name}");
    for role in roles {
        let (binding, role) = (format!("{name}-{role}"), format!("--clusterrole={role}"));
        run(
            plane,
            &["create", "clusterrolebinding", &binding, &role, &account],
        )
        .await;
    }
    let viewer = ["--role=dogwatch-viewer", "--namespace=dogwatch", &account];
    run(
        plane,
        &[&["create", "rolebinding", name][..], &viewer].concat(),
    )
    .await;
    let events = ["--verb=create", "--resource=events", "--namespace=machines"];
    run(plane, &[&["create", "role", name][..], &events].concat()).await;
    let role = format!("--role={name}");
    let binding = [role.as_str(), "--namespace=machines", &account];
    run(
        plane,
        &[&["create", "rolebinding", name][..], &binding].concat(),
    )
    .await;
    plane.kubeconfig_of("default", name).await.unwrap()
}

/// Machine `NAME` of Node `NAME` is marked, and host `machines/NAME` carries its key; its BMC is
/// dead.
pub async fn fenced(plane: &ControlPlane, name: &str) -> String {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    make(plane, &node).await;
    let machine = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": name, "namespace": "machines", "annotations": {
            "metal3.io/BareMetalHost": format!("machines/{name}"), "host.metal3.io/external-remediation": "" } },
        "spec": {} });
    let machine = make(plane, &machine).await;
    let uid = machine["metadata"]["uid"].as_str().unwrap().to_owned();
    let of_machine = ["machines.machine.openshift.io", name, "-n", "machines"];
    let carries = json!({ "nodeRef": { "kind": "Node", "name": name } });
    status(plane, &of_machine, &carries).await;
    let key = json!({ "mode": "hard", "machineUID": uid }).to_string();
    let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name, "namespace": "machines",
            "annotations": { KEY: key, "dogwatch.dev/remediation": record(name, &uid, &[]) } },
        "spec": { "online": true, "consumerRef": { "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine", "namespace": "machines", "name": name },
            "bmc": { "address": format!("redfish://{name}.bmc/redfish/v1/Systems/1"), "credentialsName": "bmc" } } });
    make(plane, &host).await;
    power(plane, name, "Unknown").await;
    uid
}

pub async fn power(plane: &ControlPlane, name: &str, state: &str) {
    let host = ["baremetalhosts.metal3.io", name, "-n", "machines"];
    let now = jiff::Timestamp::now();
    let power = json!({ "provisioning": { "state": "provisioned", "ID": "" },
        "power": { "state": state, "observedAt": now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string() } });
    status(plane, &host, &power).await;
}

pub fn record(name: &str, uid: &str, more: &[&str]) -> String {
    let steps = [&["Requested", "KeyAdded"][..], more].concat();
    let step = |(second, step): (usize, &&str)| json!({ "step": step, "at": format!("2026-01-01T00:00:0{second}Z") });
    let steps: Vec<Value> = steps.iter().enumerate().map(step).collect();
    json!({ "subject": format!("machine/machines/{name}"), "uid": uid, "node": name,
        "attempt": 1, "steps": steps })
    .to_string()
}

pub async fn annotate(plane: &ControlPlane, name: &str, text: &str) -> Result<String, String> {
    let host = [
        "annotate",
        "--overwrite",
        "-n",
        "machines",
        "baremetalhosts.metal3.io",
    ];
    let words = [&host[..], &[name, text]].concat();
    let said = plane.run_kubectl(&words, "").await;
    said.map_err(|error| format!("{error:?}"))
}

/// The annotations of host `machines/NAME`.
pub async fn annotations(plane: &ControlPlane, name: &str) -> Value {
    let get = ["get", "bmh", name, "-n", "machines", "-o", "json"];
    let host: Value = serde_json::from_str(&run(plane, &get).await).unwrap();
    host["metadata"]["annotations"].clone()
}
