//! A real node: a virtual machine with a kernel, systemd, containerd and a real kubelet runs the image of the coordinator, as the
//! DaemonSet of the chart. It is rebooted, power-cycled over IPMI, and remediated after its processors have stopped.
//!
//! Each test emulates a machine for minutes: `cargo xtask test --real-node` runs them, one after the other.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod stage;
#[path = "../support/mod.rs"]
mod support;
mod workload;

use dogwatch_testbed::real_node::{KUBELET_STARTS, NODE_NAME};
use serde_json::{Value, json};

use stage::{RealStage, has_condition};
use workload::Workload;

/// What the kernel prints as it reboots by itself.
const KERNEL_RESTARTS: &str = "reboot: Restarting system";

#[tokio::test]
#[ignore = "emulates a machine for minutes: cargo xtask test --real-node"]
async fn a_real_node_is_drained_as_its_budget_allows_rebooted_by_its_own_init_and_its_pod_comes_back_with_its_volume()
 {
    let stage = RealStage::start().await;
    let workload = Workload::start(&stage, 0).await;
    let (node, pod) = (stage.node().await, workload.pod(&stage).await);
    let process = stage.node_process();

    let reboot = stage.spawn_dogwatch(&["reboot", NODE_NAME, "--reason=new kernel", "--wait"]);
    stage.until_an_eviction_is_refused().await;
    let kept = workload.pod(&stage).await;
    assert_eq!(kept["metadata"]["uid"], pod["metadata"]["uid"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
    workload.allow_disruptions(&stage, 1).await;
    stage.succeed(reboot).await;

    assert_is_back(&stage, &node).await;
    let console = stage.console();
    assert_eq!(console.matches(KERNEL_RESTARTS).count(), 1, "{console}");
    assert_eq!(stage.node_process(), process, "its power was cut");
    assert_moved_with_volume(&stage, &workload, &node, &pod).await;
    stage.assert_nothing_was_forbidden().await;
}

#[tokio::test]
#[ignore = "emulates a machine for minutes: cargo xtask test --real-node"]
async fn a_real_node_is_drained_and_power_cycled_over_ipmi() {
    let stage = RealStage::start().await;
    stage.put_host().await;
    let workload = Workload::start(&stage, 1).await;
    let (node, pod) = (stage.node().await, workload.pod(&stage).await);
    let process = stage.node_process();

    let cycle = [
        "reboot",
        NODE_NAME,
        "--reason=a GPU fell off the bus",
        "--method=power-cycle",
        "--wait",
    ];
    let cycle = stage.spawn_dogwatch(&cycle);
    stage.succeed(cycle).await;

    assert_is_back(&stage, &node).await;
    let console = stage.console();
    assert!(!console.contains(KERNEL_RESTARTS), "{console}");
    assert_ne!(stage.node_process(), process, "its power was not cut");
    assert_moved_with_volume(&stage, &workload, &node, &pod).await;
    stage.assert_nothing_was_forbidden().await;
}

#[tokio::test]
#[ignore = "emulates a machine for minutes: cargo xtask test --real-node"]
async fn a_real_node_that_hangs_is_remediated_and_its_pod_runs_again() {
    let stage = RealStage::start().await;
    stage.put_host().await;
    let label = json!({ "metadata": { "labels": { "rack": "r1" } } });
    stage.patch_node(&label).await;
    let workload = Workload::start(&stage, 1).await;
    let node = stage.node().await;
    let process = stage.node_process();

    stage.stop_processors().await;
    stage
        .until("the node controller misses the node", async || {
            let node = stage.node().await;
            let unknown = has_condition(&node, "Ready", "Unknown");
            unknown.then_some(()).ok_or(node.to_string())
        })
        .await;
    assert_eq!(stage.node_process(), process, "it is still on");
    let remediation = stage.spawn_dogwatch(&["remediate", NODE_NAME, "--yes"]);
    stage.succeed(remediation).await;
    let back = stage.until_another_node_is_ready(&node).await;

    assert_ne!(boot_id(&back), boot_id(&node));
    assert_eq!(
        back["status"]["nodeInfo"]["systemUUID"],
        node["status"]["nodeInfo"]["systemUUID"]
    );
    let console = stage.console();
    assert_eq!(console.matches(KUBELET_STARTS).count(), 2, "{console}");
    assert_ne!(stage.node_process(), process, "its power was not cut");
    // It is the same pod if the machine was back before the garbage collector of pods missed its Node.
    workload.until_ready(&stage).await;
    let boots = workload.read_volume(&stage).await;
    assert_eq!(boots, [boot_id(&node), boot_id(&back)]);
    stage.assert_nothing_was_forbidden().await;
}

/// The same Node as before, in another boot and in service.
async fn assert_is_back(stage: &RealStage, before: &Value) {
    let back = stage.node().await;
    assert_eq!(back["metadata"]["uid"], before["metadata"]["uid"]);
    assert_ne!(boot_id(&back), boot_id(before));
    assert!(back["spec"]["unschedulable"].is_null(), "{back}");
}

/// Another pod than before runs in the new boot, and its volume has what both have written.
async fn assert_moved_with_volume(
    stage: &RealStage,
    workload: &Workload,
    node: &Value,
    pod: &Value,
) {
    let moved = workload.until_ready(stage).await;
    assert_ne!(moved["metadata"]["uid"], pod["metadata"]["uid"]);
    let boots = workload.read_volume(stage).await;
    assert_eq!(boots, [boot_id(node), boot_id(&stage.node().await)]);
}

fn boot_id(node: &Value) -> String {
    let boot = &node["status"]["nodeInfo"]["bootID"];
    boot.as_str().unwrap().to_owned()
}
