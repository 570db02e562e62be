//! §10.6: a soft reboot is told apart from a reboot that did not happen, and proves nothing.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;
use super::kit::*;

/// A run that finds its node in phase `rebooting`; systemd counted `before` when the command was
/// announced, and counts `after` now.
fn returned_userspace(before: Option<u32>, after: Option<u32>) -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Rebooting);
    set_record(&mut seen, |record| record.soft_reboots = before);
    seen.host.soft_reboots = after;
    seen.run.adopted_attempt = Some(1);
    seen
}

fn accepting() -> RebootConfig {
    RebootConfig {
        accept_soft: true,
        ..config()
    }
}

#[test]
fn the_count_is_in_the_record_before_the_command() {
    let mut drained = seen(RebootPhase::Draining);
    drained.host.soft_reboots = Some(3);
    let announced = decide(&drained, &config(), now(5));
    assert_eq!(written(&announced).soft_reboots, Some(3));
}

#[test]
fn a_soft_reboot_is_told_apart_and_nothing_is_undone() {
    let table = [
        (Some(3), Some(4), RebootReason::SoftRebootOnly),
        (Some(3), Some(3), RebootReason::AwaitingReboot),
        (Some(3), None, RebootReason::AwaitingReboot),
        (None, Some(4), RebootReason::AwaitingReboot),
    ];
    for (before, after, reason) in table {
        let decision = decide(&returned_userspace(before, after), &config(), now(5));
        assert_eq!(decision.cause.reason, reason, "{before:?} {after:?}");
        assert!(decision.actions.is_empty(), "{before:?} {after:?}");
        let is_said = has_event(&decision, RebootReason::SoftRebootOnly);
        assert_eq!(is_said, reason == RebootReason::SoftRebootOnly);
    }
}

#[test]
fn after_the_last_attempt_the_message_still_tells_of_the_soft_reboot() {
    let mut seen = returned_userspace(Some(0), Some(1));
    set_record(&mut seen, |record| record.attempts = 2);
    seen.run.adopted_attempt = Some(2);
    let decision = decide(&seen, &config(), now(7200));
    assert_eq!(decision.cause.reason, RebootReason::RebootFailed);
    assert!(decision.cause.message.contains("soft reboot"));
}

#[test]
fn a_policy_may_accept_it_and_the_record_says_so() {
    let seen = returned_userspace(Some(0), Some(1));
    let accepted = decide(&seen, &accepting(), now(5));
    assert_eq!(accepted.cause.reason, RebootReason::SoftRebooted);
    let record = written(&accepted);
    assert_eq!((record.phase, record.soft), (RebootPhase::Returning, true));
    for counts in [(Some(1), Some(1)), (None, Some(1)), (Some(1), None)] {
        let decision = decide(
            &returned_userspace(counts.0, counts.1),
            &accepting(),
            now(5),
        );
        assert_eq!(decision.cause.reason, RebootReason::AwaitingReboot);
    }
}

#[test]
fn it_never_counts_as_a_power_cycle() {
    let mut seen = returned_userspace(Some(0), Some(1));
    set_record(&mut seen, |record| {
        record.trigger.method = RebootMethod::PowerCycle;
    });
    let decision = decide(&seen, &accepting(), now(5));
    assert!(decision.actions.is_empty());
    assert_eq!(decision.cause.reason, RebootReason::AwaitingReboot);
}

#[test]
fn afterwards_the_last_reboot_says_soft_and_its_trigger_was_served() {
    let mut back = seen(RebootPhase::Returning);
    set_record(&mut back, |record| {
        record.soft = true;
        record.cordoned_by_us = false;
    });
    set(&mut back, |node| node.unschedulable = false);
    back.run.ready_since = Some(std::time::Duration::ZERO);
    back.gates = Some(Vec::new());
    back.lock.leases = Some(vec![free(0)]);
    let decision = decide(&back, &config(), now(60));
    let last = patch(&decision).last.clone().unwrap();
    assert!(last.soft && last.was_served());
    assert_eq!(last.old_boot_id, last.new_boot_id);
    assert_eq!(last.outcome, RebootOutcome::Rebooted);
    assert_eq!(last.last_rebooted_at(), Some(last.finished));
}

#[test]
fn an_accepted_soft_reboot_begins_the_return_at_that_moment() {
    let mut seen = returned_userspace(Some(0), Some(1));
    set_record(&mut seen, |record| {
        record.message = "drained".into();
        record.usable = Some(wall(1));
    });
    let accepted = decide(&seen, &accepting(), now(9));
    let record = written(&accepted);
    assert_eq!((record.since, record.usable), (wall(9), None));
    let message = "a soft reboot, which the policy accepts: systemd has restarted userspace, boot \
                   boot-1 goes on";
    assert_eq!(record.message, message);
    assert_eq!(patch(&accepted).waiting_label, Some(false));
}
