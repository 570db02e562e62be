//! When the present wait ends at the latest.

use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;
use jiff::Timestamp;

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

/// The next deadline and what happens then. Of the coordinator's flags only those in its record are on
/// the cluster: where the policy sets nothing, the defaults of the others are used, and the text says
/// so.
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
        RebootPhase::Holding => "none: the hold lasts until it is released".into(),
        RebootPhase::Draining | RebootPhase::Rebooting | RebootPhase::Returning => {
            phase_time_limit(record, policy)
                .map_or_else(String::new, |limit| limit.describe_limit(now))
        }
    }
}

/// When the phase ends at the latest; `None`: no time ends it.
pub(crate) fn phase_deadline(record: &RebootRecord, policy: Option<&Policy>) -> Option<Timestamp> {
    Some(phase_time_limit(record, policy)?.ends_at())
}

/// When the phase has ended in any case if somebody works on it: after each of the `attempts` that
/// is left. `None`: no time ends it.
pub(crate) fn last_phase_deadline(
    record: &RebootRecord,
    policy: Option<&Policy>,
    attempts: u32,
) -> Option<Timestamp> {
    let limit = phase_time_limit(record, policy)?;
    let is_repeated =
        record.phase == RebootPhase::Rebooting && record.trigger.method == RebootMethod::Reboot;
    let left = if is_repeated {
        attempts.saturating_sub(record.attempts)
    } else {
        0
    };
    let end = Now {
        wall: limit.ends_at(),
        mono: Duration::ZERO,
    };
    Some(end.wall_after(limit.timeout.saturating_mul(left)))
}

/// How long a phase may last.
struct PhaseTimeLimit<'a> {
    since: Timestamp,
    timeout: Duration,
    set_by: LimitSource<'a>,
    /// What happens then.
    then: &'static str,
}

enum LimitSource<'a> {
    Policy(&'a Policy),
    /// The coordinator has written it in the record.
    Coordinator,
    /// Nothing on the cluster says it: the default of this flag.
    DefaultOf(&'static str),
}

impl PhaseTimeLimit<'_> {
    fn ends_at(&self) -> Timestamp {
        let since = Now {
            wall: self.since,
            mono: Duration::ZERO,
        };
        since.wall_after(self.timeout)
    }

    fn describe_limit(&self, now: Now) -> String {
        let length = crate::duration::format_duration(self.timeout);
        let by = match self.set_by {
            LimitSource::Policy(policy) => format!("by RebootPolicy {} ({length})", policy.name),
            LimitSource::Coordinator => format!("by its coordinator ({length})"),
            LimitSource::DefaultOf(flag) => format!("if {flag} has its default ({length})"),
        };
        format!("{}, {by}; {}", format_due(self.ends_at(), now), self.then)
    }
}

fn phase_time_limit<'a>(
    record: &RebootRecord,
    policy: Option<&'a Policy>,
) -> Option<PhaseTimeLimit<'a>> {
    let (since, set, default, flag, then) = match record.phase {
        RebootPhase::Waiting | RebootPhase::Holding => return None,
        RebootPhase::Draining => (
            after_waits(record),
            policy.and_then(|policy| policy.drain.timeout),
            DEFAULT_DRAIN_TIMEOUT,
            "--drain-timeout",
            "then --on-drain-timeout decides what happens (abort: undo and queue again)",
        ),
        RebootPhase::Rebooting => (
            record.since,
            policy.and_then(|policy| policy.reboot.timeout),
            DEFAULT_REBOOT_TIMEOUT,
            "--reboot-timeout",
            "then the command is run again, at most --reboot-attempts (2) times in all; after \
             that the cordon and the lock stay",
        ),
        RebootPhase::Returning => (
            record.since,
            policy.and_then(|policy| policy.on_return.gate_timeout),
            DEFAULT_GATE_TIMEOUT,
            "the return",
            "then the lock stays held, and a Warning Event reports it",
        ),
    };
    let (timeout, set_by) = match (policy.zip(set), recorded_timeout(record)) {
        (Some((policy, set)), _) => (set, LimitSource::Policy(policy)),
        (None, Some(recorded)) => (recorded, LimitSource::Coordinator),
        (None, None) => (default, LimitSource::DefaultOf(flag)),
    };
    Some(PhaseTimeLimit {
        since,
        timeout,
        set_by,
        then,
    })
}

/// The limit of the present phase, if the record has it.
fn recorded_timeout(record: &RebootRecord) -> Option<Duration> {
    let timeout = record.limits.reboot_timeout();
    timeout.filter(|_| record.phase == RebootPhase::Rebooting)
}

/// The drain's timeout begins after the waits for pods that may end by themselves.
fn after_waits(record: &RebootRecord) -> Timestamp {
    let since = Now {
        wall: record.since,
        mono: Duration::ZERO,
    };
    since.wall_after(Duration::from_secs(record.drain_wait_seconds))
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
    fn the_recorded_limit_of_the_coordinator_is_used_while_it_reboots() {
        let mut rebooting = record(RebootPhase::Rebooting, 10);
        rebooting.limits.reboot_timeout_seconds = Some(2 * 60 * 60);
        let said = describe_deadline(&rebooting, None, now(370));
        let expected = "at 1970-01-01 02:00:10Z (in 114m), by its coordinator (2h); ";
        assert!(said.starts_with(expected), "{said}");
        rebooting.phase = RebootPhase::Draining;
        let said = describe_deadline(&rebooting, None, now(370));
        assert!(
            said.contains("if --drain-timeout has its default"),
            "{said}"
        );
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
