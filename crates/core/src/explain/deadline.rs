//! When the present wait ends at the latest.

use std::time::Duration;

use super::human_format::format_due;
use crate::Now;
use crate::policy::Policy;
use crate::reboot::{RebootPhase, RebootRecord};

/// Default of `--drain-timeout`.
pub const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_hours(1);
/// Default of `--reboot-timeout`.
pub const DEFAULT_REBOOT_TIMEOUT: Duration = Duration::from_mins(30);
/// Default time limit of the return.
pub const DEFAULT_GATE_TIMEOUT: Duration = Duration::from_mins(15);

/// The next deadline and what happens then. The coordinator's flags are not on the cluster: where
/// the policy sets nothing, their defaults are used, and the text says so.
pub(super) fn describe_deadline(
    record: &RebootRecord,
    policy: Option<&Policy>,
    now: Now,
) -> String {
    match record.phase {
        RebootPhase::Waiting => match record.retry_after {
            Some(at) => format!(
                "it queues again {}, after {} failed {} in a row",
                format_due(at, now),
                record.failures,
                if record.failures == 1 {
                    "attempt"
                } else {
                    "attempts"
                }
            ),
            None => "none: Dogwatch changes nothing on the node while it waits for the lock".into(),
        },
        RebootPhase::Draining => describe_latest_end(
            &after_waits(record),
            policy.and_then(|policy| Some((policy, policy.drain.timeout?))),
            DEFAULT_DRAIN_TIMEOUT,
            "--drain-timeout",
            "then --on-drain-timeout decides what happens (abort: undo and queue again)",
            now,
        ),
        RebootPhase::Holding => "none: the hold lasts until it is released".into(),
        RebootPhase::Rebooting => describe_latest_end(
            record,
            policy.and_then(|policy| Some((policy, policy.reboot.timeout?))),
            DEFAULT_REBOOT_TIMEOUT,
            "--reboot-timeout",
            "then the command is run again, at most --reboot-attempts (2) times in all; after \
             that the cordon and the lock stay",
            now,
        ),
        RebootPhase::Returning => describe_latest_end(
            record,
            policy.and_then(|policy| Some((policy, policy.on_return.gate_timeout?))),
            DEFAULT_GATE_TIMEOUT,
            "the return",
            "then the lock stays held, and a Warning Event reports it",
            now,
        ),
    }
}

/// The drain's timeout begins after the waits for pods that may end by themselves.
fn after_waits(record: &RebootRecord) -> RebootRecord {
    let waits = jiff::SignedDuration::try_from(Duration::from_secs(record.drain_wait_seconds));
    let since = waits
        .ok()
        .and_then(|waits| record.since.checked_add(waits).ok());
    RebootRecord {
        since: since.unwrap_or(record.since),
        ..record.clone()
    }
}

fn describe_latest_end(
    record: &RebootRecord,
    of_policy: Option<(&Policy, Duration)>,
    default: Duration,
    what: &str,
    then: &str,
    now: Now,
) -> String {
    let timeout = of_policy.map_or(default, |(_, timeout)| timeout);
    let at = Now {
        wall: record.since,
        ..now
    }
    .wall_after(timeout);
    let length = crate::duration::format_duration(timeout);
    let by = match of_policy {
        Some((policy, _)) => format!("by RebootPolicy {} ({length})", policy.name),
        None => format!("if {what} has its default ({length})"),
    };
    format!("{}, {by}; {then}", format_due(at, now))
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, now, record};
    use super::*;

    #[test]
    fn every_phase_has_a_deadline_or_says_why_not() {
        for (phase, text) in [
            (RebootPhase::Waiting, "none: Dogwatch changes nothing"),
            (RebootPhase::Draining, "at 1970-01-01 01:00:10Z (in 54m)"),
            (RebootPhase::Holding, "none: the hold lasts"),
            (RebootPhase::Rebooting, "at 1970-01-01 00:30:10Z (in 24m)"),
            (RebootPhase::Returning, "at 1970-01-01 00:15:10Z (in 9m)"),
        ] {
            let said = describe_deadline(&record(phase, 10), None, now(370));
            assert!(said.starts_with(text), "{phase:?}: {said}");
        }
    }

    #[test]
    fn a_pause_after_failures_names_its_end_and_their_number() {
        let mut paused = record(RebootPhase::Waiting, 10);
        paused.retry_after = Some(at(130));
        paused.failures = 2;
        let said = describe_deadline(&paused, None, now(70));
        assert_eq!(
            said,
            "it queues again at 1970-01-01 00:02:10Z (in 60s), after 2 failed attempts in a row"
        );
    }
}
