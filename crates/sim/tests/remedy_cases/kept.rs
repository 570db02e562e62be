//! Backups of deleted Nodes and who gets them, and requests for healthy Nodes.

use dogwatch_core::remediation::NodeBackup;
use dogwatch_k8s::remediation::RemediationClient;
use dogwatch_sim::bmc::BmcFaultKind;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::world::{KEY, World};
use super::{dress, has_condition, until_dressed};

const OLD: &str = "dogwatch.dev/node-backup";

/// The backup of another Node of this host that never came back.
fn stale() -> NodeBackup {
    NodeBackup {
        node: "gone".into(),
        uid: "uid-gone".into(),
        labels: [("rack".into(), "stale".into())].into(),
        ..NodeBackup::default()
    }
}

pub async fn what_is_kept_of_a_node_that_never_came_back_holds_up_no_later_remediation(
    world: &World,
) {
    let member = world.member("h0").await;
    let host = world.metal.read("h0").await;
    let client = RemediationClient::new(world.metal.client.clone(), world.home.clone());
    client.write_backup(&host, &stale(), None).await.unwrap();
    let _process = world.process_over("first", &[&member]).await;
    world.mark_machine("h0", Some("")).await;
    world.until_back(&member).await;
    let node = world.node("h0").await.unwrap();
    assert!(!node.labels().contains_key("rack"), "{:?}", node.labels());
    world.metal.time_passes().await;
    member.assert_cycled_once();
}

pub async fn nothing_that_somebody_writes_on_a_host_ends_up_on_a_node(world: &World) {
    let member = world.member("h0").await;
    let victim = world.member("victim").await;
    let node = world.node_name("victim");
    let forged = json!({ "node": node.as_str(), "uid": "x", "labels": { "rack": "forged" },
        "taints": [{ "key": "a", "effect": "NoExecute" }], "cordoned": true });
    let record = json!({ "subject": "machine/x/victim", "uid": "x", "node": node.as_str(),
        "nodeUID": "x", "attempt": 1, "steps": [] });
    let (forged, record) = (forged.to_string(), record.to_string());
    world.metal.annotate("h0", OLD, Some(&forged)).await;
    let name = "dogwatch.dev/remediation";
    world.metal.annotate("h0", name, Some(&record)).await;
    let _process = world.process_over("first", &[&member, &victim]).await;
    world
        .until("the forgery is gone", || async {
            let host = world.metal.read("h0").await;
            !host.annotations.contains_key(OLD)
        })
        .await;
    world.metal.time_passes().await;
    let node = world.node("victim").await.unwrap();
    let spec = node.spec.clone().unwrap_or_default();
    assert!(!node.labels().contains_key("rack"), "{:?}", node.labels());
    assert!(!spec.unschedulable.unwrap_or(false));
    assert!(spec.taints.iter().flatten().all(|taint| taint.key != "a"));
    assert_eq!(world.kept("h0").await, None);
}

pub async fn what_an_older_version_kept_on_the_host_is_taken_over_in_the_middle_of_a_remediation(
    world: &World,
) {
    let member = world.member("h0").await;
    dress(world, "h0").await;
    let first = world.process_over("first", &[&member]).await;
    world.mark_machine("h0", Some("")).await;
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    // The process ends, and the objects are changed to what an older version would have left.
    drop(first);
    let kept = world.kept("h0").await.unwrap();
    let mut backup: serde_json::Value =
        serde_json::from_str(&kept.data.as_ref().unwrap()["node"]).unwrap();
    for newer in ["systemUUID", "providerID"] {
        backup.as_object_mut().unwrap().remove(newer);
    }
    let backup = backup.to_string();
    world.metal.annotate("h0", OLD, Some(&backup)).await;
    let params = DeleteParams::default();
    let name = kept.name_any();
    world.backups().delete(&name, &params).await.unwrap();
    let _second = world.process("second");
    world.until_back(&member).await;
    until_dressed(world, "h0").await;
    world.metal.time_passes().await;
    member.assert_cycled_once();
}

pub async fn a_request_for_a_node_that_is_well_is_answered_at_once_and_never_fires(world: &World) {
    let member = world.named_member("h0").await;
    let _process = world.process_over("first", &[&member]).await;
    world.request("h0", "DeleteNode").await;
    world
        .until("it is answered", || async {
            let request = world.requests().get("h0").await.unwrap();
            has_condition(&request, "Succeeded", "status", "False")
                && has_condition(&request, "Succeeded", "reason", "NodeHealthy")
        })
        .await;
    world.kubelet_dies("h0").await;
    world.metal.time_passes().await;
    assert!(!world.metal.read("h0").await.annotations.contains_key(KEY));
    assert_eq!(member.bmc.machine().transition_log().count_power_offs(), 0);
    assert_eq!(world.node_uid("h0").await, member.uid);
}

pub async fn a_lease_that_is_lost_while_its_node_is_deleted_is_taken_again_for_the_same_group(
    world: &World,
) {
    let member = world.member("h0").await;
    let _process = world.process_over("first", &[&member]).await;
    // Its machine does not come back.
    member.bmc.add_fault(BmcFaultKind::OnIgnored);
    world.mark_machine("h0", Some("")).await;
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    let group = world.group_in_lease("h0").await;
    assert!(group.is_some(), "it was known when the Lease was taken");
    world.delete_lease("h0").await;
    world
        .until("the Lease is held again", || world.is_leased("h0"))
        .await;
    assert_eq!(world.group_in_lease("h0").await, group);
    assert!(world.node("h0").await.is_none());
    member.bmc.cure_all_faults();
}
