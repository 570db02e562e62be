//! What the kubelet Leases say of a host that reads off.

use std::time::Duration;

use super::single_host::*;
use crate::power::node_liveness::{NodeLiveness, missed_renewal, observe_liveness};
use crate::power::*;

#[test]
fn a_renewal_is_missed_after_a_quarter_of_the_lease_and_a_fifth_more_within_bounds() {
    for (lasts, missed) in [
        (None, 12),
        (Some(40), 12),
        (Some(80), 24),
        (Some(200), 60),
        (Some(3_600), 300),
    ] {
        assert_eq!(missed_renewal(lasts.map(secs)), secs(missed), "{lasts:?}");
    }
}

#[test]
fn leases_that_were_read_before_the_host_went_off_say_nothing() {
    for (read, is_known) in [(59, false), (60, true), (61, true)] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.read(0, 60, PowerReading::Off);
        single_host.read_no_lease(read, None);
        let expected = if is_known {
            NodeLiveness::NoNode
        } else {
            NodeLiveness::NotKnown {
                next: single_host.now,
            }
        };
        assert_eq!(single_host.ctx().node_liveness(), expected, "{read}");
    }
}

#[test]
fn a_lease_is_read_every_ten_seconds_until_its_node_is_silent_or_renews_it() {
    let mut single_host = SingleHost::new(&[], true);
    single_host.read(0, 60, PowerReading::Off);
    for (read, expected) in [
        (60, NodeLiveness::NotKnown { next: secs(70) }),
        (70, NodeLiveness::NotKnown { next: secs(80) }),
        (80, NodeLiveness::NotKnown { next: secs(85) }),
        (85, NodeLiveness::Silent),
    ] {
        single_host.read_lease(read, 1);
        assert_eq!(single_host.ctx().node_liveness(), expected, "{read}");
    }
    single_host.read_lease(90, 2);
    let node = crate::name::NodeName::new("n1").unwrap();
    assert_eq!(single_host.ctx().node_liveness(), NodeLiveness::Lives(node));
}

#[test]
fn the_lease_of_a_living_node_is_read_again_after_thirty_seconds() {
    for (now, is_read, wakes_at) in [(71, false, Some(secs(100))), (100, true, None)] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.read(0, 60, PowerReading::Off);
        single_host.read_lease(60, 1);
        single_host.read_lease(70, 2);
        single_host.now = secs(now);
        let step = single_host.step(observe_liveness);
        let reads = step.observe.contains(&PowerObserve::KubeletLeases);
        assert_eq!((reads, step.wakes_at()), (is_read, wakes_at), "{now}");
    }
}

#[test]
fn a_later_reading_of_another_state_than_off_keeps_no_node_alive() {
    let mut single_host = SingleHost::new(&[], true);
    single_host.read(0, 60, PowerReading::Off);
    single_host.read_lease(60, 1);
    single_host.read_lease(70, 2);
    assert!(single_host.ctx().living_node().is_some());
    single_host.read(0, 71, PowerReading::On);
    assert_eq!(single_host.ctx().living_node(), None);
}

#[test]
fn a_bmc_that_shows_off_after_it_showed_life_is_believed_only_if_it_was_asked_later() {
    for (off, last_running) in [(99, Some(100)), (100, Some(100)), (101, None)] {
        let mut single_host = SingleHost::new(&[], true);
        single_host.read(0, 100, PowerReading::On);
        single_host.read(0, off, PowerReading::Off);
        let known = single_host.seen.memory.last_running.get(0).copied();
        assert_eq!(known, last_running.map(secs), "{off}");
    }
}

#[test]
fn a_bmc_does_not_contradict_itself() {
    let mut single_host = SingleHost::new(&[], true);
    single_host.read(0, 50, PowerReading::Off);
    single_host.read(0, 60, PowerReading::On);
    assert_eq!(single_host.seen.memory.contradicted, ByLevel::default());
}

#[test]
fn of_two_readings_that_were_asked_at_once_the_later_answer_is_the_newest() {
    let mut single_host = SingleHost::new(&[], true);
    single_host.read(0, 50, PowerReading::Off);
    single_host.read(0, 50, PowerReading::On);
    let newest = single_host.ctx().newest_reading(0).unwrap();
    assert_eq!(newest.result, Ok(PowerReading::On));
    assert_eq!(single_host.seen.memory.off_since.get(0), None::<&Duration>);
}
