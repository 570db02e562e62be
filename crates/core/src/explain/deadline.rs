//! When the present wait ends at the latest.

use std::time::Duration;

use super::words::due;
use crate::Now;
use crate::policy::Policy;
use crate::reboot::{Phase, Record};

/// `--drain-timeout` where it is not set.
pub const DRAIN_TIMEOUT: Duration = Duration::from_hours(1);
/// `--reboot-timeout` where it is not set.
pub const REBOOT_TIMEOUT: Duration = Duration::from_mins(30);
/// How long the return may take.
pub const GATE_TIMEOUT: Duration = Duration::from_mins(15);

/// The next deadline and what happens then. The coordinator's flags do not stand on the cluster, so
/// where the policy is silent the defaults are taken, and said to be.
pub(super) fn deadline(record: &Record, policy: Option<&Policy>, now: Now) -> String {
    match record.phase {
        Phase::Waiting => match record.retry_after {
            Some(at) => format!(
                "it queues again {}, after {} failed {} in a row",
                due(at, now),
                record.failures,
                if record.failures == 1 {
                    "attempt"
                } else {
                    "attempts"
                }
            ),
            None => "none: nothing is touched while it waits for the lock".into(),
        },
        Phase::Draining => at_latest(
            record,
            policy.and_then(|policy| Some((policy, policy.drain.timeout?))),
            DRAIN_TIMEOUT,
            "--drain-timeout",
            "then --on-drain-timeout says what happens (abort: undo and queue again)",
            now,
        ),
        Phase::Rebooting => at_latest(
            record,
            policy.and_then(|policy| Some((policy, policy.reboot.timeout?))),
            REBOOT_TIMEOUT,
            "--reboot-timeout",
            "then the command is run again, --reboot-attempts (2) times in all; after that cordon and lock stay",
            now,
        ),
        Phase::Returning => at_latest(
            record,
            policy.and_then(|policy| Some((policy, policy.on_return.gate_timeout?))),
            GATE_TIMEOUT,
            "the return",
            "then the lock stays held, said by a Warning Event",
            now,
        ),
    }
}

fn at_latest(
    record: &Record,
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
    .plus(timeout);
    let length = crate::duration::format(timeout);
    let by = match of_policy {
        Some((policy, _)) => format!("by RebootPolicy {} ({length})", policy.name),
        None => format!("if {what} has its default ({length})"),
    };
    format!("{}, {by}; {then}", due(at, now))
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, now, record};
    use super::*;

    #[test]
    fn every_phase_has_a_deadline_or_says_why_not() {
        for (phase, text) in [
            (Phase::Waiting, "none: nothing is touched"),
            (Phase::Draining, "at 1970-01-01 01:00:10Z (in 54m)"),
            (Phase::Rebooting, "at 1970-01-01 00:30:10Z (in 24m)"),
            (Phase::Returning, "at 1970-01-01 00:15:10Z (in 9m)"),
        ] {
            let said = deadline(&record(phase, 10), None, now(370));
            assert!(said.starts_with(text), "{phase:?}: {said}");
        }
    }

    #[test]
    fn a_pause_after_failures_names_its_end_and_their_number() {
        let mut paused = record(Phase::Waiting, 10);
        paused.retry_after = Some(at(130));
        paused.failures = 2;
        let said = deadline(&paused, None, now(70));
        assert_eq!(
            said,
            "it queues again at 1970-01-01 00:02:10Z (in 60s), after 2 failed attempts in a row"
        );
    }
}
