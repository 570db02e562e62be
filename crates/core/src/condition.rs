//! Condition arithmetic: what to write, and whether it is worth a write.
//!
//! Source: Kubernetes API conventions, "Typical status properties"; `NodeCondition` of core/v1.

use std::time::Duration;

use jiff::Timestamp;

use crate::Now;

/// How often a condition whose message alone changes (progress) may be written.
/// A drain of 250 pods changes its message 250 times; each write is a call to the API server.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(30);

/// How often a condition that shows that somebody is at work is written again, unchanged but for
/// its `lastHeartbeatTime`. The healer takes a coordinator for dead that gave no sign for
/// `healAfter` (15 minutes): three signs may be lost.
pub const HEARTBEAT_EVERY: Duration = Duration::from_mins(5);

/// Types whose `False` somebody waits for: there, absent is not the same. A request's `Succeeded` False is what
/// lets a health check go on to its next remediator. Source: the contract of medik8s' node health check.
const AWAITED: [&str; 3] = ["Processing", "Succeeded", "PermanentNodeDeletionExpected"];

/// A condition's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It could not be found out.
    Unknown,
}

impl Status {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }
}

/// A condition as it should stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The condition's type, e.g. `DrainInProgress`.
    pub kind: &'static str,
    /// Its status.
    pub status: Status,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Whether it is written again every [`HEARTBEAT_EVERY`], as a sign of life.
    pub heartbeat: bool,
}

/// A condition as it stands on the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The condition's type.
    pub kind: String,
    /// `True`, `False` or `Unknown`, as written by whoever wrote it.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// When the status last changed.
    pub last_transition: Option<Timestamp>,
    /// When it was last written.
    pub last_heartbeat: Option<Timestamp>,
}

/// A condition to write, with its times worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// What to say.
    pub observation: Observation,
    /// Moves only when the status does.
    pub last_transition: Timestamp,
}

/// Which of `wanted` must be written over `standing`, now.
///
/// - Nothing is written when status, reason and message are the same: a controller never wakes
///   itself.
/// - A change of the message alone waits until [`PROGRESS_EVERY`] has passed since the last write.
/// - A condition that was never there and would be `False` is not written: no noise on nodes that
///   never rebooted. Except those that somebody waits for.
pub fn to_write(standing: &[Condition], wanted: &[Observation], now: Now) -> Vec<Write> {
    wanted
        .iter()
        .filter_map(|observation| {
            let there = standing.iter().find(|c| c.kind == observation.kind);
            needs_write(there, observation, now).then(|| Write {
                observation: observation.clone(),
                last_transition: since(standing, observation, now.wall),
            })
        })
        .collect()
}

/// When the next write of `wanted` over `standing` is due that is not due now: progress that waits
/// for its turn, or a sign of life.
pub fn next_write(standing: &[Condition], wanted: &[Observation], now: Now) -> Option<Duration> {
    wanted
        .iter()
        .filter_map(|observation| {
            let there = standing.iter().find(|c| c.kind == observation.kind)?;
            let (every, last) = (pause(there, observation)?, there.last_heartbeat?);
            let left = every.checked_sub(now.since(last))?;
            (!left.is_zero() && last <= now.wall).then(|| now.mono + left)
        })
        .min()
}

fn needs_write(there: Option<&Condition>, wanted: &Observation, now: Now) -> bool {
    let Some(there) = there else {
        return wanted.status != Status::False || AWAITED.contains(&wanted.kind);
    };
    if there.status != wanted.status.as_str() || there.reason != wanted.reason {
        return true;
    }
    let Some(every) = pause(there, wanted) else {
        return false;
    };
    there
        .last_heartbeat
        .is_none_or(|at| now.since(at) >= every || at > now.wall)
}

/// How long after its last write a condition of the same status and reason is written again.
/// `None`: it is not.
fn pause(there: &Condition, wanted: &Observation) -> Option<Duration> {
    if there.message != wanted.message {
        return Some(PROGRESS_EVERY);
    }
    wanted.heartbeat.then_some(HEARTBEAT_EVERY)
}

/// Since when the status is what is `wanted`: that time moves only when the status does.
pub fn since(standing: &[Condition], wanted: &Observation, now: Timestamp) -> Timestamp {
    let is_same =
        |there: &&Condition| there.kind == wanted.kind && there.status == wanted.status.as_str();
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

    fn standing(status: &str, reason: &str, message: &str, at: i64) -> Condition {
        let at = Timestamp::from_second(at).ok();
        Condition {
            kind: "Drained".into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition: at,
            last_heartbeat: at,
        }
    }

    fn wanted(status: Status, reason: &str, message: &str) -> Vec<Observation> {
        vec![Observation {
            kind: "Drained",
            status,
            reason: reason.into(),
            message: message.into(),
            heartbeat: false,
        }]
    }

    #[test]
    fn the_same_is_not_written_again() {
        let there = [standing("True", "Empty", "all gone", 100)];
        assert!(
            to_write(
                &there,
                &wanted(Status::True, "Empty", "all gone"),
                now(9_000)
            )
            .is_empty()
        );
    }

    #[test]
    fn a_false_that_was_never_true_is_not_written() {
        assert!(to_write(&[], &wanted(Status::False, "Idle", ""), now(1)).is_empty());
    }

    #[test]
    fn a_false_that_a_health_check_waits_for_is_written() {
        for kind in AWAITED {
            let mut failed = wanted(Status::False, "AttemptsUsedUp", "");
            failed[0].kind = kind;
            assert_eq!(to_write(&[], &failed, now(1)).len(), 1, "{kind}");
        }
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let there = [standing("True", "Empty", "all gone", 100)];
        let same = to_write(&there, &wanted(Status::True, "Other", "x"), now(200));
        assert_eq!(same[0].last_transition.as_second(), 100);
        let flipped = to_write(&there, &wanted(Status::False, "Other", "x"), now(200));
        assert_eq!(flipped[0].last_transition.as_second(), 200);
    }

    #[test]
    fn progress_is_written_at_most_every_half_minute() {
        let there = [standing("False", "Draining", "9 left", 100)];
        let wanted = wanted(Status::False, "Draining", "8 left");
        assert!(to_write(&there, &wanted, now(129)).is_empty());
        assert_eq!(to_write(&there, &wanted, now(130)).len(), 1);
    }

    #[test]
    fn progress_that_waits_for_its_turn_has_a_wake_up() {
        let there = [standing("False", "Draining", "9 left", 100)];
        let wanted = wanted(Status::False, "Draining", "8 left");
        assert_eq!(
            next_write(&there, &wanted, now(110)),
            Some(Duration::from_secs(130))
        );
        assert_eq!(next_write(&there, &wanted, now(130)), None, "due now");
        assert_eq!(
            next_write(&there, &wanted, now(90)),
            None,
            "due now: the clock was set back"
        );
        let same = super::tests::wanted(Status::False, "Draining", "9 left");
        assert_eq!(next_write(&there, &same, now(110)), None);
    }

    #[test]
    fn a_sign_of_life_is_given_every_five_minutes() {
        let there = [standing("True", "Draining", "stuck", 100)];
        let mut alive = wanted(Status::True, "Draining", "stuck");
        alive[0].heartbeat = true;
        assert!(to_write(&there, &alive, now(399)).is_empty());
        assert_eq!(
            next_write(&there, &alive, now(399)),
            Some(Duration::from_secs(400))
        );
        let write = to_write(&there, &alive, now(400));
        assert_eq!(write[0].last_transition.as_second(), 100);
    }
}
