//! Which conditions of a host are worth a write.

use dogwatch_core::Now;
use dogwatch_core::condition::{self, Condition, Observation, Status, Write};

/// The condition that is no news while it is false.
const HELD_OFF: &str = "HeldOff";

/// Which conditions to write. Those that are good when they are true are written when they are false
/// from the beginning as well: a host that cannot be controlled must not look like one that was not
/// looked at.
pub(super) fn to_write(standing: &[Condition], wanted: &[Observation], now: Now) -> Vec<Write> {
    let mut writes = condition::to_write(standing, wanted, now);
    let is_there = |kind: &str| standing.iter().any(|there| there.kind == kind);
    let never_true = wanted.iter().filter(|observation| {
        let is_false = observation.status == Status::False;
        is_false && observation.kind != HELD_OFF && !is_there(observation.kind)
    });
    writes.extend(never_true.map(|observation| Write {
        observation: observation.clone(),
        last_transition: now.wall,
    }));
    writes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn what_never_was_true_is_said_to_be_false_but_nobody_hears_that_nothing_is_held() {
        let now = Now {
            wall: Timestamp::UNIX_EPOCH,
            mono: Duration::ZERO,
        };
        let observed = |kind| Observation {
            kind,
            status: Status::False,
            reason: "Because".into(),
            message: String::new(),
            heartbeat: false,
        };
        let wanted = ["PowerControlReady", "PowerAsWanted", "HeldOff"].map(observed);
        let writes = to_write(&[], &wanted, now);
        let kinds: Vec<&str> = writes.iter().map(|write| write.observation.kind).collect();
        assert_eq!(kinds, ["PowerControlReady", "PowerAsWanted"]);
    }
}
