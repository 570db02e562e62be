//! Powering on. Source: specification §3.2.

use super::world::*;
use crate::power::*;

#[test]
fn last_powered_on_is_written_before_the_power_on_and_after_off_was_confirmed_which_it_clears() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.until_on();
    let confirmed = world
        .writes
        .iter()
        .position(|(_, s)| s.power.off_confirmed_at.is_some());
    let powered = world
        .writes
        .iter()
        .position(|(_, s)| s.last_powered_on.is_some());
    assert!(confirmed.unwrap() < powered.unwrap());
    let (at, status) = &world.writes[powered.unwrap()];
    assert_eq!(status.power.off_confirmed_at, None);
    assert_eq!(status.powered_on, Some(true));
    assert_eq!(status.power.state, Some(State::PoweringOn));
    assert!(status.last_powered_on > status.pending_reboot_since);
    assert!(*at <= world.sent[1].sent);
    assert_eq!(world.kinds(), [Command::Off, Command::On]);
}

#[test]
fn base_is_removed_once_off_is_confirmed_and_before_the_power_on() {
    let mut world = World::new(&[(BASE, HARD), (KEY, HARD)], true, true);
    world.until_confirmed();
    world.run(60);
    let left: Vec<_> = world.seen.host.annotations.keys().cloned().collect();
    assert_eq!(left, [KEY]);
    assert!(!world.is_on(), "a key is left");
    assert_eq!(world.because(), reason::HELD_OFF);
    assert!(world.condition("HeldOff").message.contains(KEY));
}

#[test]
fn all_keys_have_to_go_before_it_is_powered_on() {
    let other = "reboot.metal3.io/other";
    let mut world = World::new(&[(KEY, HARD), (other, HARD)], true, true);
    world.until_confirmed();
    world.remove(KEY);
    world.run(120);
    assert!(!world.is_on());
    world.remove(other);
    world.until_on();
    assert_eq!(world.power_offs(), 1);
}

#[test]
fn held_and_not_online_stays_off_after_its_key_is_gone_until_online() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    world.seen.host_mut().online = false;
    world.remove(KEY);
    world.run(120);
    assert!(!world.is_on());
    world.seen.host_mut().online = true;
    world.until_on();
}

#[test]
fn a_power_on_that_did_not_take_is_sent_again_and_said_and_its_time_stays() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::Runs(100), Takes::Ignores, Takes::Ignores];
    world.until_on();
    assert_eq!(world.kinds()[1..], [Command::On; 3]);
    assert!(world.said(reason::POWER_ON_RETRIED));
    let mut times: Vec<_> = world
        .writes
        .iter()
        .filter_map(|(_, s)| s.last_powered_on)
        .collect();
    times.dedup();
    assert_eq!(times.len(), 1);
    assert_eq!(world.power().history[0].attempts, 3);
    assert_eq!(world.power().history[0].outcome, reason::POWERED_ON);
}

#[test]
fn a_power_on_of_unknown_end_is_not_sent_again_while_it_may_be_run() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    let silent = Takes::Silent {
        after: 10_000,
        runs: Some(25_000),
    };
    world.bmcs[0].takes = vec![Takes::Runs(100), silent];
    world.until_on();
    world.run(120);
    assert_eq!(world.kinds(), [Command::Off, Command::On]);
}

#[test]
fn found_off_it_is_proved_off_softly_and_then_powered_on() {
    let mut world = World::new(&[], true, true);
    world.run(120);
    world.set_power(false);
    world.until("on", World::is_on);
    world.until_on();
    assert_eq!(world.kinds(), [Command::SoftOff, Command::On]);
    assert!(world.said(reason::FOUND_OFF));
}

#[test]
fn found_off_behind_what_knows_no_soft_power_off_it_is_proved_off_and_powered_on() {
    let mut world = World::new(&[], true, false);
    world.bmcs[0].takes = vec![Takes::Fails(Class::Unsupported)];
    world.until_on();
    assert_eq!(
        world.kinds(),
        [Command::SoftOff, Command::Off, Command::On],
        "each once"
    );
}

#[test]
fn a_bmc_that_says_off_for_a_while_does_not_cost_a_running_host_its_power() {
    let mut world = World::new(&[], true, true);
    world.run(120);
    world.bmcs[0].default_says = Says::Lie(Reading::Off);
    world.run(60);
    world.bmcs[0].default_says = Says::Truth;
    world.run(600);
    let cuts = world
        .kinds()
        .iter()
        .filter(|kind| **kind == Command::Off)
        .count();
    assert_eq!(cuts, 0, "never hard");
}

#[test]
fn a_request_that_comes_while_it_is_powered_on_is_another_reboot() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.until("on sent", |world| world.kinds().len() == 2);
    world.annotate(BASE, HARD);
    world.until_on();
    world.run(60);
    assert_eq!(world.power_offs(), 2);
    assert!(world.is_on());
    assert!(world.seen.host.annotations.is_empty());
}

#[test]
fn nothing_is_written_at_each_poll() {
    let mut world = World::new(&[], true, true);
    world.run(10);
    let before = world.writes.len();
    world.run(3_600);
    let writes = world.writes.len() - before;
    assert!(writes <= 7, "observedAt every tenth poll: {writes}");
}

#[test]
fn a_power_on_that_was_answered_and_not_seen_holds_the_next_proof_up() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::Runs(100), Takes::Runs(11_000)];
    world.until("on sent", |world| world.kinds().len() == 2);
    world.annotate(KEY, HARD);
    // The BMC says "already off", twice off, and then runs the power-on.
    world.until("it came on", World::is_on);
    assert_eq!(
        world.power().off_confirmed_at,
        None,
        "not proved in between"
    );
    world.until_confirmed();
    assert!(!world.is_on());
}
