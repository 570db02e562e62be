//! What is against switching a host, before it is done; and the words for readings and answers.

use super::single_host::*;
use crate::power::annotations::DETACHED_ANNOTATION;
use crate::power::*;

fn obstacle(change: impl FnOnce(&mut PowerSnapshot)) -> Option<(PowerReason, String)> {
    let mut single_host = SingleHost::new(&[], true);
    change(&mut single_host.seen);
    find_switching_obstacle(&single_host.seen, &single_host.config, single_host.now())
}

fn of_metal3(seen: &mut PowerSnapshot) {
    seen.owner = HostOwner::Metal3 {
        leader: "bmo-0".into(),
    };
}

#[test]
fn nothing_is_against_a_host_that_dogwatch_or_metal3_can_switch() {
    assert_eq!(obstacle(|_| ()), None);
    assert_eq!(obstacle(of_metal3), None);
}

#[test]
fn it_is_said_beforehand_why_a_host_cannot_be_switched() {
    type Change = fn(&mut PowerSnapshot);
    let changes: [(Change, PowerReason, &str); 5] = [
        (
            |seen| seen.host_mut().disable_power_off = true,
            PowerReason::PowerOffDisabled,
            "spec.disablePowerOff is set",
        ),
        (
            |seen| {
                of_metal3(seen);
                seen.host_mut().disable_power_off = true;
            },
            PowerReason::PowerOffDisabled,
            "spec.disablePowerOff is set",
        ),
        (
            |seen| {
                let detached = (DETACHED_ANNOTATION.to_owned(), String::new());
                seen.host_mut().annotations.extend([detached]);
            },
            PowerReason::Detached,
            "the host is detached",
        ),
        (
            |seen| seen.owner = HostOwner::NotYetKnown,
            PowerReason::OwnerNotYetKnown,
            "checking whether a baremetal-operator controls this host",
        ),
        (
            |seen| seen.same_system = vec![HostName::new("hosts", "h2")],
            PowerReason::SharedBMC,
            "its BMC reports the same machine as that of host hosts/h2",
        ),
    ];
    for (change, reason, says) in changes {
        let (found, text) = obstacle(change).expect(says);
        assert_eq!(found, reason, "{text}");
        assert!(text.starts_with(says), "{text}");
    }
}

#[test]
fn readings_and_answers_have_the_words_that_logs_show() {
    for (reading, word) in [
        (PowerReading::On, "On"),
        (PowerReading::PoweringOn, "PoweringOn"),
        (PowerReading::PoweringOff, "PoweringOff"),
        (PowerReading::Off, "Off"),
    ] {
        assert_eq!(reading.as_str(), word);
    }
    for (answer, word) in [
        (CommandAnswer::Accepted, "Accepted"),
        (CommandAnswer::AcceptedWithoutTask, "AcceptedWithoutTask"),
        (CommandAnswer::AlreadyThere, "AlreadyThere"),
    ] {
        assert_eq!(answer.as_str(), word);
    }
}
