//! §10.2: waits for pods that may end by themselves count into the deadline and the window.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::drain::{PodRule, PodRules, RuleAction};
use crate::name::GroupName;
use crate::policy::window::{MaintenanceWindow, WindowSpec};
use crate::policy::{ClusterPolicies, DrainRules, Policy};

const HOUR: Duration = Duration::from_hours(1);
/// Nine in the morning.
const NINE: u32 = 3600;

fn waits_an_hour() -> PodRules {
    PodRules {
        rules: vec![PodRule {
            action: RuleAction::WaitCompleted { timeout: HOUR },
            ..PodRule::default()
        }],
        ..PodRules::default()
    }
}

fn config_with_wait() -> RebootConfig {
    RebootConfig {
        pod_rules: waits_an_hour(),
        ..config()
    }
}

/// A drain under these rules, with this wait in the record and `pending` for a pod.
fn draining(recorded: u64, pending: Option<Duration>) -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Draining);
    let record = RebootRecord {
        drain_wait_seconds: recorded,
        ..record(RebootPhase::Draining)
    };
    set(&mut seen, |node| node.record = ParsedAnnotation::Is(record));
    let mut drain = one_pod_left();
    drain.progress.rules = waits_an_hour();
    drain.progress.pending_wait = pending;
    seen.drain = Some(drain);
    seen
}

/// Phase and wait of the record that the decision writes; `None` if it writes none.
fn written_wait(seen: &RebootSnapshot, second: u32) -> Option<(RebootPhase, u64)> {
    let decision = decide(seen, &config_with_wait(), now(second));
    decision.actions.iter().find_map(|action| match action {
        RebootAction::PatchNode(patch) => match &patch.record {
            RecordChange::Set(record) => Some((record.phase, record.drain_wait_seconds)),
            RecordChange::Remove => None,
        },
        RebootAction::Bid { .. }
        | RebootAction::Release { .. }
        | RebootAction::Break { .. }
        | RebootAction::Reboot { .. }
        | RebootAction::Stop { .. } => None,
    })
}

#[test]
fn a_wait_is_written_down_and_the_timeout_begins_after_it() {
    let draining_for = |wait| Some((RebootPhase::Draining, wait));
    let undone = Some((RebootPhase::Waiting, 0));
    for (recorded, pending, second, expected) in [
        (0, Some(HOUR), 1, draining_for(3_600)),
        // Longer than the timeout alone, but the wait has not been written down yet.
        (0, Some(HOUR), 3_700, draining_for(3_600)),
        (3_600, Some(HOUR), 3_500, None),
        (3_600, None, 7_199, None),
        (3_600, None, 7_200, undone),
        // The last protected pod ended early: from then on the timeout counts.
        (3_600, None, 600, draining_for(601)),
        (601, None, 4_200, None),
        (601, None, 4_201, undone),
        (0, None, 3_600, undone),
    ] {
        let seen = draining(recorded, pending);
        let found = written_wait(&seen, second);
        assert_eq!(found, expected, "{recorded} {pending:?} at {second}");
    }
}

#[test]
fn a_drain_that_is_not_listed_again_yet_keeps_the_recorded_wait() {
    let mut seen = draining(3_600, None);
    seen.drain = None;
    assert_eq!(written_wait(&seen, 600), None);
    assert_eq!(written_wait(&seen, 7_199), None);
}

#[test]
fn a_window_that_the_longest_wait_and_the_timeout_would_pass_does_not_begin() {
    for (end, begins) in [("10:59", false), ("11:00", true)] {
        let spec = WindowSpec {
            start: Some("06:00".into()),
            end: Some(end.into()),
            ..WindowSpec::default()
        };
        let mut seen = seen(RebootPhase::Waiting);
        seen.policies = ClusterPolicies::Known(vec![Policy {
            windows: vec![MaintenanceWindow::new(&spec).unwrap()],
            drain: DrainRules {
                pods: waits_an_hour(),
                ..DrainRules::default()
            },
            ..Policy::without_rules(GroupName::default_group())
        }]);
        let reason = decide(&seen, &config(), now(NINE)).cause.reason;
        assert_eq!(
            reason != RebootReason::WindowTooShort,
            begins,
            "{end}: {reason}"
        );
    }
}
