//! Checks of power control before it is needed. Source: specification §3.3.

use super::world::*;
use crate::condition::ConditionStatus;
use crate::power::*;

#[test]
fn power_control_is_checked_at_a_low_rate_and_false_on_the_first_failure() {
    let mut world = World::new(&[], true, true);
    world.run(10);
    assert_eq!(
        world.condition("PowerControlReady").status,
        ConditionStatus::True
    );
    world.checks_are_good = false;
    world.run(301);
    let condition = world.condition("PowerControlReady");
    assert_eq!(
        (condition.status, condition.reason.as_str()),
        (ConditionStatus::False, "Unreachable")
    );
    assert!(condition.message.contains("check the address"));
    world.checks_are_good = true;
    world.run(61);
    assert_eq!(
        world.condition("PowerControlReady").status,
        ConditionStatus::True
    );
}

#[test]
fn a_failed_reading_is_unknown_at_once_and_power_control_is_not_ready() {
    let mut world = World::new(&[], true, true);
    world.run(10);
    world.bmcs[0].default_says = Says::Fails(FaultClass::WrongCredentials);
    world.run(60);
    assert_eq!(world.power().state, Some(PowerState::Unknown));
    assert_eq!(world.because(), PowerReason::PowerUnknown);
    assert_eq!(
        world.condition("PowerControlReady").reason,
        "WrongCredentials"
    );
}

#[test]
fn no_check_while_a_power_off_needs_the_bmc() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].shuts_down = None;
    world.run(5);
    let before = world.seen.memory.checks.clone();
    world.seen.memory.checks.clear();
    for _ in 0..30 {
        world.run(5);
        let looks = &world.last.as_ref().unwrap().observe;
        assert!(
            looks
                .iter()
                .all(|look| matches!(look, PowerObserve::Read { .. }))
        );
    }
    assert!(before.is_empty(), "a fence came before the first check");
}
