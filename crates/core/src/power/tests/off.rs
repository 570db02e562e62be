//! Powering off and its proof. Source: specification §3.2.

use std::time::Duration;

use super::world::*;
use crate::power::*;

#[test]
fn pending_and_the_first_intention_are_one_write_before_anything_is_sent() {
    let mut world = World::new(&[], true, true);
    world.run(5);
    let before = world.writes.len();
    world.annotate(BASE, "");
    world.until("sent", |world| !world.sent.is_empty());
    let (_, status) = &world.writes[before];
    assert!(status.pending_reboot_since.is_some());
    let command = status.power.command.as_ref().unwrap();
    assert_eq!(command.id, world.sent[0].id);
    assert_eq!(command.end, PendingCommandEnd::Open);
}

#[test]
fn pending_later_than_last_powered_on_powers_off_whatever_online_says() {
    for online in [true, false] {
        let mut world = World::new(&[], online, true);
        world.seen.host_mut().status.pending_reboot_since = Some(world.now().wall);
        world.until_confirmed();
        assert_eq!(world.power_offs(), 1);
    }
}

#[test]
fn soft_first_with_one_deadline_then_hard() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].shuts_down = None;
    world.until("hard", |world| {
        world.kinds() == [PowerCommand::SoftOff, PowerCommand::Off]
    });
    let took = world.sent[1].sent - world.sent[0].sent;
    assert!((179_900..181_000).contains(&took), "{took}");
    assert!(world.said(PowerReason::SoftPowerOffTimedOut));
    world.until_confirmed();
    assert_eq!(
        world.power().history[1].outcome,
        PowerReason::SoftPowerOffTimedOut.as_str()
    );
    assert_eq!(
        world.power().history[0].outcome,
        PowerReason::PoweredOff.as_str()
    );
    assert_eq!(world.power().history[0].attempts, 2);
}

#[test]
fn the_soft_deadline_is_one_over_a_crash_and_over_a_clock_that_jumps() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].shuts_down = None;
    world.run(60);
    world.crash(10_000);
    world.until("hard", |world| world.kinds().contains(&PowerCommand::Off));
    let took = world.sent.last().unwrap().sent - world.sent[0].sent;
    assert!((179_000..182_000).contains(&took), "{took}");

    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].shuts_down = None;
    world.run(60);
    world.wall_ahead -= 3_600_000;
    world.until("hard", |world| world.kinds().contains(&PowerCommand::Off));
    let took = world.sent.last().unwrap().sent - world.sent[0].sent;
    assert!((179_000..182_000).contains(&took), "{took}");
}

#[test]
fn hard_at_once_if_asked_or_if_the_bmc_knows_no_soft_one() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    assert_eq!(world.kinds(), [PowerCommand::Off]);

    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].takes = vec![Takes::Fails(FaultClass::Unsupported)];
    world.until_confirmed();
    assert_eq!(world.kinds(), [PowerCommand::SoftOff, PowerCommand::Off]);
    assert!(world.said(PowerReason::SoftPowerOffUnsupported));

    let mut world = World::new(&[(KEY, "")], true, true);
    let about = BmcInfo {
        commands: vec![PowerCommand::On, PowerCommand::Off],
        ..BmcInfo::default()
    };
    let now = world.mono();
    world.seen.memory.record_check(0, Ok(about), now, now);
    world.until_confirmed();
    assert_eq!(world.kinds(), [PowerCommand::Off]);
    assert!(world.said(PowerReason::SoftPowerOffUnsupported));
}

#[test]
fn a_soft_power_off_that_fails_twice_becomes_a_hard_one() {
    let mut world = World::new(&[(KEY, "")], true, true);
    world.bmcs[0].takes = vec![Takes::Fails(FaultClass::Refused); 2];
    world.until_confirmed();
    assert_eq!(
        world.kinds(),
        [
            PowerCommand::SoftOff,
            PowerCommand::SoftOff,
            PowerCommand::Off
        ]
    );
    assert!(world.said(PowerReason::SoftPowerOffFailed));
}

#[test]
fn off_is_confirmed_soon_after_the_confirm_interval() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until("off", |world| !world.is_on());
    let off = world.time;
    world.until_confirmed();
    let over = world.time - off - 5_000;
    assert!(
        over <= 400,
        "{over} ms, with a reading each 200 ms and steps of 50 ms"
    );
}

#[test]
fn off_is_confirmed_only_after_our_own_command_was_answered_also_on_a_host_that_is_off() {
    let mut world = World::new(&[(KEY, HARD)], false, false);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Refused);
    world.run(300);
    assert_eq!(world.status().powered_on, Some(false), "it reads off");
    assert_eq!(world.power().off_confirmed_at, None, "and is not proved");
    world.bmcs[0].default_takes = Takes::Runs(100);
    world.until_confirmed();
    assert_eq!(
        world.power().history[0].outcome,
        PowerReason::AlreadyOff.as_str()
    );
}

#[test]
fn a_command_of_unknown_end_holds_the_proof_up_until_it_can_be_run_no_more() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::Silent {
        after: 10_000,
        runs: None,
    }];
    world.until("off", |world| !world.is_on());
    let lost = world.sent[0].lost.unwrap();
    world.until_confirmed();
    assert!(world.time - lost >= 35_000, "settle and a confirm interval");
    assert!(world.time - lost < 36_500);
}

#[test]
fn a_power_on_of_unknown_end_holds_the_next_proof_up_also_over_a_crash() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    let silent = Takes::Silent {
        after: 10_000,
        runs: Some(25_000),
    };
    world.bmcs[0].takes = vec![Takes::Runs(100), silent];
    world.until("on sent", |world| world.kinds().len() == 2);
    world.annotate(KEY, HARD);
    world.until("off sent", |world| world.kinds().len() == 3);
    world.run(1);
    world.crash(1_000);
    world.until_confirmed();
    world.run(120);
    assert!(!world.is_on());
    let late = world
        .transitions
        .iter()
        .rposition(|(_, is_on)| *is_on)
        .unwrap();
    let (late, _) = world.transitions[late];
    let confirmed = world.writes.iter().rev().take_while(|(at, _)| *at > late);
    assert!(
        confirmed.count() > 0,
        "the late power-on came before the last proof"
    );
    let first = world
        .writes
        .iter()
        .filter(|(_, status)| status.power.off_confirmed_at.is_some());
    assert!(
        first
            .map(|(at, _)| *at)
            .filter(|at| *at > world.sent[2].sent)
            .min()
            .unwrap()
            > late
    );
}

#[test]
fn found_on_while_held_off_is_off_again() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    let first = world.power().off_confirmed_at;
    world.run(30);
    world.set_power(true);
    world.until_confirmed();
    assert!(world.said(PowerReason::FoundOn));
    assert!(!world.is_on());
    assert!(world.power().off_confirmed_at > first);
    let cleared = |(_, status): &(u64, HostStatus)| status.power.off_confirmed_at.is_none();
    assert!(world.writes.iter().rev().take(4).any(cleared));
}

#[test]
fn a_base_annotation_on_a_host_that_is_confirmed_off_is_removed_and_does_nothing() {
    let mut world = World::new(&[], false, true);
    world.until_confirmed();
    world.annotate(BASE, "");
    world.run(30);
    assert!(world.seen.host.annotations.is_empty());
    assert_eq!(world.kinds(), [PowerCommand::SoftOff]);
    assert_eq!(world.status().pending_reboot_since, None);
}

#[test]
fn a_key_that_comes_after_the_proof_gets_a_proof_of_its_own() {
    let mut world = World::new(&[], false, true);
    world.until_confirmed();
    let first = world.power().off_confirmed_at;
    world.annotate(KEY, HARD);
    world.until_confirmed();
    assert!(world.power().off_confirmed_at > first);
    assert_eq!(world.kinds().len(), 2);
    world.annotate(KEY, r#"{"mode":"hard","machineUID":"other"}"#);
    world.until_confirmed();
    assert_eq!(world.kinds().len(), 3, "another value is another request");
    world.remove(KEY);
    world.run(120);
    assert_eq!(world.kinds().len(), 3, "one that goes needs none");
    assert_eq!(world.power_offs(), 1, "all of it on a host that was off");
}

#[test]
fn a_key_that_comes_while_the_power_goes_off_is_proved_after_it_came() {
    let mut world = World::new(&[(BASE, HARD)], true, true);
    world.until("sent", |world| !world.sent.is_empty());
    world.run(1);
    world.annotate(KEY, HARD);
    let came = world.time;
    world.until("proved for it", |world| {
        let proof = find_off_proof(&world.seen, &world.config, world.now());
        let request = reboot_annotations(&world.seen.host)
            .into_iter()
            .find(|request| request.name == KEY);
        proof.is_some_and(|proof| proof.covers_annotation(&request.unwrap()))
    });
    assert!(world.sent.last().unwrap().sent >= came);
}

#[test]
fn another_address_makes_the_old_answer_and_the_old_proof_nothing() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    let address = BmcAddress::parse("redfish://192.0.2.77/redfish/v1/Systems/1");
    world.seen.host_mut().levels[0].devices[0].address = address;
    world.seen.memory.forget_bmc();
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    world.until_confirmed();
    assert_eq!(world.kinds().len(), 2);
}

#[test]
fn powered_on_is_false_only_while_two_readings_not_older_than_two_polls_say_off() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    for _ in 0..20 {
        world.run(30);
        assert_eq!(world.status().powered_on, Some(false), "polls keep it so");
    }
    world.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    world.run(60);
    assert_eq!(world.status().powered_on, Some(true), "unreadable is on");
    assert_eq!(world.power().state, Some(PowerState::Unknown));
    assert!(
        world.power().off_confirmed_at.is_some(),
        "nothing says that it is not off"
    );
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    world.bmcs[0].default_says = Says::Truth;
    world.until("known", |world| world.status().powered_on == Some(false));
    assert_eq!(world.power_offs(), 1);
}

#[test]
fn old_readings_are_no_reading() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    world.bmcs[0].default_says = Says::Slow(10_000_000);
    world.run(130);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.power().state, Some(PowerState::Unknown));
}

#[test]
fn never_read_is_on() {
    let mut world = World::new(&[], true, true);
    world.bmcs[0].default_says = Says::Fails(FaultClass::TimedOut);
    world.run(10);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.power().state, Some(PowerState::Unknown));
    world.seen.host_mut().status.powered_on = Some(false);
    world.crash(1_000);
    world.run(10);
    assert_eq!(world.status().powered_on, Some(true), "status is no proof");
}

#[test]
fn powering_off_is_not_off() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_says = Says::Lie(PowerReading::PoweringOff);
    world.run(300);
    assert_eq!(world.power().off_confirmed_at, None);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.power().state, Some(PowerState::PoweringOff));
}

#[test]
fn a_power_off_that_does_not_take_is_sent_again_within_a_minute_and_said() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_takes = Takes::Ignores;
    world.run(900);
    assert!(world.said(PowerReason::PowerOffRetried));
    let gaps = world
        .sent
        .windows(2)
        .map(|pair| pair[1].sent - pair[0].sent);
    let longest = gaps.max().unwrap();
    assert!(longest <= 95_000, "settle and at most a minute: {longest}");
    world.bmcs[0].default_takes = Takes::Runs(100);
    world.until_confirmed();
}

#[test]
fn a_wrong_password_is_not_tried_so_often_that_it_locks_the_account() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::WrongCredentials);
    world.bmcs[0].default_says = Says::Fails(FaultClass::WrongCredentials);
    world.checks_are_good = false;
    world.run(600);
    assert!(world.sent.len() <= 21, "{}", world.sent.len());
    let gaps = world
        .sent
        .windows(2)
        .map(|pair| pair[1].sent - pair[0].sent);
    assert!(gaps.min().unwrap() >= 30_000);
}

#[test]
fn a_power_off_that_is_not_wanted_any_more_is_withdrawn_before_it_is_sent_and_watched_after() {
    let mut world = World::new(&[], false, true);
    world.bmcs[0].shuts_down = None;
    world.run(30);
    assert_eq!(world.kinds(), [PowerCommand::SoftOff]);
    world.seen.host_mut().online = true;
    world.until("closed", |world| world.power().command.is_none());
    assert!(world.is_on());
    assert_eq!(world.kinds(), [PowerCommand::SoftOff], "no hard one");
    assert_eq!(
        world.power().history[0].outcome,
        PowerReason::Withdrawn.as_str()
    );

    let mut world = World::new(&[], false, true);
    world.run(5);
    world.seen.host_mut().online = true;
    world.until_on();
    world.until("its shutdown", |world| world.power_offs() == 1);
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::SoftOff, PowerCommand::On]);
}

#[test]
fn a_lie_of_one_reading_proves_nothing() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::Runs(8_000)];
    // The BMC says off at once, in one reading; the machine runs on for eight seconds.
    world.bmcs[0].says = vec![Says::Truth, Says::Lie(PowerReading::Off)];
    world.until_confirmed();
    let (off, _) = world.transitions[0];
    assert!(world.time >= off + 5_000);
}

#[test]
fn a_proof_names_its_readings_and_ends_with_them() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
    world.until_confirmed();
    let proof_now = find_off_proof(&world.seen, &world.config, world.now()).unwrap();
    let [first, second] = proof_now.off_readings().unwrap().both;
    assert_eq!(proof_now.valid_since(), first.asked);
    assert!(second.asked >= first.answered + Duration::from_secs(5));
    assert_eq!(proof_now.uid(), "uid");
    let id = world.sent[0].id.clone();
    assert_eq!(*proof_now.source(), ProofSource::OurCommand { id });
    let request = reboot_annotations(&world.seen.host).remove(0);
    assert!(proof_now.covers_annotation(&request));
    world.crash(1_000);
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None,
        "status is no proof"
    );
    world.run(60 + 60);
    assert!(find_off_proof(&world.seen, &world.config, world.now()).is_some());
    world.seen.owner = HostOwner::NotYetKnown;
    assert_eq!(
        find_off_proof(&world.seen, &world.config, world.now()),
        None
    );
}

/// Whether these readings prove off. Oldest first, each with the milliseconds from the answer to
/// the power-off until it was requested.
fn proves(readings: &[(u64, PowerReading)], now: u64) -> bool {
    let ms = Duration::from_millis;
    let mut world = World::new(&[(KEY, HARD)], true, true);
    let ended = |world: &World| world.seen.memory.command.clone()?.ended;
    world.until("answered", |world| ended(world).is_some());
    let (at, _) = ended(&world).unwrap();
    world.seen.memory.readings.clear();
    for (asked, said) in readings {
        world.seen.memory.record_reading(LevelReading {
            level: 0,
            asked: at + ms(*asked),
            answered: at + ms(*asked + 20),
            result: Ok(*said),
            system_uuid: None,
        });
    }
    let mut then = world.now();
    then.mono = at + ms(now);
    let decision = decide(&world.seen, &world.config, "p1/9", 0.5, then);
    decision.actions.iter().any(|action| {
        matches!(action, PowerAction::WriteStatus(write) if write.status.power.off_confirmed_at.is_some())
    })
}

#[test]
fn two_readings_closer_than_the_confirm_interval_or_with_another_between_prove_nothing() {
    use PowerReading::{Off, On};
    assert!(proves(&[(100, Off), (5_200, Off)], 6_000));
    for readings in [
        &[(100, Off), (5_050, Off)][..],
        &[(100, Off), (4_000, Off), (5_200, Off)],
        &[(100, Off), (3_000, On), (5_200, Off)],
        &[(100, Off), (5_200, Off), (5_300, On)],
        &[(100, Off)],
    ] {
        assert!(!proves(readings, 6_000), "{readings:?}");
    }
}

#[test]
fn readings_that_became_old_before_they_were_written_down_prove_nothing() {
    let readings = [(100, PowerReading::Off), (5_200, PowerReading::Off)];
    assert!(proves(&readings, 119_000));
    assert!(
        !proves(&readings, 121_000),
        "the process was stopped for two polls"
    );
}

#[test]
fn an_answer_of_another_address_proves_nothing_of_this_one() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until("off read once", |world| {
        !world.is_on() && !world.sent.is_empty()
    });
    world.run(1);
    let address = BmcAddress::parse("redfish://192.0.2.77/redfish/v1/Systems/1");
    world.seen.host_mut().levels[0].devices[0].address = address;
    world.seen.memory.forget_bmc();
    world.until_confirmed();
    let mut confirmed = world
        .writes
        .iter()
        .filter(|(_, s)| s.power.off_confirmed_at.is_some());
    let (_, first) = confirmed.next().unwrap();
    let by = first.power.command.as_ref().unwrap();
    assert_eq!(by.id, world.sent[1].id, "by the command to the new address");
}

#[test]
fn an_off_that_another_leader_wrote_is_on_until_it_is_read() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.until_confirmed();
    world.crash(0);
    world.bmcs[0].default_says = Says::Slow(600_000);
    world.run(1);
    assert_eq!(world.status().powered_on, Some(true));
    assert_eq!(world.power().state, Some(PowerState::Unknown));
}

#[test]
fn an_answer_that_comes_late_is_an_old_one() {
    let mut memory = PowerMemory::default();
    for asked in [2, 3, 1] {
        memory.record_reading(LevelReading {
            level: 0,
            asked: Duration::from_secs(asked),
            answered: Duration::from_secs(9),
            result: Ok(PowerReading::Off),
            system_uuid: None,
        });
    }
    let asked: Vec<_> = memory
        .readings
        .iter()
        .map(|read| read.asked.as_secs())
        .collect();
    assert_eq!(asked, [3, 2]);
}

#[test]
fn a_202_that_names_no_task_is_not_sent_again_and_two_readings_after_power_settle_prove_it() {
    for settle in [1, 30] {
        let mut world = World::new(&[(KEY, HARD)], true, true);
        world.config.settle = Duration::from_secs(settle);
        world.bmcs[0].default_takes = Takes::NamesNoTask(400);
        world.until_confirmed();
        assert_eq!(world.kinds(), [PowerCommand::Off], "sent once");
        let answered = world.sent[0].answered.expect("answered");
        let took = world.time - answered;
        let least = settle * 1_000 + 5_000;
        assert!((least..least + 1_500).contains(&took), "{took}");
    }
}

#[test]
fn a_202_that_names_no_task_and_does_nothing_is_sent_again_after_power_settle() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::NamesNoTask(600_000)];
    world.until("sent again", |world| world.sent.len() == 2);
    assert!(world.sent[1].sent - world.sent[0].sent >= 30_000);
    world.until_confirmed();
    assert_eq!(world.kinds(), [PowerCommand::Off; 2]);
}

#[test]
fn a_202_that_names_no_task_holds_the_next_leaders_proof_up_as_well() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].default_takes = Takes::NamesNoTask(400);
    world.until("written down", |world| {
        let command = world.power().command.as_ref();
        command.is_some_and(|command| matches!(command.end, PendingCommandEnd::Answered { .. }))
    });
    world.crash(1_000);
    let begun = world.down_until;
    world.until_confirmed();
    assert!(world.time - begun >= 35_000, "settle, then two readings");
    assert_eq!(world.kinds(), [PowerCommand::Off]);
}

#[test]
fn a_202_that_names_no_task_may_be_run_for_power_settle_after_its_answer() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.bmcs[0].takes = vec![Takes::NamesNoTaskLate(8_000)];
    world.until_confirmed();
    let answered = world.sent[0].answered.expect("answered");
    assert!(answered - world.sent[0].sent >= 8_000);
    assert!(world.time - answered >= 35_000, "{}", world.time - answered);
}

#[test]
fn a_slow_bmc_has_the_time_to_show_what_it_did_before_it_is_sent_again() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.config.settle = Duration::from_secs(1);
    world.bmcs[0].default_takes = Takes::Runs(5_000);
    world.bmcs[0].default_says = Says::Slow(8_000);
    world.until_confirmed();
    assert_eq!(world.kinds(), [PowerCommand::Off]);
    world.remove(KEY);
    world.until_on();
    assert_eq!(world.kinds(), [PowerCommand::Off, PowerCommand::On]);
}

#[test]
fn a_host_that_was_off_as_wanted_is_proved_off_for_a_key_that_comes() {
    let mut world = World::new(&[], false, false);
    world.run(60);
    assert_eq!(
        (world.kinds(), world.because()),
        (vec![], PowerReason::AsWanted)
    );
    world.annotate(KEY, HARD);
    world.until("proved", |world| {
        find_off_proof(&world.seen, &world.config, world.now()).is_some()
    });
    assert_eq!(world.kinds(), [PowerCommand::Off]);
}

#[test]
fn a_proof_that_another_address_made_nothing_is_not_made_again_for_nobody() {
    let mut world = World::new(&[], false, true);
    world.until_confirmed();
    let sent = world.kinds().len();
    let address = BmcAddress::parse("redfish://192.0.2.77/redfish/v1/Systems/1");
    world.seen.host_mut().levels[0].devices[0].address = address;
    world.seen.memory.forget_bmc();
    world.run(300);
    assert_eq!(world.kinds().len(), sent, "it reads off, as it is wanted");
    assert_eq!(world.because(), PowerReason::AsWanted);
    assert_eq!(world.power().off_confirmed_at, None);
}

#[test]
fn a_power_off_that_failed_is_not_sent_again_to_a_host_that_reads_off() {
    let mut world = World::new(&[], false, true);
    world.bmcs[0].default_takes = Takes::Fails(FaultClass::Refused);
    world.until("failed", |world| world.sent.len() == 2);
    world.set_power(false);
    world.until("read", |world| world.status().powered_on == Some(false));
    let sent = world.sent.len();
    world.run(600);
    assert_eq!(world.sent.len(), sent);
    assert_eq!(world.because(), PowerReason::AsWanted);
}

#[test]
fn a_host_that_is_off_stays_so_behind_a_bmc_that_takes_as_long_as_a_call_may() {
    let mut world = World::new(&[(KEY, HARD)], true, true);
    world.config.poll = Duration::from_secs(10);
    world.bmcs[0].default_says = Says::Slow(9_900);
    world.until_confirmed();
    world.until("said", |world| world.status().powered_on == Some(false));
    for _ in 0..1_200 {
        world.run(1);
        assert_eq!(world.status().powered_on, Some(false), "{}", world.time);
    }
}
