//! The commands that docs/install.md gives for the removal, as they are written there.

use std::os::unix::fs::symlink;
use std::process::Output;
use std::time::Duration;

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::{Controller, eventually, get};

const INSTALL: &str = include_str!("../../../../docs/install.md");
/// Longer than any command takes on a slow machine; one that waits for a finalizer takes for ever.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(5);
const FOLLOWS_STATUS: &str = "dogwatch status --watch";
/// What the page says that one waits for.
const NOTHING_UNDER_WAY: &str = "No reboot is under way, and none waits.";

/// The commands of the section's first block.
fn documented_commands() -> Vec<String> {
    let (_, section) = INSTALL.split_once("\n## Update, and take off\n").unwrap();
    assert!(section.contains(NOTHING_UNDER_WAY), "the page says when");
    let (_, block) = section.split_once("```console\n$ ").unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    block.split("\n$ ").map(str::to_owned).collect()
}

async fn run_command(plane: &ControlPlane, folder: &TempDir, command: &str) -> String {
    let programs = folder.path().join("bin");
    let path = std::env::var("PATH").unwrap_or_default();
    let shell = Command::new("bash")
        .args(["-c", command])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("HOME", folder.path())
        .env("KUBECONFIG", plane.admin_kubeconfig())
        .kill_on_drop(true)
        .output();
    let ended = timeout(COMMAND_TIMEOUT, shell).await;
    let output: Output = ended
        .unwrap_or_else(|_| panic!("hangs: {command}"))
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A control plane with Dogwatch installed, and with what finishes deletions.
async fn installed_plane(folder: &TempDir) -> ControlPlane {
    let finishers = ["garbage-collector-controller", "namespace-controller"];
    let builder = ControlPlane::builder().with_controllers(finishers);
    let plane = builder.start().await.unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_dogwatch"), programs.join("dogwatch")).unwrap();
    symlink(plane.kubectl_path(), programs.join("kubectl")).unwrap();
    let install = "dogwatch manifests --image here/c:1 --controller-image here/d:1 | kubectl apply --server-side -f -";
    run_command(&plane, folder, install).await;
    let kinds = "kubectl wait --for=condition=established --timeout=120s crd/nodereboots.dogwatch.dev crd/rebootpolicies.dogwatch.dev";
    run_command(&plane, folder, kinds).await;
    plane.wait_until_rights_are_in_force().await.unwrap();
    plane
}

/// A ready Node that a NodeReboot asks, and that has marks of an earlier reboot.
async fn ask_node(plane: &ControlPlane, folder: &TempDir) {
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1",
        "labels": { "dogwatch.dev/reboot": "waiting" },
        "annotations": { "dogwatch.dev/last-reboot": "{}", "dogwatch.dev/scheduled": "{}" } } });
    let create = ["create", "-f", "-"];
    plane.run_kubectl(&create, &node.to_string()).await.unwrap();
    let ready =
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }).to_string();
    let patch = [
        "patch",
        "node",
        "n1",
        "--subresource=status",
        "--type=merge",
        "-p",
    ];
    let words = [&patch[..], &[&ready]].concat();
    plane.run_kubectl(&words, "").await.unwrap();
    run_command(plane, folder, "dogwatch reboot n1 --reason kernel").await;
    eventually(|| async {
        let list = get(plane, &["nodereboots"]).await;
        let node = get(plane, &["node", "n1"]).await;
        let is_asked = node["metadata"]["annotations"]["dogwatch.dev/reboot-requested"].is_string();
        let has_finalizer =
            list["items"][0]["metadata"]["finalizers"][0] == "dogwatch.dev/node-reboot";
        (is_asked && has_finalizer)
            .then_some(())
            .ok_or_else(|| format!("{list} {node}"))
    })
    .await;
}

fn dogwatch_keys(node: &Value) -> Vec<String> {
    let lists = ["labels", "annotations"].map(|list| node["metadata"][list].as_object());
    let keys = lists.into_iter().flatten().flat_map(|list| list.keys());
    keys.filter(|key| key.contains("dogwatch.dev/"))
        .cloned()
        .collect()
}

#[tokio::test]
async fn the_documented_removal_ends_and_leaves_no_request_for_a_later_installation() {
    let folder = TempDir::new().unwrap();
    let plane = installed_plane(&folder).await;
    let account = plane.kubeconfig_of("dogwatch", "dogwatch-controller").await;
    let controller = Controller::with(&account.unwrap(), &["--listen=off"]);
    ask_node(&plane, &folder).await;

    let commands = documented_commands();
    assert!(commands.len() > 8, "{commands:?}");
    for command in &commands {
        if command.starts_with(FOLLOWS_STATUS) {
            let status = run_command(&plane, &folder, "dogwatch status").await;
            assert!(status.starts_with(NOTHING_UNDER_WAY), "{status}");
        } else {
            run_command(&plane, &folder, command).await;
        }
    }
    drop(controller);
    let kinds = plane.run_kubectl(&["get", "crd", "-o", "name"], "").await;
    let kinds = kinds.unwrap();
    assert!(!kinds.contains("dogwatch.dev"), "{kinds}");
    let node = get(&plane, &["node", "n1"]).await;
    assert_eq!(dogwatch_keys(&node), [""; 0]);
}
