//! §2.2, §2.7: requests of the lock API whose process is gone.

use super::super::*;
use super::kit::*;
use crate::condition::CurrentCondition;
use crate::lock::api_lock::{ApiLock, ApiNode};
use crate::lock::{HolderId, ObservedLease};
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootReason};

fn api() -> HolderId {
    HolderId::for_api_host("n1")
}

/// `api/n1` holds slot 0 with these runs; its Node is cordoned for it.
fn locked(runs: &[&str], cordoned_by: Option<&str>) -> Watch {
    let node = ObservedNode {
        record: ParsedAnnotation::Absent,
        unschedulable: cordoned_by.is_some(),
        api_lock: cordoned_by.is_some(),
        conditions: vec![kubelet(0)],
        ..node("n1", RebootPhase::Waiting)
    };
    let lease = ObservedLease {
        holder: Some(api()),
        ..held(0, "n1", runs)
    };
    Watch::of(node, lease)
}

fn presence(process: &str, version: u32) -> ObservedPresence {
    ObservedPresence {
        name: format!("api.dogwatch.dev-{process}"),
        process: process.into(),
        uid: format!("uid-{process}"),
        resource_version: version.to_string(),
    }
}

fn lives(watch: &mut Watch, process: &str, second: u64) {
    let version = u32::try_from(second).unwrap() + 1;
    watch
        .seen
        .presences
        .insert(process.into(), presence(process, version));
    watch.sees(second);
}

fn lock(run_id: &str) -> ParsedAnnotation<ApiLock> {
    ParsedAnnotation::Is(ApiLock {
        lease: "dogwatch-default-0".into(),
        cordoned_by_us: true,
        since: wall(0),
        run: run(run_id),
    })
}

/// Answers the reads that the decision asks for.
fn reads(watch: &mut Watch, second: u64, lock: ParsedAnnotation<ApiLock>) {
    let seen = ObservedNode {
        api_lock: lock != ParsedAnnotation::Absent,
        ..watch.node().clone()
    };
    let read = ApiLockRead {
        node: Some(ApiNode { seen, lock }),
        leases: watch.seen.leases.values().cloned().collect(),
        taken: now(second).mono,
    };
    watch.seen.observations.api.insert(api(), read);
}

fn action(watch: &Watch, second: u64) -> HealerAction {
    let decision = watch.of_lease(second).unwrap();
    let [action] = decision.actions.as_slice() else {
        panic!("not one action: {decision:?}");
    };
    assert_eq!(decision.report.events.len(), 1);
    action.clone()
}

fn remaining(action: &HealerAction) -> Vec<&str> {
    let HealerAction::Release { remaining, .. } = action else {
        panic!("no release: {action:?}");
    };
    remaining.iter().map(crate::name::RunId::as_str).collect()
}

#[test]
fn a_request_whose_process_gave_no_sign_for_a_minute_leaves_and_the_last_one_out_frees() {
    let mut watch = locked(&["api/p/1"], None);
    watch.leaves_alone(59);
    let looking = watch.of_lease(60).unwrap();
    assert!(
        matches!(looking.observe.as_slice(), [HealerObserve::Api { .. }]),
        "{looking:?}"
    );
    reads(&mut watch, 60, ParsedAnnotation::Absent);
    let HealerAction::PatchApiNode { write, .. } = action(&watch, 60) else {
        panic!("a cordon that may be on its way has to fail first");
    };
    assert!(write.lock.is_some() && write.unschedulable.is_none());
    watch.seen.memory.record_api_node_write(&api());
    reads(&mut watch, 61, lock("api/p/1"));
    assert!(matches!(
        action(&watch, 61),
        HealerAction::PatchApiNode { .. }
    ));
    reads(&mut watch, 62, ParsedAnnotation::Absent);
    assert_eq!(remaining(&action(&watch, 62)), Vec::<&str>::new());
}

#[test]
fn the_cordon_is_undone_before_the_lock_goes() {
    let mut watch = locked(&["api/p/1"], Some("api/p/1"));
    reads(&mut watch, 60, lock("api/p/1"));
    let HealerAction::PatchApiNode { write, .. } = action(&watch, 60) else {
        panic!("the cordon first");
    };
    assert_eq!((write.unschedulable, write.lock), (Some(false), None));
    watch.seen.memory.record_api_node_write(&api());
    watch.change(61, |node| {
        (node.unschedulable, node.api_lock) = (false, false);
    });
    reads(&mut watch, 61, ParsedAnnotation::Absent);
    assert_eq!(remaining(&action(&watch, 61)), Vec::<&str>::new());
}

#[test]
fn who_renews_its_presence_lives() {
    let mut watch = locked(&["api/p/1"], Some("api/p/1"));
    for second in (0..3600).step_by(10) {
        lives(&mut watch, "p", second);
        watch.leaves_alone(second + 9);
        assert!(watch.of_lease(second + 9).unwrap().observe.is_empty());
    }
    assert!(
        watch.of_lease(3590 + 60).unwrap().observe.len() == 1,
        "and dies"
    );
}

#[test]
fn what_was_answered_stays_though_its_process_is_gone() {
    let mut watch = locked(&["answered/p/1"], Some("answered/p/1"));
    watch.leaves_alone(23 * 60 * MINUTE);
    let mut watch2 = locked(&["answered/p/1", "api/p/2"], Some("answered/p/1"));
    reads(&mut watch2, 60, lock("answered/p/1"));
    assert_eq!(remaining(&action(&watch2, 60)), ["answered/p/1"]);
    reads(&mut watch, 60, lock("answered/p/1"));
    watch.leaves_alone(60);
}

#[test]
fn a_retry_at_another_replica_keeps_what_it_got() {
    let mut watch = locked(&["api/p/1", "api/q/7"], Some("api/p/1"));
    for second in (0..=60).step_by(10) {
        lives(&mut watch, "q", second);
    }
    reads(&mut watch, 60, lock("api/p/1"));
    assert_eq!(remaining(&action(&watch, 60)), ["api/q/7"]);
}

#[test]
fn nothing_is_decided_on_leases_that_differ_from_the_watch() {
    let mut watch = locked(&["api/p/1"], None);
    reads(&mut watch, 60, ParsedAnnotation::Absent);
    let read = watch.seen.observations.api.get_mut(&api()).unwrap();
    read.leases[0].resource_version = "2".into();
    watch.leaves_alone(60);
}

#[test]
fn a_presence_that_is_not_renewed_goes_on_its_own_version() {
    let mut watch = locked(&["answered/p/1"], None);
    lives(&mut watch, "p", 0);
    watch.leaves_alone(899);
    let cases = watch.decide(900);
    let deleted = cases.iter().flat_map(|case| &case.decision.actions);
    let deleted: Vec<&HealerAction> = deleted.collect();
    assert!(
        matches!(deleted.as_slice(), [HealerAction::DeletePresence { resource_version, .. }] if resource_version == "1"),
        "{deleted:?}"
    );
    lives(&mut watch, "p", 900);
    watch.leaves_alone(900);
}

/// Whoever broke the lock may have done so while somebody works on the machine: the client may have
/// been told that it holds.
#[test]
fn a_cordon_whose_lock_was_taken_away_is_left_to_a_person_and_said_once_the_process_had_its_time() {
    for (run_id, presence) in [
        ("api/p/1", false),
        ("api/p/1", true),
        ("answered/p/1", false),
    ] {
        let mut watch = locked(&["answered/p/1"], Some(run_id));
        watch.leaves_alone(20 * MINUTE);
        watch
            .seen
            .leases
            .insert("dogwatch-default-0".into(), free(0));
        watch.sees(20 * MINUTE);
        if presence {
            lives(&mut watch, "p", 30 * MINUTE);
        }
        watch.leaves_alone(34 * MINUTE);
        reads(&mut watch, 36 * MINUTE, lock(run_id));
        let decision = watch.of_node(36 * MINUTE).unwrap();
        assert_eq!(decision.actions, [], "{run_id} {presence}");
        assert_eq!(decision.report.events.len(), 1);
        let advice = "if nobody works on the machine, uncordon the node and remove annotation";
        assert!(decision.cause.message.contains(advice), "{decision:?}");
    }
}

#[test]
fn a_condition_of_another_tool_is_no_reboot_of_ours_and_hides_no_lost_lock() {
    let other = |node: &mut ObservedNode| {
        node.conditions.push(CurrentCondition {
            kind: "MaintenanceInProgress".into(),
            status: "True".into(),
            reason: "OtherTool".into(),
            message: String::new(),
            last_transition: None,
            last_heartbeat: None,
        });
    };
    let mut watch = locked(&[], Some("api/p/1"));
    let mut idle = ObservedNode {
        record: ParsedAnnotation::Absent,
        conditions: vec![kubelet(0)],
        ..node("n1", RebootPhase::Waiting)
    };
    other(&mut idle);
    assert!(!needs_healing(&idle));
    watch
        .seen
        .leases
        .insert("dogwatch-default-0".into(), free(0));
    watch.change(1, other);
    watch.leaves_alone(14 * MINUTE);
    let decision = watch.of_node(16 * MINUTE).unwrap();
    assert_eq!(decision.cause.reason, RebootReason::ApiLockWithoutLease);
}
