//! The queries that all parts of a power decision share.

use super::single_host::*;
use super::world::{HARD, KEY};
use crate::condition::ConditionStatus;
use crate::power::*;

#[test]
fn an_annotation_is_ignored_only_without_force_on_a_host_that_is_not_provisioned() {
    let forced = r#"{"force":true}"#;
    for (provisioned, value, ignored) in [
        (true, "", 0),
        (true, forced, 0),
        (false, "", 1),
        (false, forced, 0),
    ] {
        let mut single_host = SingleHost::new(&[(KEY, value)], true);
        single_host.seen.host_mut().externally_provisioned = Some(provisioned);
        let ctx = single_host.ctx();
        let case = format!("{provisioned} {value}");
        assert_eq!(ctx.ignored_annotations().count(), ignored, "{case}");
        assert_eq!(ctx.obeyed_annotations().count(), 1 - ignored, "{case}");
    }
}

#[test]
fn the_bmc_is_read_again_once_it_or_the_level_that_cut_the_power_reads_on() {
    use PowerReading::{Off, On};
    for (command, readings, level) in [
        (PowerCommand::On, &[][..], 1),
        (PowerCommand::On, &[(0, 95, Off)][..], 1),
        (PowerCommand::On, &[(1, 95, Off)][..], 1),
        (PowerCommand::On, &[(0, INTENDED - 1, On)][..], 1),
        (PowerCommand::On, &[(0, 95, On)][..], 0),
        (PowerCommand::On, &[(1, 95, On)][..], 0),
        (PowerCommand::On, &[(0, 95, On), (1, 95, On)][..], 0),
        (PowerCommand::Off, &[(0, 95, On), (1, 95, On)][..], 1),
        (PowerCommand::SoftOff, &[(1, 95, On)][..], 1),
    ] {
        let mut single_host = SingleHost::with_pdu(&[], true);
        single_host.intend(command, 1);
        for (of, at, said) in readings {
            single_host.read(*of, *at, *said);
        }
        assert_eq!(
            single_host.ctx().level_in_use(),
            level,
            "{command} {readings:?}"
        );
    }
}

#[test]
fn a_level_is_usable_if_it_has_devices_and_all_their_addresses_are_good() {
    let mut single_host = SingleHost::new(&[], true);
    assert!(single_host.ctx().is_level_usable(0));
    let good = single_host.seen.host.levels[0].devices.clone();
    let mut bad = good.clone();
    bad[0].address = BmcAddress::parse("");
    let mixed = [good, bad.clone()].concat();
    for devices in [Vec::new(), bad, mixed] {
        single_host.seen.host_mut().levels[0].devices = devices;
        assert!(!single_host.ctx().is_level_usable(0));
    }
}

#[test]
fn moments_are_said_in_wall_clock_time() {
    let single_host = SingleHost::new(&[], true);
    for (at, said) in [(90, "22:14:50Z"), (100, "22:15:00Z"), (130, "22:15:30Z")] {
        assert_eq!(single_host.ctx().wall_time_of(secs(at)), wall(secs(at)));
        assert_eq!(single_host.ctx().format_time_of(secs(at)), said);
    }
}

#[test]
fn a_need_was_first_seen_now_unless_it_is_remembered() {
    let mut single_host = SingleHost::with_command(true, PowerCommand::Off);
    let command = single_host.seen.host.status.power.command.clone().unwrap();
    assert_eq!(single_host.ctx().need_seen_at(&command), secs(INTENDED));
    single_host.seen.memory.need.as_mut().unwrap().since = wall(secs(1));
    assert_eq!(single_host.ctx().need_seen_at(&command), single_host.now);
    single_host.seen.memory.need = None;
    assert_eq!(single_host.ctx().need_seen_at(&command), single_host.now);
}

#[test]
fn before_it_is_known_whose_a_host_is_nothing_is_said_about_it() {
    let metal3 = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    for (owner, is_silent) in [
        (HostOwner::NotYetKnown, true),
        (metal3, false),
        (HostOwner::Ours, false),
    ] {
        let mut single_host = SingleHost::new(&[(KEY, HARD)], true);
        single_host.seen.owner = owner.clone();
        let report = single_host.decide().report;
        assert_eq!(report.conditions.is_empty(), is_silent, "{owner:?}");
    }
}

#[test]
fn a_failed_reading_counts_as_a_failed_check_only_if_it_is_newer_than_the_last_check() {
    let bad = || BmcFault::without_effect(FaultClass::Refused, "no");
    for (check, read, status) in [
        (Ok(()), Err(FaultClass::TimedOut), ConditionStatus::True),
        (Ok(()), Ok(PowerReading::On), ConditionStatus::True),
        (Err(bad()), Ok(PowerReading::On), ConditionStatus::False),
    ] {
        let mut single_host = SingleHost::new(&[], true);
        let found = check.clone().map(|()| BmcInfo::default());
        single_host
            .seen
            .memory
            .record_check(0, found, secs(90), secs(90));
        let later = u64::from(read.is_ok());
        single_host.read_at(0, secs(90 + later), read);
        let ready = readiness::ready_condition(&single_host.ctx(), None);
        assert_eq!(ready.status, status, "{check:?} {read:?}");
    }
}

#[test]
fn a_hosts_system_uuid_is_the_one_of_its_lowest_level_that_tells_one() {
    let tells = |uuid: Option<&str>| {
        Ok(BmcInfo {
            system_uuid: uuid.map(str::to_owned),
            ..BmcInfo::default()
        })
    };
    let mut single_host = SingleHost::with_pdu(&[], true);
    assert_eq!(bmc_system_uuid(&single_host.seen), None);
    for (level, uuid, expected) in [
        (0, None, None),
        (2, Some("c"), Some("c")),
        (1, Some("b"), Some("b")),
        (0, Some("a"), Some("a")),
    ] {
        single_host
            .seen
            .memory
            .record_check(level, tells(uuid), secs(90), secs(90));
        assert_eq!(
            bmc_system_uuid(&single_host.seen),
            expected,
            "{level} {uuid:?}"
        );
    }
}
