//! The forecast equals what is decided later.

use crate::reboot::RebootReason;
use std::collections::BTreeMap;
use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::reboot::{ParsedAnnotation, RebootPhase};

fn of_node() -> HealingSubject {
    HealingSubject::Node(name("n1"))
}

fn of_lease() -> HealingSubject {
    HealingSubject::Lease("dogwatch-default-0".into())
}

/// Every state in which a node needs the healer, as a leader has watched it from second 0.
fn states() -> Vec<Watch> {
    let without_record = {
        let mut node = node("n1", RebootPhase::Waiting);
        node.record = ParsedAnnotation::Absent;
        node.conditions = vec![kubelet(0)];
        Watch::of(node, held(0, "n1", &["coordinator/a"]))
    };
    let mut gone = Watch::on(RebootPhase::Rebooting);
    gone.seen.nodes.clear();
    gone.sees(0);
    let phases = [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
    ];
    let phases = phases.map(Watch::on).into_iter();
    phases.chain([without_record, gone]).collect()
}

#[test]
fn what_is_foreseen_of_a_node_is_what_the_healer_decides_when_that_time_has_come() {
    for watch in states() {
        let steps = forecast_steps(&watch.seen, &watch.config, now(60), &of_node());
        for step in &steps {
            let decided = watch.of_node(step.at.as_secs()).expect("a case");
            assert_eq!(decided.cause.reason, step.reason);
            assert_eq!(decided.cause.message, step.message);
            assert_eq!(!decided.actions.is_empty(), step.acts, "{step:?}");
        }
    }
}

#[test]
fn a_dead_drain_is_foreseen_to_be_undone_at_its_deadline_and_a_dead_reboot_to_stay() {
    let reasons = |phase| {
        let watch = Watch::on(phase);
        let steps = forecast_steps(&watch.seen, &watch.config, now(60), &of_node());
        let told = steps.iter().map(|step| (step.at.as_secs(), step.reason));
        (
            told.collect::<Vec<_>>(),
            steps.last().is_some_and(|last| last.acts),
        )
    };
    let hour = 60 * MINUTE;
    let expected = [
        (60, RebootReason::WatchingCoordinator),
        (15 * MINUTE, RebootReason::CoordinatorGaveNoSign),
        (hour, RebootReason::DrainTimedOut),
    ];
    assert_eq!(reasons(RebootPhase::Draining), (expected.to_vec(), true));
    let expected = [
        (60, RebootReason::WatchingCoordinator),
        (hour, RebootReason::RebootFailed),
    ];
    assert_eq!(reasons(RebootPhase::Rebooting), (expected.to_vec(), false));
}

#[test]
fn a_lease_without_a_reboot_is_foreseen_to_be_freed_and_one_of_a_node_that_is_gone_to_be_cleared() {
    let [_, _, _, mut told, gone]: [Watch; 5] = states().try_into().ok().unwrap();
    told.seen.memory =
        HealerMemory::reconstruct_from_timestamps(&told.seen, wall(0), &BTreeMap::new(), now(60));
    let steps = forecast_steps(&told.seen, &told.config, now(60), &of_lease());
    let last = steps.last().expect("it is held for nothing");
    assert_eq!((last.at.as_secs(), last.acts), (15 * MINUTE, true));
    assert!(last.message.ends_with("; it is freed"), "{last:?}");
    let steps = forecast_steps(&gone.seen, &gone.config, now(60), &of_lease());
    let reasons: Vec<&str> = steps.iter().map(|step| step.reason.as_str()).collect();
    assert_eq!(reasons, ["LookingAtHolder", "BreakingLock"]);
    assert!(steps[1].acts);
}

#[test]
fn who_comes_late_and_reads_when_things_happened_decides_as_one_who_watched() {
    for watched in states() {
        let mut late = watched.seen.clone();
        for second in [60, 899, 900, 901, 3599, 3600, 7200] {
            let renewed = BTreeMap::new();
            late.memory =
                HealerMemory::reconstruct_from_timestamps(&late, wall(0), &renewed, now(second));
            let reasons = |seen: &HealerSnapshot| -> Vec<(HealingSubject, RebootReason)> {
                let cases = decide(seen, &watched.config, now(second)).into_iter();
                cases
                    .map(|case| (case.subject, case.decision.cause.reason))
                    .collect()
            };
            assert_eq!(reasons(&late), reasons(&watched.seen), "second {second}");
        }
    }
}

#[test]
fn a_leader_that_has_just_begun_is_told_as_one_that_has_watched_nothing_yet() {
    let mut late = Watch::on(RebootPhase::Draining);
    let renewed = BTreeMap::new();
    let began = Now {
        wall: wall(1000),
        mono: Duration::from_mins(1),
    };
    late.seen.memory =
        HealerMemory::reconstruct_from_timestamps(&late.seen, wall(940), &renewed, began);
    let steps = forecast_steps(&late.seen, &late.config, began, &of_node());
    assert_eq!(steps[0].reason, RebootReason::WatchingCoordinator);
    assert_eq!(steps[1].at.as_secs(), 15 * MINUTE, "from when it began");
}
