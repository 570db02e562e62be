//! Links between hosts, Machines and Nodes of several clusters, and the targets of requests. Source:
//! specification §4.1, §10.5.

use std::sync::Arc;

use super::super::host_link::LinkIndex;
use super::super::request_target::PowerRequestTarget;
use super::super::*;
use super::kit::*;
use super::two_clusters::{capi, node_there, prod, readable, two_clusters};
use crate::power::HostSnapshot;
use crate::reboot::ObservedNode;

fn created_at(host: HostSnapshot, second: i64) -> HostSnapshot {
    let created = jiff::Timestamp::from_second(second).ok();
    HostSnapshot { created, ..host }
}

#[test]
fn a_host_of_another_cluster_that_carries_a_node_of_that_name_claims_nothing() {
    let hosts = || {
        let claims = carrying(host("b"), "n-a");
        [created_at(host("a"), 2), created_at(claims, 1)]
    };
    let problem = |machines: Vec<ObservedMachine>| {
        let there = readable([node_there("a"), node_there("b")]);
        let world = two_clusters(machines, hosts(), there);
        let case = case_of(&world, "machine/machines/a").unwrap();
        case.problem.map(|(reason, _)| reason)
    };
    assert_eq!(problem(vec![capi("a")]), None);
    let same_cluster = vec![capi("a"), capi("b")];
    let refused = Some(RemediationReason::BadHostLink);
    assert_eq!(problem(same_cluster), refused);
}

#[test]
fn only_a_node_of_the_management_cluster_is_linked_by_a_hosts_annotation() {
    let carrier = carrying(host("a"), "n-a");
    let world = two_clusters([], [carrier], readable([node_there("a")]));
    let index = LinkIndex::build_index(&world);
    let linked = |cluster| {
        let host = index.host_linked_to(&cluster, "n-a");
        host.map(|host| host.name.clone())
    };
    assert_eq!(linked(NodeCluster::Management), Some(host_name("a")));
    assert_eq!(linked(NodeCluster::Workload(prod())), None);
}

#[test]
fn a_kubeconfig_of_the_management_cluster_is_believed_once_a_node_is_confirmed() {
    for (node, count) in [(node_there("a"), 1), (node("a"), 0)] {
        let state = WorkloadClusterState::IsManagement;
        let world = RemediationSnapshot {
            workload: Some([(prod(), state)].into()),
            ..world([capi("a")], [host("a")], [node])
        };
        let index = LinkIndex::build_index(&world);
        let machines = index.machines_of_node(&NodeCluster::Management, "n-a");
        assert_eq!(machines.len(), count);
    }
}

fn infra_ref(group: &str, kind: &str) -> InfraRef {
    InfraRef {
        group: group.into(),
        kind: kind.into(),
        object: ObjectName::new("machines", "m3-a"),
    }
}

#[test]
fn only_a_metal3machine_of_its_own_api_group_may_lead_to_a_host() {
    const GROUP: &str = "infrastructure.cluster.x-k8s.io";
    for (group, kind, may_have_host) in [
        (GROUP, "Metal3Machine", true),
        (GROUP, "DockerMachine", false),
        ("example.com", "Metal3Machine", false),
        ("example.com", "DockerMachine", false),
    ] {
        let machine = ObservedMachine {
            host: None,
            infra: Some(infra_ref(group, kind)),
            ..machine("a")
        };
        assert_eq!(machine.may_have_host(), may_have_host, "{group} {kind}");
    }
}

#[test]
fn a_host_carries_the_node_of_a_machine_that_its_infrastructure_links() {
    let linked = ObservedMachine {
        host: None,
        infra: Some(infra_ref(
            "infrastructure.cluster.x-k8s.io",
            "Metal3Machine",
        )),
        ..machine("a")
    };
    let infra = InfraMachine {
        name: ObjectName::new("machines", "m3-a"),
        uid: "uid-m3-a".into(),
        host: Some("machines/h-a".into()),
        provider_id: None,
    };
    let nodes = nodes_of_host(&Arc::new(host("a")), [linked], [infra]);
    assert_eq!(nodes, [node_name("a")]);
}

#[test]
fn a_request_of_a_machine_that_was_created_again_has_no_host() {
    let world = world([machine("a")], [host("a")], [node("a")]);
    let index = LinkIndex::build_index(&world);
    for (uid, is_found) in [("uid-a", true), ("uid-of-the-old", false)] {
        let request = PowerRequest {
            machine: Some(machine_name("a")),
            machine_uid: Some(uid.into()),
            ..request()
        };
        let target = PowerRequestTarget::for_request(&index, &request);
        assert_eq!(target.host.is_ok(), is_found, "{uid}");
        assert_eq!(target.node.is_some(), is_found, "{uid}");
    }
}

#[test]
fn a_request_for_a_workload_clusters_node_without_a_machine_takes_no_host_of_the_management_cluster()
 {
    let carrier = carrying(host("b"), "n-a");
    let world = two_clusters([], [carrier], readable([node_there("a")]));
    let request = PowerRequest {
        node_name: Some("n-a".into()),
        machine: Some(capi("a").name),
        machine_uid: Some("uid-a".into()),
        cluster: Some("prod".into()),
        ..request()
    };
    let target = PowerRequestTarget::for_request(&LinkIndex::build_index(&world), &request);
    assert_eq!(target.host.unwrap_err().0, RemediationReason::NoNode);
    assert_eq!(target.cluster, NodeCluster::Workload(prod()));
    assert_eq!(target.node, None);
}

fn marked_node(name: &str) -> ObservedNode {
    ObservedNode {
        needs_remediation: true,
        ..node(name)
    }
}

#[test]
fn a_node_is_fenced_only_while_it_is_marked_and_the_key_is_its_own() {
    for (is_marked, uid, needs_remediation) in [
        (true, "uid-n-a", true),
        (true, "uid-of-the-old", false),
        (false, "uid-n-a", false),
        (false, "uid-of-the-old", false),
    ] {
        let host = carrying(keyed(host("a"), &KeyOwner::Node(uid.into())), "n-a");
        let node = ObservedNode {
            needs_remediation: is_marked,
            ..node("a")
        };
        let case = case_of(&world([], [host], [node]), "node/n-a").unwrap();
        assert_eq!(
            case.needs_remediation, needs_remediation,
            "{is_marked} {uid}"
        );
        assert_eq!(case.key, KeyOwner::Node(uid.into()));
    }
}

#[test]
fn a_node_whose_host_is_a_machines_does_not_take_over_a_key_there() {
    let key = KeyOwner::Node("uid-of-another".into());
    let host = carrying(keyed(host("b"), &key), "n-a");
    let world = world([machine("b")], [host], [marked_node("a")]);
    let case = case_of(&world, "node/n-a").unwrap();
    assert_eq!(case.key, KeyOwner::Node("uid-n-a".into()));
    assert!(case.problem.is_some());
}

#[test]
fn a_node_that_is_gone_is_remediated_while_its_key_or_its_open_record_is_on_the_host() {
    let key = KeyOwner::Node("uid-n-a".into());
    let with_key = keyed(host("a"), &key);
    let mut recorded = begun(host("a"), &key);
    recorded.annotations.remove(MACHINE_KEY);
    let mut record = record_on_host(&recorded).unwrap();
    record.subject = "node/n-a".into();
    let recorded = with_record(recorded, &record);
    for (host, is_found) in [(with_key, true), (recorded, true), (host("a"), false)] {
        let world = world([], [carrying(host, "n-a")], []);
        assert_eq!(case_of(&world, "node/n-a").is_some(), is_found);
    }
}

#[test]
fn a_node_with_another_condition_is_not_remediated() {
    for (kind, status, is_found) in [
        (REMEDIATION_CONDITION, "True", true),
        (REMEDIATION_CONDITION, "False", false),
        ("Ready", "True", false),
    ] {
        let condition = crate::condition::CurrentCondition {
            kind: kind.into(),
            status: status.into(),
            reason: String::new(),
            message: String::new(),
            last_transition: None,
            last_heartbeat: None,
        };
        let mut node = node("a");
        node.conditions = vec![condition];
        let case = case_of(&world([], [], [node]), "node/n-a");
        assert_eq!(case.is_some(), is_found, "{kind} {status}");
    }
}

#[test]
fn a_request_whose_key_is_on_another_host_than_its_target_is_refused() {
    let key = KeyOwner::Request("uid-r".into());
    let asked = PowerRequest {
        node_name: Some("n-a".into()),
        ..request()
    };
    for (hosts, wanted) in [
        ([keyed(host("a"), &key), host("b")], None),
        (
            [host("a"), keyed(host("b"), &key)],
            Some(RemediationReason::BadRequest),
        ),
    ] {
        let mut world = world([machine("a")], hosts, [node("a")]);
        let asked = Arc::new(asked.clone());
        world.requests.insert(asked.name.clone(), asked);
        let case = case_of(&world, "powerremediation/machines/r").unwrap();
        assert_eq!(case.problem.map(|(reason, _)| reason), wanted);
    }
}

/// Its kubeconfig names the controller's own cluster, whose Node n-a is not known to be the Machine's.
#[test]
fn only_a_remediation_that_began_with_a_node_is_finished_in_a_cluster_without_its_machines() {
    for (node_uid, end, is_finished) in [
        (Some("uid-n-a"), None, true),
        (None, None, false),
        (Some("uid-n-a"), Some(RemediationStep::Failed), false),
        (None, Some(RemediationStep::Failed), false),
    ] {
        let host = begun(host("a"), &KeyOwner::Machine("uid-a".into()));
        let mut record = record_on_host(&host).unwrap();
        record.node_uid = node_uid.map(str::to_owned);
        let at = jiff::Timestamp::UNIX_EPOCH;
        record.steps.extend(end.map(|step| StepStamp { step, at }));
        let host = with_record(host, &record);
        let world = two_clusters([capi("a")], [host], WorkloadClusterState::IsManagement);
        let case = case_of(&world, "machine/machines/a").unwrap();
        let problem = case.cluster.problem.map(|(reason, _)| reason);
        let wanted = (!is_finished).then_some(RemediationReason::OtherCluster);
        assert_eq!(problem, wanted, "{node_uid:?} {end:?}");
        assert_eq!(case.node.is_some(), is_finished, "{node_uid:?} {end:?}");
    }
}
