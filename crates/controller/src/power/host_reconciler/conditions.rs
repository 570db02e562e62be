//! Chooses which conditions of a host to write.

use dogwatch_core::Now;
use dogwatch_core::condition::{
    self, ConditionStatus, ConditionWrite, CurrentCondition, DesiredCondition,
};

/// Not written while it is false from the beginning.
const HELD_OFF_CONDITION: &str = "HeldOff";

/// Conditions that are good when true are written from the beginning even when they are false: a
/// host that cannot be controlled must not look like one that was never observed.
pub(super) fn conditions_to_write(
    standing: &[CurrentCondition],
    wanted: &[DesiredCondition],
    now: Now,
) -> Vec<ConditionWrite> {
    let mut writes = condition::conditions_to_write(standing, wanted, now);
    let is_there = |kind: &str| standing.iter().any(|there| there.kind == kind);
    let never_true = wanted.iter().filter(|observation| {
        let is_false = observation.status == ConditionStatus::False;
        is_false && observation.kind != HELD_OFF_CONDITION && !is_there(observation.kind)
    });
    writes.extend(never_true.map(|observation| ConditionWrite {
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
        let observed = |kind| DesiredCondition {
            kind,
            status: ConditionStatus::False,
            reason: "Because".into(),
            message: String::new(),
            heartbeat: false,
            shows_reason: false,
        };
        let wanted = ["PowerControlReady", "PowerAsWanted", "HeldOff"].map(observed);
        let writes = conditions_to_write(&[], &wanted, now);
        let kinds: Vec<&str> = writes.iter().map(|write| write.observation.kind).collect();
        assert_eq!(kinds, ["PowerControlReady", "PowerAsWanted"]);
    }
}
