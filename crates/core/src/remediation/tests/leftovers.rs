//! Keys, records and backups without a Machine, Node or request. Source: specification §4.1, §10.5.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::*;
use super::kit::*;
use super::town::Town;
use super::two_clusters::{node_there, prod, readable, two_clusters};
use crate::power::{HostOwner, HostSnapshot};
use crate::reboot::ObservedNode;

const HOST_A: &str = "host/machines/h-a";

/// Host `name` with a key of a Machine that is gone.
fn orphaned(name: &str) -> HostSnapshot {
    keyed(host(name), &KeyOwner::Machine("uid-gone".into()))
}

/// An open record of a request that began for Node n-a.
fn open_record(uid: &str) -> RemediationRecord {
    let at = jiff::Timestamp::UNIX_EPOCH;
    let step = RemediationStep::KeyRemoved;
    RemediationRecord {
        subject: "powerremediation/machines/r".into(),
        uid: uid.into(),
        node: Some("n-a".into()),
        node_uid: Some("uid-n-a".into()),
        cluster: None,
        cluster_uid: None,
        boot_id: None,
        attempt: 1,
        steps: vec![StepStamp { step, at }],
    }
}

#[test]
fn a_record_waits_for_its_node_as_long_as_its_own_request_exists() {
    for (requests, is_over) in [
        (vec![], true),
        (vec!["uid-r"], false),
        (vec!["uid-of-another"], true),
        (vec!["uid-of-another", "uid-r"], false),
    ] {
        let host = with_record(host("a"), &open_record("uid-r"));
        let mut world = world([], [host], []);
        for (index, uid) in requests.iter().enumerate() {
            // It names a Node that no host carries.
            let request = PowerRequest {
                name: ObjectName::new("machines", format!("r{index}")),
                uid: (*uid).into(),
                node_name: Some("nobody".into()),
                ..request()
            };
            world
                .requests
                .insert(request.name.clone(), Arc::new(request));
        }
        let case = case_of(&world, HOST_A).unwrap();
        let problem = case.problem.map(|(reason, _)| reason);
        let wanted = is_over.then_some(RemediationReason::Withdrawn);
        assert_eq!(problem, wanted, "{requests:?}");
    }
}

#[test]
fn a_record_that_a_machine_goes_on_with_is_not_closed_for_an_old_key_on_its_host() {
    let own = KeyOwner::Machine("uid-a".into());
    let old = KeyOwner::Request("uid-gone".into());
    let mut other = record_on_host(&begun(host("a"), &own)).unwrap();
    other.subject = "machine/machines/b".into();
    other.uid = "uid-b".into();
    let hosts = [
        keyed(begun(host("a"), &own), &old),
        with_record(keyed(host("b"), &KeyOwner::Machine("uid-b".into())), &other),
        with_record(orphaned("c"), &open_record("uid-r")),
    ];
    let world = world([marked("a"), marked("b")], hosts, []);
    let recorded = |subject: &str| case_of(&world, subject).unwrap().record.is_some();
    assert!(recorded("machine/machines/a") && recorded("machine/machines/b"));
    assert!(!recorded(HOST_A), "two remediations would write the record");
    assert!(recorded("host/machines/h-c"), "nobody else ends it");
}

#[test]
fn an_old_keys_node_is_the_one_that_the_host_names_in_the_controllers_own_cluster() {
    let mut there = open_record("uid-r");
    there.cluster = Some(prod().to_string());
    there.node = None;
    for (record, is_found) in [(None, true), (Some(there), false)] {
        let mut host = carrying(orphaned("a"), "n-a");
        if let Some(record) = &record {
            host = with_record(host, record);
        }
        let world = two_clusters([], [host], readable([node_there("a")]));
        let case = case_of(&world, HOST_A).unwrap();
        let name = is_found.then(|| node_name("a"));
        assert_eq!(case.node_name, name, "{record:?}");
        assert_eq!(case.node.is_some(), is_found, "{record:?}");
    }
}

#[test]
fn the_backup_of_a_gone_host_is_handled_once_whatever_else_goes_on() {
    let backup = NodeBackup::from_node(&node("a"), BTreeMap::new(), Vec::new());
    let anew = HostSnapshot {
        uid: "uid-anew".into(),
        ..orphaned("a")
    };
    for (hosts, is_dropped) in [(vec![host("b")], true), (vec![host("b"), anew], false)] {
        let kept = stored(&host("a"), backup.clone());
        let world = keeping(world([marked("b")], hosts, [node("b")]), kept);
        let cases = discover_remediations(&world);
        let of_host: Vec<_> = cases
            .iter()
            .filter(|case| case.subject.to_string() == HOST_A)
            .collect();
        let [case] = of_host.as_slice() else {
            panic!("{cases:?}");
        };
        // The new host of that name has its own key removed first.
        assert_eq!(case.stored_backup.is_some(), is_dropped, "{case:?}");
    }
}

/// Host h-a, held off for a Machine of workload cluster `prod` that is gone.
fn of_prod(cluster_uid: Option<&str>) -> HostSnapshot {
    let record = RemediationRecord {
        cluster: Some(prod().to_string()),
        cluster_uid: cluster_uid.map(str::to_owned),
        ..open_record("uid-r")
    };
    with_record(orphaned("a"), &record)
}

#[test]
fn a_record_of_a_workload_cluster_has_its_node_looked_for_there_if_the_cluster_is_the_same() {
    let own = ObservedNode {
        uid: "uid-there".into(),
        ..node_there("a")
    };
    for (cluster_uid, problem, node) in [
        (Some("uid-of-prod"), None, Some("uid-there")),
        (
            Some("uid-of-another"),
            Some(RemediationReason::OtherCluster),
            None,
        ),
        (None, Some(RemediationReason::OtherCluster), None),
    ] {
        let world = two_clusters([], [of_prod(cluster_uid)], readable([own.clone()]));
        let case = case_of(&world, HOST_A).unwrap();
        assert_eq!(case.cluster.name, NodeCluster::Workload(prod()));
        let said = case.cluster.problem.map(|(reason, _)| reason);
        assert_eq!(said, problem, "{cluster_uid:?}");
        let uid = case.node.as_ref().map(|node| node.uid.as_str());
        assert_eq!(uid, node, "{cluster_uid:?}");
    }
}

#[test]
fn it_is_said_why_a_workload_cluster_is_not_read() {
    let nothing_read = Some(BTreeMap::new());
    let unnamed = ObservedMachine {
        cluster: None,
        ..super::two_clusters::capi("a")
    };
    let (being_read, unread) = (
        RemediationReason::TakenUp,
        RemediationReason::WorkloadClusterUnreachable,
    );
    for (machines, workload, subject, reason, text) in [
        (
            vec![],
            nothing_read.clone(),
            HOST_A,
            being_read,
            "workload cluster machines/prod is being read",
        ),
        (
            vec![],
            None,
            HOST_A,
            unread,
            "the Node is in workload cluster machines/prod, and the controller runs without --workload-clusters",
        ),
        (
            vec![unnamed],
            nothing_read,
            "machine/machines/a",
            unread,
            "the Machine in namespace machines names no Cluster (spec.clusterName), so that its Node's cluster is not \
             known",
        ),
    ] {
        let host = if subject == HOST_A {
            of_prod(None)
        } else {
            host("a")
        };
        let world = RemediationSnapshot {
            workload,
            ..world(machines, [host], [])
        };
        let case = case_of(&world, subject).unwrap();
        assert_eq!(case.cluster.problem, Some((reason, text.to_owned())));
    }
}

/// metal3 keeps the keys of others on a host that it deprovisions.
#[test]
fn a_key_of_a_machine_that_is_gone_does_not_wait_for_the_next_system_on_its_host() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.seen.owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    town.mark("a");
    town.until("keyed", |town| town.is_keyed("a"));
    town.machines.clear();
    let host = town.site("a").power.seen.host_mut();
    host.status.provisioning = Some("available".into());
    town.site("a").power.version += 1;
    town.run(120);
    assert!(!town.is_keyed("a") && town.is_on("a"));
}
