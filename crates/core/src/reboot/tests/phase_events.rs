//! §2.5: each phase is one Event, which says what happened.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::kit::*;
use crate::decision::EventSeverity;

/// Reason and message of the Normal Events of a node in this phase, by this method.
fn normal_events(
    phase: RebootPhase,
    method: RebootMethod,
    change: impl FnOnce(&mut RebootRecord),
) -> Vec<(&'static str, String)> {
    let mut seen = seen(phase);
    set_record(&mut seen, |record| {
        record.trigger.method = method;
        record.trigger.requester = Some("ann".into());
        record.message = "so it is".into();
        change(record);
    });
    let is_soft = match &seen.node {
        OwnNodeState::There(node) => node.record.get().is_some_and(|record| record.soft),
        OwnNodeState::NotYet | OwnNodeState::Gone => false,
    };
    if phase == RebootPhase::Returning && !is_soft {
        seen.host.boot_id = Ok(boot("boot-2"));
    }
    let events = decide(&seen, &config(), now(5)).report.events.into_iter();
    let normal = events.filter(|event| event.severity == EventSeverity::Normal);
    normal.map(|event| (event.reason, event.message)).collect()
}

#[test]
fn a_waiting_node_says_who_asks_for_what_and_why() {
    for (method, wish) in [
        (RebootMethod::Reboot, "a reboot"),
        (RebootMethod::PowerCycle, "a power cycle"),
        (RebootMethod::Hold, "a hold"),
    ] {
        let expected =
            format!("sentinel:/run/reboot-needed requests {wish} (kernel); waits for the lock");
        let events = normal_events(RebootPhase::Waiting, method, |_| {});
        assert_eq!(events, [("RebootPlanned", expected)]);
    }
}

#[test]
fn each_further_phase_is_said_in_the_words_of_its_method() {
    use RebootMethod::{Hold, PowerCycle, Reboot};
    use RebootPhase::{Draining, Holding, Rebooting, Returning};
    let table = [
        (Draining, Reboot, "Draining", "so it is"),
        (Rebooting, Reboot, "Rebooting", "attempt 1: so it is"),
        (Rebooting, PowerCycle, "Rebooting", "attempt 1: so it is"),
        (Holding, Hold, "Held", "held for ann: kernel"),
        (Returning, Hold, "HoldEnded", "so it is"),
        (
            Returning,
            Reboot,
            "NewBoot",
            "booted again: boot-1 → boot-2",
        ),
        (
            Returning,
            PowerCycle,
            "NewBoot",
            "booted again: boot-1 → boot-2",
        ),
    ];
    for (phase, method, reason, message) in table {
        let events = normal_events(phase, method, |_| {});
        assert_eq!(
            events,
            [(reason, message.to_owned())],
            "{phase:?} {method:?}"
        );
    }
}

#[test]
fn the_return_from_a_soft_reboot_does_not_say_that_the_node_booted() {
    let events = normal_events(RebootPhase::Returning, RebootMethod::Reboot, |record| {
        record.soft = true;
    });
    let message = "a soft reboot, which the policy accepts; boot boot-1 goes on";
    assert_eq!(events, [("SoftRebooted", message.to_owned())]);
}

#[test]
fn a_node_that_pauses_after_a_failed_attempt_is_not_said_to_wait_for_the_lock() {
    let events = normal_events(RebootPhase::Waiting, RebootMethod::Reboot, |record| {
        record.retry_after = Some(wall(60));
    });
    assert_eq!(events, []);
}
