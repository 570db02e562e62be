//! Cases of remediation on any API server, with simulated machines, kubelets and BMCs.

pub mod bad;
mod kept;
pub mod world;

use dogwatch_core::remediation::{
    MachineApi, MachineName, ObjectName, RemediationReason, RemediationSubject,
};
use dogwatch_sim::bmc::BmcFaultKind;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

pub use self::bad::whatever_is_wrong_is_said_with_what_to_do_and_the_healthy_one_beside_it_is_served;
pub use self::kept::*;
use self::world::{KEY, NEED, Process, World};

/// Passes the name of each case to a macro that makes a test of it.
#[macro_export]
macro_rules! every_remedy_case {
    ($run:ident) => {
        $run! {
            a_marked_machine_is_proved_off_its_node_deleted_and_it_comes_back_as_it_was
            a_marked_node_without_a_machine_is_remediated_by_the_host_that_names_it
            a_request_deletes_the_node_and_succeeds_when_it_is_ready_again
            a_request_taints_the_node_releases_its_workloads_and_lifts_the_taint
            a_hung_bmc_delays_no_other_and_its_node_stays
            another_leader_carries_a_remediation_on
            a_need_that_is_taken_away_before_the_key_is_not_served
            whatever_is_wrong_is_said_with_what_to_do_and_the_healthy_one_beside_it_is_served
            what_is_kept_of_a_node_that_never_came_back_holds_up_no_later_remediation
            nothing_that_somebody_writes_on_a_host_ends_up_on_a_node
            what_an_older_version_kept_on_the_host_is_taken_over_in_the_middle_of_a_remediation
            a_request_for_a_node_that_is_well_is_answered_at_once_and_never_fires
            a_lease_that_is_lost_while_its_node_is_deleted_is_taken_again_for_the_same_group
        }
    };
}

/// Adds a label, an annotation, a cordon and a taint that must survive the deletion of the Node.
async fn dress(world: &World, short: &str) {
    let body = json!({
        "metadata": { "labels": { "rack": "r1" }, "annotations": { "owner": "storage" } },
        "spec": { "unschedulable": true,
            "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }] },
    });
    world.change_node(short, body).await;
}

async fn until_dressed(world: &World, short: &str) {
    world
        .until("what was on it is back", || is_dressed(world, short))
        .await;
}

async fn is_dressed(world: &World, short: &str) -> bool {
    let Some(node) = world.node(short).await else {
        return false;
    };
    let spec = node.spec.clone().unwrap_or_default();
    let mut taints = spec.taints.into_iter().flatten();
    node.labels().get("rack").is_some_and(|it| it == "r1")
        && node
            .annotations()
            .get("owner")
            .is_some_and(|it| it == "storage")
        && spec.unschedulable == Some(true)
        && taints.any(|taint| taint.key == "gpu")
        && !node.annotations().contains_key(NEED)
}

pub async fn a_marked_machine_is_proved_off_its_node_deleted_and_it_comes_back_as_it_was(
    world: &World,
) {
    let member = world.member("h0").await;
    dress(world, "h0").await;
    let process = world.process_over("first", &[&member]).await;
    world.mark_machine("h0", Some("")).await;
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    assert!(
        member.bmc.machine().power_state().running_boot().is_none(),
        "the machine lives"
    );
    world.until_back(&member).await;
    until_dressed(world, "h0").await;
    assert!(!world.machine_needs("h0").await);
    world.metal.time_passes().await;
    member.assert_cycled_once();
    assert!(world.is_clean(&member).await);
    let page = process.leader.metrics.render_page();
    for step in ["KeyAdded", "Released", "PoweredOn", "NodeReady"] {
        let count = format!("dogwatch_remediation_steps_seconds_count{{step=\"{step}\"}} 1\n");
        assert!(page.contains(&count), "{step}: {page}");
    }
    let said = world.said().await.into_iter();
    let said: Vec<String> = said.filter_map(|event| event.reason).collect();
    assert!(
        said.iter()
            .any(|it| it == RemediationReason::Released.as_str()),
        "{said:?}"
    );
}

pub async fn a_marked_node_without_a_machine_is_remediated_by_the_host_that_names_it(
    world: &World,
) {
    let member = world.named_member("h0").await;
    dress(world, "h0").await;
    let _process = world.process_over("first", &[&member]).await;
    world.mark_node("h0").await;
    world.until_back(&member).await;
    until_dressed(world, "h0").await;
    world.metal.time_passes().await;
    member.assert_cycled_once();
}

async fn until_succeeded(world: &World, short: &str) {
    world
        .until("it has succeeded", || async {
            let request = world.requests().get(short).await.unwrap();
            has_condition(&request, "Succeeded", "status", "True")
        })
        .await;
}

pub async fn a_request_deletes_the_node_and_succeeds_when_it_is_ready_again(world: &World) {
    let member = world.named_member("h0").await;
    dress(world, "h0").await;
    let _process = world.process_over("first", &[&member]).await;
    world.kubelet_dies("h0").await;
    world.request("h0", "DeleteNode").await;
    world.until_back(&member).await;
    until_succeeded(world, "h0").await;
    until_dressed(world, "h0").await;
    world.metal.time_passes().await;
    member.assert_cycled_once();
}

pub async fn a_request_taints_the_node_releases_its_workloads_and_lifts_the_taint(world: &World) {
    let member = world.named_member("h0").await;
    let _process = world.process_over("first", &[&member]).await;
    world.kubelet_dies("h0").await;
    world.request("h0", "OutOfServiceTaint").await;
    until_succeeded(world, "h0").await;
    world
        .until("nothing is left", || world.is_clean(&member))
        .await;
    let node = world.node("h0").await.unwrap();
    assert_eq!(node.uid(), Some(member.uid.clone()), "the Node is the same");
    let taints = node.spec.unwrap_or_default().taints.unwrap_or_default();
    let mut keys = taints.iter().map(|taint| taint.key.as_str());
    assert!(!keys.any(|key| key == "node.kubernetes.io/out-of-service"));
    member.assert_cycled_once();
}

pub async fn a_hung_bmc_delays_no_other_and_its_node_stays(world: &World) {
    let hung = world.member("hung").await;
    let other = world.member("h0").await;
    let process = world.process_over("first", &[&hung, &other]).await;
    hung.bmc.add_fault(BmcFaultKind::Hang);
    world.mark_machine("hung", Some("")).await;
    world.mark_machine("h0", Some("")).await;
    world.until_back(&other).await;
    assert_eq!(
        world.node_uid("hung").await,
        hung.uid,
        "what hangs is not off"
    );
    let name = MachineName {
        api: MachineApi::OpenShift,
        object: ObjectName::new(&world.metal.namespace, "hung"),
    };
    let shown = process
        .board
        .find_remediation(&RemediationSubject::Machine(name))
        .unwrap();
    let because = &shown.decision.cause;
    assert_ne!(because.reason, RemediationReason::Released, "{because:?}");
    hung.bmc.cure_all_faults();
    world.until_back(&hung).await;
    hung.assert_cycled_once();
}

pub async fn another_leader_carries_a_remediation_on(world: &World) {
    let member = world.member("h0").await;
    let first = world.process_over("first", &[&member]).await;
    world.mark_machine("h0", Some("")).await;
    world
        .until("the key is there", || async {
            let host = world.metal.read("h0").await;
            host.annotations.contains_key(KEY)
        })
        .await;
    first.leader.loses_the_lead();
    world
        .until("it has nothing in hand", || async {
            first.board.list_remediations().is_empty()
        })
        .await;
    let _second = world.process("second");
    world.until_back(&member).await;
    world.metal.time_passes().await;
    member.assert_cycled_once();
}

pub async fn a_need_that_is_taken_away_before_the_key_is_not_served(world: &World) {
    let member = world.member("h0").await;
    let process = world.process("first");
    // Its power cannot be read: the table shows nothing.
    member.bmc.add_fault(BmcFaultKind::Hang);
    world.mark_machine("h0", Some("")).await;
    until_in_hand(world, &process).await;
    world.mark_machine("h0", None).await;
    member.bmc.cure_all_faults();
    world.metal.until_ready("h0").await;
    world
        .until("nothing is left", || world.is_clean(&member))
        .await;
    assert_eq!(world.node_uid("h0").await, member.uid);
    assert_eq!(member.bmc.machine().transition_log().count_power_offs(), 0);
}

pub async fn until_in_hand(world: &World, process: &Process) {
    world
        .until("it is in hand", || async {
            !process.board.list_remediations().is_empty()
        })
        .await;
}

/// Whether the object's condition of this type has this value in this field.
pub fn has_condition(object: &DynamicObject, kind: &str, field: &str, value: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == kind && it[field] == value)
}
