//! Machines in one cluster, Nodes in another. Source: specification §10.5. Serves S2, S6 and L1.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::*;
use super::clear::ready;
use super::kit::*;
use crate::decision::EventSeverity;
use crate::power::tests::world::World as Power;
use crate::power::{CurrentPower, HostSnapshot};
use crate::reboot::ObservedNode;

const UID: &str = "uid-of-prod";

pub(super) fn prod() -> ObjectName {
    ObjectName::new("machines", "prod")
}

fn provider_id(name: &str) -> String {
    format!("metal3://machines/h-{name}/m-{name}")
}

/// A Machine of Cluster API of Cluster `machines/prod`.
pub(super) fn capi(name: &str) -> ObservedMachine {
    ObservedMachine {
        name: MachineName {
            api: MachineApi::ClusterApi,
            ..machine_name(name)
        },
        cluster: Some("prod".into()),
        provider_id: Some(provider_id(name)),
        ..marked(name)
    }
}

pub(super) fn node_there(name: &str) -> ObservedNode {
    ObservedNode {
        provider_id: Some(provider_id(name)),
        ..node(name)
    }
}

pub(super) fn readable(nodes: impl IntoIterator<Item = ObservedNode>) -> WorkloadClusterState {
    let nodes = nodes.into_iter();
    WorkloadClusterState::Readable(ReadableCluster {
        uid: UID.into(),
        nodes: nodes.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        leases: BTreeMap::new(),
        has_dogwatch: true,
    })
}

fn away() -> WorkloadClusterState {
    let text = "it does not answer".to_owned();
    WorkloadClusterState::Unreadable((RemediationReason::WorkloadClusterUnreachable, text))
}

/// These Machines and hosts, and workload cluster `prod` in this state.
pub(super) fn two_clusters(
    machines: impl IntoIterator<Item = ObservedMachine>,
    hosts: impl IntoIterator<Item = HostSnapshot>,
    state: WorkloadClusterState,
) -> RemediationSnapshot {
    RemediationSnapshot {
        workload: Some([(prod(), state)].into()),
        // A Node of the same name in the controller's own cluster is another one.
        ..world(machines, hosts, [node("a")])
    }
}

fn case(world: &RemediationSnapshot) -> Remediation {
    case_of(world, "machine/machines/a").unwrap()
}

fn decide_alone(
    case: &Remediation,
    known: &RemediationMemory,
    power: &Power,
) -> RemediationDecision {
    let around = ConcurrentRemediations::from_remediations(std::slice::from_ref(case), |_| true);
    let config = RemediationConfig::default();
    decide(case, known, &around, &config, power.now())
}

fn seen(power: &Power) -> RemediationMemory {
    RemediationMemory {
        power: Some(power_seen(power)),
        ..RemediationMemory::default()
    }
}

/// The host of Machine `a`, in a state of the table.
fn power_with(is_on: bool, is_keyed: bool) -> Power {
    let host = host("a");
    let host = if is_keyed {
        keyed(host, &KeyOwner::Machine("uid-a".into()))
    } else {
        host
    };
    let mut power = power_of(&host, is_on);
    if is_on {
        power.bmcs[0].default_takes = crate::power::tests::world::Takes::Ignores;
    }
    power.run(30);
    power
}

/// The table's "Node exists" has no value then: each of its rows for a marked Machine waits, and the
/// row of a withdrawn one lets the host come back.
#[test]
fn while_a_cluster_is_away_nothing_is_begun_released_or_served_and_no_host_is_left_off() {
    let silent = readable([node("b")]);
    for state in [away(), silent] {
        for (is_on, is_keyed, is_marked) in [
            (false, false, true),
            (false, true, true),
            (true, false, true),
            (true, true, true),
            (true, true, false),
            (false, true, false),
        ] {
            let power = power_with(is_on, is_keyed);
            let machine = ObservedMachine {
                need: is_marked.then(String::new),
                ..capi("a")
            };
            let host = power.seen.host.as_ref().clone();
            let world = two_clusters([machine], [host], state.clone());
            let case = case(&world);
            assert_eq!(case.node, None);
            let decision = decide_alone(&case, &seen(&power), &power);
            let what = format!("on {is_on} key {is_keyed} mark {is_marked}: {decision:?}");
            let is_back = !is_on && is_keyed && !is_marked;
            let moves = decision.actions.iter();
            let is_removal =
                |action: &RemediationAction| matches!(action, RemediationAction::RemoveKey { .. });
            assert_eq!(
                moves.clone().filter(|it| is_removal(it)).count(),
                usize::from(is_back),
                "{what}"
            );
            assert_eq!(moves.count(), usize::from(is_back), "{what}");
            if is_marked {
                let reason = decision.cause.reason;
                let is_said = [
                    RemediationReason::WorkloadClusterUnreachable,
                    RemediationReason::OtherCluster,
                ];
                assert!(is_said.contains(&reason), "{what}");
                let mut events = decision.report.events.iter();
                assert!(
                    events.any(|it| it.severity == EventSeverity::Warning),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn a_node_of_that_name_without_the_machines_provider_id_is_not_the_machines() {
    let other = ObservedNode {
        provider_id: Some(provider_id("x")),
        ..node("a")
    };
    let power = power_with(true, false);
    for there in [other, node("a")] {
        let machines = [capi("a"), capi("b")];
        let host = power.seen.host.as_ref().clone();
        // Another Node confirms the cluster.
        let state = readable([there, node_there("b")]);
        let case = case(&two_clusters(machines, [host], state));
        assert_eq!(case.node, None);
        let problem = case.cluster.problem.clone().map(|(reason, _)| reason);
        assert_eq!(problem, Some(RemediationReason::OtherCluster));
        let decision = decide_alone(&case, &seen(&power), &power);
        assert_eq!(decision.actions, [], "{decision:?}");
    }
}

#[test]
fn the_cluster_in_which_the_host_was_powered_off_is_remembered_and_no_other_is_believed() {
    let key = KeyOwner::Machine("uid-a".into());
    for (uid, is_believed) in [
        (Some(UID), true),
        (Some("uid-of-another"), false),
        (None, false),
    ] {
        let mut host = begun(host("a"), &key);
        let mut record = record_on_host(&host).unwrap();
        record.cluster = Some(prod().to_string());
        record.cluster_uid = uid.map(str::to_owned);
        record.node_uid = Some("uid-n-a".into());
        let text = serde_json::to_string(&record).unwrap();
        host.annotations
            .insert("dogwatch.dev/remediation".into(), text);
        let mut power = power_of(&host, false);
        power.run(30);
        assert_eq!(power_seen(&power).now, CurrentPower::Off);
        // The Node is gone: released, if this is its cluster.
        let host = power.seen.host.as_ref().clone();
        let world = two_clusters([capi("a")], [host], readable([]));
        let decision = decide_alone(&case(&world), &seen(&power), &power);
        let is_served = decision
            .actions
            .iter()
            .any(|action| matches!(action, RemediationAction::RemoveMachineNeed { .. }));
        assert_eq!(is_served, is_believed, "{uid:?}: {decision:?}");
    }
}

#[test]
fn a_machine_whose_cluster_is_another_than_when_it_was_powered_off_waits() {
    let key = KeyOwner::Machine("uid-a".into());
    let mut host = begun(host("a"), &key);
    let mut record = record_on_host(&host).unwrap();
    record.node_uid = Some("uid-n-a".into());
    let text = serde_json::to_string(&record).unwrap();
    host.annotations
        .insert("dogwatch.dev/remediation".into(), text);
    let case = case(&two_clusters(
        [capi("a")],
        [host],
        readable([node_there("a")]),
    ));
    let problem = case.cluster.problem.map(|(reason, _)| reason);
    assert_eq!(problem, Some(RemediationReason::OtherCluster));
    assert_eq!(case.node, None);
}

#[test]
fn a_release_needs_a_cluster_that_can_be_read() {
    let mut ready = ready();
    ready.case.cluster = RemediationCluster {
        name: NodeCluster::Workload(prod()),
        uid: Some(UID.into()),
        has_dogwatch: true,
        problem: None,
    };
    assert!(ready.releases(), "with the same proof as in one cluster");
    ready.case.cluster.problem =
        Some((RemediationReason::WorkloadClusterUnreachable, String::new()));
    assert!(!ready.releases(), "{:?}", ready.decision());
}

#[test]
fn the_controllers_own_cluster_is_taken_for_a_workload_cluster_only_if_it_has_its_nodes() {
    let state = WorkloadClusterState::IsManagement;
    let mut world = two_clusters([capi("a")], [host("a")], state);
    let case_there = case(&world);
    let problem = case_there.cluster.problem.map(|(reason, _)| reason);
    assert_eq!(problem, Some(RemediationReason::OtherCluster));
    assert_eq!(case_there.node, None);
    world
        .nodes
        .insert(node_name("a"), Arc::new(node_there("a")));
    let case_here = case(&world);
    assert_eq!(case_here.cluster, RemediationCluster::management());
    assert!(case_here.node.is_some());
}

/// The limits of a cluster that works must not be used up by one that is away.
#[test]
fn another_clusters_work_goes_on() {
    let key = KeyOwner::Machine("uid-a".into());
    let stuck = two_clusters([capi("a")], [keyed(host("a"), &key)], away());
    let mut stuck = case(&stuck);
    stuck.control_plane = true;
    let mut other = world([marked("b")], [host("b")], [node("b")]);
    other.workload = Some([(prod(), away())].into());
    let mut other = case_of(&other, "machine/machines/b").unwrap();
    other.control_plane = true;
    other.held_lease = Some(HeldRemediationLease::default());
    let mut power = power_of(&host("b"), true);
    power.run(10);
    let cases = [stuck, other.clone()];
    let around = ConcurrentRemediations::from_remediations(&cases, |_| true);
    let config = RemediationConfig {
        max_fenced: 1,
        ..RemediationConfig::default()
    };
    let decision = decide(&other, &seen(&power), &around, &config, power.now());
    let reason = decision.cause.reason;
    assert_eq!(reason, RemediationReason::Preparing, "{decision:?}");
}

#[test]
fn where_dogwatch_is_not_installed_no_lease_is_taken_and_that_is_said() {
    let power = power_with(true, false);
    let host = power.seen.host.as_ref().clone();
    let fenced = ObservedNode {
        being_fenced: true,
        ..node_there("a")
    };
    let mut state = readable([fenced]);
    if let WorkloadClusterState::Readable(cluster) = &mut state {
        cluster.has_dogwatch = false;
    }
    let world = two_clusters([capi("a")], [host], state);
    let case = case(&world);
    let mut known = seen(&power);
    let beat = beat(case.node.as_ref(), 5);
    known.fresh = Some(fresh(&world, &case, &beat, power.now().mono));
    let decision = decide_alone(&case, &known, &power);
    let [RemediationAction::KeepBackup { backup, .. }] = decision.actions.as_slice() else {
        panic!("no Lease, and the backup first: {decision:?}");
    };
    assert_eq!(backup.cluster, Some(prod().to_string()));
    let kept = stored(case.host.as_ref().unwrap(), backup.clone());
    let case = self::case(&keeping(world, kept));
    let decision = decide_alone(&case, &known, &power);
    let [RemediationAction::AddKey { record, .. }] = decision.actions.as_slice() else {
        panic!("{decision:?}");
    };
    assert_eq!(record.cluster, Some(prod().to_string()));
    assert_eq!(record.cluster_uid.as_deref(), Some(UID));
    let said = &decision.cause.message;
    assert!(
        said.contains("Dogwatch is not installed in workload cluster"),
        "{said}"
    );
}

/// S6: a cluster that was away when a remediation ended.
#[test]
fn what_is_left_on_a_node_of_a_workload_cluster_is_found_and_removed_there_and_nowhere_else() {
    let left = ObservedNode {
        being_fenced: true,
        ..node_there("a")
    };
    let calm = ObservedMachine {
        need: None,
        ..capi("a")
    };
    let world = |provider_id: Option<String>| {
        let node = ObservedNode {
            provider_id,
            ..left.clone()
        };
        let mut state = readable([node]);
        if let WorkloadClusterState::Readable(cluster) = &mut state {
            cluster
                .leases
                .insert(node_name("a"), HeldRemediationLease::default());
        }
        two_clusters([calm.clone()], [host("a")], state)
    };
    let found = discover_remediations(&world(Some(provider_id("a"))));
    let [case] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(case.subject.to_string(), "node/machines/prod/n-a");
    let power = power_with(true, false);
    let decision = decide_alone(case, &RemediationMemory::default(), &power);
    let [
        RemediationAction::UnmarkNode { .. },
        RemediationAction::FreeLease { .. },
    ] = decision.actions.as_slice()
    else {
        panic!("{decision:?}");
    };
    // A cluster in which no Machine is recognized may be another remediator's.
    assert_eq!(discover_remediations(&world(None)), []);
}

/// A request that Machine `a` owns, in this state.
fn request(status: RequestStatus, is_deleted: bool) -> PowerRequest {
    PowerRequest {
        name: ObjectName::new("machines", "a"),
        uid: "r".into(),
        resource_version: "1".into(),
        generation: 1,
        created: jiff::Timestamp::UNIX_EPOCH,
        deleting: is_deleted,
        has_finalizer: true,
        node_name: None,
        machine: Some(capi("a").name),
        machine_uid: Some("uid-a".into()),
        cluster: Some("prod".into()),
        timed_out: false,
        paused: false,
        strategy: Ok(RemediationStrategy {
            kind: StrategyType::OutOfServiceTaint,
            retry_limit: 0,
            timeout: std::time::Duration::from_mins(10),
        }),
        status,
    }
}

/// The status of a request whose attempt began, and whose host was off, at this time.
fn begun_status(began: jiff::Timestamp, key_removed_at: Option<jiff::Timestamp>) -> RequestStatus {
    RequestStatus {
        started_at: Some(began),
        attempt: Some(RemediationAttempt {
            number: 1,
            started_at: began,
            key_at: Some(began),
            off_at: Some(began),
            released_at: None,
            key_removed_at,
        }),
        node: Some("n-a".into()),
        node_uid: Some("uid-n-a".into()),
        ..RequestStatus::default()
    }
}

/// The decision about a request whose attempt began so long ago, while its cluster is away.
fn decide_away(
    minutes: u64,
    is_keyed: bool,
    is_deleted: bool,
) -> (RemediationDecision, Option<RequestStatus>) {
    let key = KeyOwner::Request("r".into());
    let host = host("a");
    let host = if is_keyed { keyed(host, &key) } else { host };
    let mut power = power_of(&host, false);
    power.run(30);
    let now = power.now().wall;
    let began = now - jiff::SignedDuration::from_mins(i64::try_from(minutes).unwrap());
    let status = RequestStatus {
        tainted_at: Some(began),
        ..begun_status(began, (!is_keyed).then_some(began))
    };
    let host = power.seen.host.as_ref().clone();
    let mut world = two_clusters([capi("a")], [host], away());
    let request = Arc::new(request(status, is_deleted));
    world.requests.insert(request.name.clone(), request);
    let case = case_of(&world, "powerremediation/machines/a").unwrap();
    assert_eq!(case.cluster.name, NodeCluster::Workload(prod()));
    let decision = decide_alone(&case, &seen(&power), &power);
    let mut actions = decision.actions.iter();
    let status = actions.find_map(|action| {
        let RemediationAction::WriteStatus { status, .. } = action else {
            return None;
        };
        Some(status.as_ref().clone())
    });
    (decision, status)
}

#[test]
fn a_request_is_neither_served_nor_given_up_nor_its_taint_forgotten_while_its_cluster_is_away() {
    for (minutes, is_keyed, is_deleted) in [
        (1, true, false),
        (11, true, false),
        (11, false, false),
        (60, false, false),
        (60, false, true),
    ] {
        let (decision, status) = decide_away(minutes, is_keyed, is_deleted);
        let what = format!("{minutes} {is_keyed} {is_deleted}: {decision:?}");
        let is_key_removed = decision
            .actions
            .iter()
            .any(|action| matches!(action, RemediationAction::RemoveKey { .. }));
        // The end of the attempt lets the host come back, as always.
        assert_eq!(is_key_removed, is_keyed && minutes > 10, "{what}");
        let is_ended = decision.actions.iter().any(|action| {
            matches!(
                action,
                RemediationAction::HandBack { .. }
                    | RemediationAction::RemoveFinalizer { .. }
                    | RemediationAction::Release(_)
                    | RemediationAction::AddKey { .. }
            )
        });
        assert!(!is_ended, "{what}");
        if let Some(status) = status {
            assert_eq!(status.ended_at, None, "{what}");
            assert!(status.tainted_at.is_some(), "{what}");
            assert_eq!(status.attempt.unwrap().released_at, None, "{what}");
        }
    }
}

/// Without it the API server there may not answer, and the host would stay off for ever.
#[test]
fn a_mark_on_a_control_plane_machine_of_a_workload_cluster_is_refused() {
    let power = power_with(true, false);
    let host = power.seen.host.as_ref().clone();
    let world = two_clusters([capi("a")], [host], readable([node_there("a")]));
    let mut case = case(&world);
    for (is_control_plane, is_refused) in [(false, false), (true, true)] {
        case.control_plane = is_control_plane;
        let decision = decide_alone(&case, &seen(&power), &power);
        let reason = decision.cause.reason;
        let is_so = reason == RemediationReason::ControlPlaneOneByOne;
        assert_eq!(is_so, is_refused, "{decision:?}");
    }
}

/// What a flag or a kubeconfig says today must not replace what the record says.
#[test]
fn the_record_of_a_request_keeps_its_cluster_when_its_key_is_removed() {
    let mut host = begun(host("a"), &KeyOwner::Request("r".into()));
    let mut record = record_on_host(&host).unwrap();
    record.subject = "powerremediation/machines/a".into();
    record.uid = "r".into();
    record.cluster = Some(prod().to_string());
    record.cluster_uid = Some(UID.into());
    let text = serde_json::to_string(&record).unwrap();
    host.annotations
        .insert("dogwatch.dev/remediation".into(), text);
    let mut power = power_of(&host, false);
    power.run(30);
    let began = power.now().wall - jiff::SignedDuration::from_mins(11);
    let status = begun_status(began, None);
    let host = power.seen.host.as_ref().clone();
    let mut world = two_clusters([capi("a")], [host], away());
    // The controller was started again without the flag.
    world.workload = None;
    let request = Arc::new(request(status, false));
    world.requests.insert(request.name.clone(), request);
    let case = case_of(&world, "powerremediation/machines/a").unwrap();
    let decision = decide_alone(&case, &seen(&power), &power);
    let mut actions = decision.actions.iter();
    let record = actions.find_map(|action| {
        let RemediationAction::RemoveKey { record, .. } = action else {
            return None;
        };
        record.as_ref()
    });
    let record = record.unwrap_or_else(|| panic!("{decision:?}"));
    assert_eq!(record.cluster, Some(prod().to_string()));
    assert_eq!(record.cluster_uid.as_deref(), Some(UID));
}

#[test]
fn a_kubeconfig_of_the_controllers_cluster_claims_no_node_of_its_machines() {
    let state = WorkloadClusterState::IsManagement;
    let own = ObservedMachine {
        node: Some("n-a".into()),
        ..marked("b")
    };
    let world = two_clusters([capi("a"), own], [host("a"), host("b")], state);
    let claimed = case(&world);
    let problem = claimed.cluster.problem.map(|(reason, _)| reason);
    assert_eq!(problem, Some(RemediationReason::OtherCluster));
    let own = case_of(&world, "machine/machines/b").unwrap();
    assert_eq!(own.problem, None);
    assert!(own.node.is_some());
}
