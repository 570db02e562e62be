//! False links: nobody can have another's machine fenced or released with a Machine, a Node or a
//! host of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::*;
use super::kit::*;
use crate::power::HostSnapshot;
use crate::reboot::ObservedNode;

const ROLE: &str = "node-role.kubernetes.io/control-plane";

fn trouble(world: &RemediationSnapshot, subject: &str) -> Option<RemediationReason> {
    let case = case_of(world, subject).expect("a case");
    case.problem.map(|(reason, _)| reason)
}

#[test]
fn a_machine_has_no_node_released_that_another_host_carries() {
    // Whoever may write Machines and hosts in one namespace claims a Node without a Machine.
    let mut foreign = marked("a");
    foreign.node = Some("n-b".into());
    let victim = carrying(host("b"), "n-b");
    let world = world([foreign], [host("a"), victim], [node("b")]);
    let says = trouble(&world, "machine/machines/a");
    assert_eq!(says, Some(RemediationReason::BadHostLink));
}

#[test]
fn a_newer_host_that_names_a_machines_node_holds_nothing_up_where_the_node_knows_its_host() {
    let made = |host: HostSnapshot, second| HostSnapshot {
        created: jiff::Timestamp::from_second(second).ok(),
        ..host
    };
    for (provider_id, of_claim, is_refused) in [
        (Some("metal3://machines/h-a/m"), 2, false),
        (Some("baremetalhost:///machines/h-a/uid-h-a"), 2, false),
        (Some("metal3://machines/h-a/m"), 0, true),
        (Some("metal3://machines/h-b/m"), 2, true),
        (None, 2, true),
    ] {
        let claims = made(carrying(host("b"), "n-a"), of_claim);
        let node = ObservedNode {
            provider_id: provider_id.map(str::to_owned),
            ..node("a")
        };
        let world = world([marked("a")], [made(host("a"), 1), claims], [node]);
        let says = trouble(&world, "machine/machines/a");
        let wanted = is_refused.then_some(RemediationReason::BadHostLink);
        assert_eq!(says, wanted, "{provider_id:?} {of_claim}");
    }
}

#[test]
fn a_machine_whose_host_says_that_it_carries_another_node_has_none_released() {
    let contradicts = carrying(host("a"), "n-b");
    let held = world([marked("a")], [contradicts], [node("a"), node("b")]);
    let says = trouble(&held, "machine/machines/a");
    assert_eq!(says, Some(RemediationReason::BadHostLink));
    let agrees = carrying(host("a"), "n-a");
    let held = world([marked("a")], [agrees], [node("a")]);
    assert_eq!(trouble(&held, "machine/machines/a"), None);
}

/// The host of a control-plane Node without a Machine, held off by this key, its Node deleted.
fn deleted(owner: &KeyOwner, nodes: Vec<ObservedNode>) -> RemediationSnapshot {
    let mut old = node("a");
    old.labels.insert(ROLE.into(), String::new());
    let backup = NodeBackup::from_node(&old, BTreeMap::new(), Vec::new());
    let host = carrying(keyed(host("a"), owner), "n-a");
    let kept = stored(&host, backup);
    keeping(world([], [host], nodes), kept)
}

#[test]
fn a_control_plane_host_counts_as_one_after_its_node_was_deleted_and_until_its_role_is_back() {
    let anew = ObservedNode {
        uid: "uid-anew".into(),
        ..node("a")
    };
    for nodes in [vec![], vec![anew]] {
        for owner in [
            KeyOwner::Node("uid-n-a".into()),
            KeyOwner::Machine("gone".into()),
        ] {
            let world = deleted(&owner, nodes.clone());
            let cases = discover_remediations(&world);
            let case = cases.iter().find(|case| case.is_keyed());
            assert!(case.unwrap().control_plane, "{owner:?} {}", nodes.len());
            let around = ConcurrentRemediations::from_remediations(&cases, |_| true);
            assert!(around.fenced.iter().any(|it| it.control_plane));
        }
    }
}

#[test]
fn a_request_for_a_control_plane_node_that_it_had_deleted_counts_as_one() {
    let mut world = deleted(&KeyOwner::Request("uid-r".into()), Vec::new());
    let request = PowerRequest {
        name: ObjectName::new("r", "r"),
        node_name: Some("n-a".into()),
        ..request()
    };
    let request = Arc::new(request);
    world.requests.insert(request.name.clone(), request);
    let case = case_of(&world, "powerremediation/r/r");
    assert!(case.unwrap().control_plane);
}
