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
    assert_eq!(status.power.state, Some(PowerState::PoweringOn));
    assert!(status.last_powered_on > status.pending_reboot_since);
    assert!(*at <= world.sent[1].sent);
    assert_eq!(world.kinds(), [PowerCommand::Off, PowerCommand::On]);
}

#[test]
fn base_is_removed_once_off_is_confirmed_and_before_the_power_on() {
    let mut world = World::new(&[(BASE, HARD), (KEY, HARD)], true, true);
    world.until_confirmed();
    world.run(60);
    let left: Vec<_> = world.seen.host.annotations.keys().cloned().collect();
    assert_eq!(left, [KEY]);
    assert!(!world.is_on(), "a key is left");
    assert_eq!(world.because(), PowerReason::HeldOff);
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
    assert_eq!(world.kinds()[1..], [PowerCommand::On; 3]);
    assert!(world.said(PowerReason::PowerOnRetried));
    let mut times: Vec<_> = world
        .writes
        .iter()
        .filter_map(|(_, s)| s.last_powered_on)
        .collect();
    times.dedup();
    assert_eq!(times.len(), 1);
    assert_eq!(world.power().history[0].attempts, 3);
    assert_eq!(
        world.power().history[0].outcome,
        PowerReason::PoweredOn.as_str()
    );
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
    assert_eq!(world.kinds(), [PowerCommand::Off, PowerCommand::On]);
}

#[test]
fn a_host_found_off_that_nobody_asked_to_be_off_is_powered_on_without_an_off_before_it() {
    let mut world = World::new(&[], true, true);
    world.run(120);
    world.set_power(false);
    let off = world.time;
    world.until("on", World::is_on);
    assert!(world.time - off >= 30_000, "two readings powerSettle apart");
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::On]);
    assert!(world.said(PowerReason::FoundOff));
    assert_eq!(
        world.status().last_powered_on,
        None,
        "off was not proved: it is no reboot"
    );
    assert_eq!(world.power().history[0].what, PowerCommand::On);
}

#[test]
fn a_host_found_off_whose_bmc_knows_no_soft_power_off_is_powered_on_as_well() {
    let mut world = World::new(&[], true, false);
    let about = BmcInfo {
        commands: vec![PowerCommand::On, PowerCommand::Off],
        ..BmcInfo::default()
    };
    let now = world.mono();
    world.seen.memory.record_check(0, Ok(about), now, now);
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::On]);
}

#[test]
fn a_bmc_that_says_off_of_a_running_host_never_costs_it_its_power() {
    for seconds in [10, 40, 60, 120, 600] {
        for shuts_down in [None, Some(5_000)] {
            let mut world = World::new(&[], true, true);
            world.bmcs[0].shuts_down = shuts_down;
            world.run(120);
            world.bmcs[0].default_says = Says::Lie(PowerReading::Off);
            world.run(seconds);
            world.bmcs[0].default_says = Says::Truth;
            world.run(600);
            let offs = world.kinds().into_iter().filter(|kind| kind.is_power_off());
            assert_eq!(offs.count(), 0, "an off on a reading alone: {seconds} s");
            assert_eq!(world.transitions, [], "{seconds} s");
            assert_eq!(world.power().command, None, "{seconds} s");
        }
    }
}

#[test]
fn a_power_off_that_is_not_wanted_any_more_is_not_sent_to_prove_what_a_bmc_says() {
    // Requested and withdrawn: the first try failed, the second was never sent, and the BMC says
    // off.
    let mut world = World::new(&[], false, true);
    world.bmcs[0].takes = vec![Takes::Fails(FaultClass::Refused)];
    world.until("sent", |world| !world.sent.is_empty());
    world.bmcs[0].default_says = Says::Lie(PowerReading::Off);
    world.seen.host_mut().online = true;
    world.run(300);
    assert_eq!(
        world.kinds()[..2],
        [PowerCommand::SoftOff, PowerCommand::On]
    );
    world.bmcs[0].default_says = Says::Truth;
    world.until_on();
    assert!(!world.kinds()[1..].iter().any(|kind| kind.is_power_off()));
    assert_eq!(world.transitions, []);
}

#[test]
fn an_outlet_whose_power_off_is_not_wanted_any_more_gives_its_power_back() {
    let mut world = World::new(&[], false, true);
    world.add_level();
    world.bmcs[0].default_takes = Takes::Ignores;
    world.bmcs[0].shuts_down = None;
    world.bmcs[1].default_takes = Takes::Silent {
        after: 2_000,
        runs: Some(100),
    };
    world.until("the outlet is off", |world| !world.bmcs[1].gives);
    world.seen.host_mut().online = true;
    world.bmcs[1].default_takes = Takes::Runs(100);
    world.until("the outlet is on", |world| world.bmcs[1].gives);
    world.until_on();
    let last = world.sent.last().expect("sent");
    assert_eq!((last.command, last.level), (PowerCommand::On, 1));
}

#[test]
fn a_host_that_reads_as_it_is_wanted_gets_no_command() {
    for (online, is_on) in [(false, false), (true, true)] {
        let mut world = World::new(&[], online, is_on);
        world.run(300);
        world.crash(12_000);
        world.run(300);
        assert_eq!(world.kinds(), [], "online: {online}");
        assert_eq!(world.status().powered_on, Some(is_on));
        assert_eq!(world.because(), PowerReason::AsWanted);
        let condition = world.condition("PowerAsWanted");
        assert_eq!(condition.status, crate::condition::ConditionStatus::True);
    }
}

#[test]
fn a_host_that_is_to_be_off_and_cannot_be_read_gets_no_command_until_it_can() {
    let mut world = World::new(&[], false, true);
    world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
    world.run(300);
    assert_eq!(world.kinds(), []);
    assert_eq!(world.because(), PowerReason::PowerUnknown);
    world.bmcs[0].default_says = Says::Truth;
    world.until_confirmed();
    assert_eq!(world.kinds(), [PowerCommand::SoftOff]);
}

#[test]
fn what_is_sent_to_a_host_that_is_to_be_off_ends_when_it_reads_off() {
    // A power-on of unknown end was under way, and had no effect.
    let mut world = World::new(&[], true, false);
    world.bmcs[0].default_takes = Takes::Silent {
        after: 2_000,
        runs: None,
    };
    world.until("on sent", |world| !world.sent.is_empty());
    world.seen.host_mut().online = false;
    world.run(120);
    assert_eq!(world.kinds(), [PowerCommand::On]);
    assert_eq!(world.because(), PowerReason::AsWanted);
    assert_eq!(world.power().command, None);
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
    // The BMC says "already off", reads off twice, and then runs the power-on.
    world.until("it came on", World::is_on);
    assert_eq!(
        world.power().off_confirmed_at,
        None,
        "not proved in between"
    );
    world.until_confirmed();
    assert!(!world.is_on());
}

#[test]
fn a_host_that_is_to_be_off_is_not_as_wanted_while_a_power_on_may_still_be_run() {
    let mut world = World::new(&[], true, false);
    let late = Takes::Silent {
        after: 10_000,
        runs: None,
    };
    world.bmcs[0].takes = vec![late];
    world.until("sent", |world| world.sent.len() == 1);
    world.seen.host_mut().online = false;
    world.run(35);
    let because = (world.because(), world.power().command.is_some());
    assert_eq!(because, (PowerReason::CommandOfUnknownEnd, true));
    world.run(60);
    assert_eq!(world.because(), PowerReason::AsWanted);
    assert_eq!(world.kinds(), [PowerCommand::On]);
}
