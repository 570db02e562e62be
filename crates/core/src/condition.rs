//! Decides which conditions to write, and when a write is worth it.
//!
//! Source: Kubernetes API conventions, "Typical status properties"; `NodeCondition` of core/v1.

use std::time::Duration;

use jiff::Timestamp;

use crate::Now;

/// How often a condition may be written of which only the message changes (progress). A drain of
/// 250 pods changes its message 250 times; each write is a call to the API server.
pub const PROGRESS_WRITE_INTERVAL: Duration = Duration::from_secs(30);

/// How often a condition that reports work under way is written again with nothing new but its
/// `lastHeartbeatTime`. The healer takes a coordinator for dead that was silent for `healAfter`
/// (15 minutes), the time of three heartbeats.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_mins(5);

/// Types whose `False` somebody waits for, so that absent does not mean the same. A health check
/// goes on to its next remediator once a request's `Succeeded` is False. Source: the contract of
/// medik8s' node health check.
const AWAITED_CONDITION_TYPES: [&str; 3] =
    ["Processing", "Succeeded", "PermanentNodeDeletionExpected"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionStatus {
    True,
    False,
    /// The state could not be determined.
    Unknown,
}

impl ConditionStatus {
    /// The Kubernetes spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

/// A condition as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredCondition {
    /// The condition's type, e.g. `DrainInProgress`.
    pub kind: &'static str,
    pub status: ConditionStatus,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Whether it is written again every [`HEARTBEAT_INTERVAL`], as a sign of life.
    pub heartbeat: bool,
    /// Whether `False` is written also where the condition was never there: people look there for
    /// its reason.
    pub shows_reason: bool,
}

/// A condition as it is on the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentCondition {
    /// The condition's type.
    pub kind: String,
    /// `True`, `False` or `Unknown`; other writers may have written something else.
    pub status: String,
    pub reason: String,
    pub message: String,
    /// When the status last changed.
    pub last_transition: Option<Timestamp>,
    /// When the condition was last written.
    pub last_heartbeat: Option<Timestamp>,
}

/// A condition to write, with its transition time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionWrite {
    pub observation: DesiredCondition,
    /// Changes only when the status does.
    pub last_transition: Timestamp,
}

/// Returns the conditions of `wanted` to write over `standing` now.
///
/// - Nothing is written when status, reason and message are the same: a controller never wakes
///   itself.
/// - A change of the message alone waits until [`PROGRESS_WRITE_INTERVAL`] has passed since the
///   last write.
/// - A condition that was never there and would be `False` is not written: no noise on nodes that
///   never rebooted. The types in `AWAITED_CONDITION_TYPES` are written, and what shows a reason.
pub fn conditions_to_write(
    standing: &[CurrentCondition],
    wanted: &[DesiredCondition],
    now: Now,
) -> Vec<ConditionWrite> {
    wanted
        .iter()
        .filter_map(|observation| {
            let there = standing.iter().find(|c| c.kind == observation.kind);
            is_write_due(there, observation, now).then(|| ConditionWrite {
                observation: observation.clone(),
                last_transition: transition_time(standing, observation, now.wall),
            })
        })
        .collect()
}

/// Whether each condition of `wanted` stands already with the same status, reason and message.
pub fn are_conditions_standing(standing: &[CurrentCondition], wanted: &[DesiredCondition]) -> bool {
    wanted.iter().all(|wanted| {
        let mut there = standing.iter();
        there.any(|there| {
            there.kind == wanted.kind
                && there.status == wanted.status.as_str()
                && there.reason == wanted.reason
                && there.message == wanted.message
        })
    })
}

/// When the next write is due that is not due now: progress that waits for its interval, or a
/// heartbeat.
pub fn next_condition_write(
    standing: &[CurrentCondition],
    wanted: &[DesiredCondition],
    now: Now,
) -> Option<Duration> {
    wanted
        .iter()
        .filter_map(|observation| {
            let there = standing.iter().find(|c| c.kind == observation.kind)?;
            let (every, last) = (rewrite_interval(there, observation)?, there.last_heartbeat?);
            let left = every.checked_sub(now.elapsed_since(last))?;
            (!left.is_zero() && last <= now.wall).then(|| now.mono + left)
        })
        .min()
}

fn is_write_due(there: Option<&CurrentCondition>, wanted: &DesiredCondition, now: Now) -> bool {
    let Some(there) = there else {
        return wanted.status != ConditionStatus::False
            || wanted.shows_reason
            || AWAITED_CONDITION_TYPES.contains(&wanted.kind);
    };
    if there.status != wanted.status.as_str() || there.reason != wanted.reason {
        return true;
    }
    let Some(every) = rewrite_interval(there, wanted) else {
        return false;
    };
    there
        .last_heartbeat
        .is_none_or(|at| now.elapsed_since(at) >= every || at > now.wall)
}

/// How long after its last write a condition with the same status and reason is written again.
/// `None`: it is not.
fn rewrite_interval(there: &CurrentCondition, wanted: &DesiredCondition) -> Option<Duration> {
    if there.message != wanted.message {
        return Some(PROGRESS_WRITE_INTERVAL);
    }
    wanted.heartbeat.then_some(HEARTBEAT_INTERVAL)
}

/// When the status became `wanted`: the time changes only when the status does.
pub fn transition_time(
    standing: &[CurrentCondition],
    wanted: &DesiredCondition,
    now: Timestamp,
) -> Timestamp {
    let is_same = |there: &&CurrentCondition| {
        there.kind == wanted.kind && there.status == wanted.status.as_str()
    };
    let there = standing.iter().find(is_same);
    there.and_then(|there| there.last_transition).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(second: i64) -> Now {
        Now {
            wall: Timestamp::from_second(second).expect("in range"),
            mono: Duration::from_secs(second.unsigned_abs()),
        }
    }

    fn standing(status: &str, reason: &str, message: &str, at: i64) -> CurrentCondition {
        let at = Timestamp::from_second(at).ok();
        CurrentCondition {
            kind: "Drained".into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition: at,
            last_heartbeat: at,
        }
    }

    fn wanted(status: ConditionStatus, reason: &str, message: &str) -> Vec<DesiredCondition> {
        vec![DesiredCondition {
            kind: "Drained",
            status,
            reason: reason.into(),
            message: message.into(),
            heartbeat: false,
            shows_reason: false,
        }]
    }

    #[test]
    fn the_same_is_not_written_again() {
        let there = [standing("True", "Empty", "all gone", 100)];
        assert!(
            conditions_to_write(
                &there,
                &wanted(ConditionStatus::True, "Empty", "all gone"),
                now(9_000)
            )
            .is_empty()
        );
    }

    #[test]
    fn a_false_that_was_never_true_is_not_written() {
        assert!(
            conditions_to_write(&[], &wanted(ConditionStatus::False, "Idle", ""), now(1))
                .is_empty()
        );
    }

    #[test]
    fn a_false_that_a_health_check_waits_for_is_written() {
        for kind in AWAITED_CONDITION_TYPES {
            let mut failed = wanted(ConditionStatus::False, "AttemptsUsedUp", "");
            failed[0].kind = kind;
            assert_eq!(conditions_to_write(&[], &failed, now(1)).len(), 1, "{kind}");
        }
    }

    #[test]
    fn a_false_that_shows_a_reason_is_written() {
        let mut waits = wanted(ConditionStatus::False, "LockHeldByOther", "");
        waits[0].shows_reason = true;
        assert_eq!(conditions_to_write(&[], &waits, now(1)).len(), 1);
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let there = [standing("True", "Empty", "all gone", 100)];
        let same = conditions_to_write(
            &there,
            &wanted(ConditionStatus::True, "Other", "x"),
            now(200),
        );
        assert_eq!(same[0].last_transition.as_second(), 100);
        let flipped = conditions_to_write(
            &there,
            &wanted(ConditionStatus::False, "Other", "x"),
            now(200),
        );
        assert_eq!(flipped[0].last_transition.as_second(), 200);
    }

    #[test]
    fn progress_is_written_at_most_every_half_minute() {
        let there = [standing("False", "Draining", "9 left", 100)];
        let wanted = wanted(ConditionStatus::False, "Draining", "8 left");
        assert!(conditions_to_write(&there, &wanted, now(129)).is_empty());
        assert_eq!(conditions_to_write(&there, &wanted, now(130)).len(), 1);
    }

    #[test]
    fn progress_that_waits_for_its_turn_has_a_wake_up() {
        let there = [standing("False", "Draining", "9 left", 100)];
        let wanted = wanted(ConditionStatus::False, "Draining", "8 left");
        assert_eq!(
            next_condition_write(&there, &wanted, now(110)),
            Some(Duration::from_secs(130))
        );
        assert_eq!(
            next_condition_write(&there, &wanted, now(130)),
            None,
            "due now"
        );
        assert_eq!(
            next_condition_write(&there, &wanted, now(90)),
            None,
            "due now: the clock was set back"
        );
        let same = super::tests::wanted(ConditionStatus::False, "Draining", "9 left");
        assert_eq!(next_condition_write(&there, &same, now(110)), None);
    }

    #[test]
    fn a_sign_of_life_is_given_every_five_minutes() {
        let there = [standing("True", "Draining", "stuck", 100)];
        let mut alive = wanted(ConditionStatus::True, "Draining", "stuck");
        alive[0].heartbeat = true;
        assert!(conditions_to_write(&there, &alive, now(399)).is_empty());
        assert_eq!(
            next_condition_write(&there, &alive, now(399)),
            Some(Duration::from_secs(400))
        );
        let write = conditions_to_write(&there, &alive, now(400));
        assert_eq!(write[0].last_transition.as_second(), 100);
    }
}
