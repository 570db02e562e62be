//! §2.1: what asks for a reboot.

use super::super::*;
use super::kit::*;

fn request(not_before: Option<jiff::Timestamp>) -> ParsedAnnotation<RebootRequest> {
    ParsedAnnotation::Is(RebootRequest {
        reason: "patch".into(),
        requester: "me".into(),
        not_before,
        ..RebootRequest::default()
    })
}

pub(super) fn last(fingerprints: &[(&str, &str)]) -> LastReboot {
    LastReboot {
        outcome: RebootOutcome::Rebooted,
        planned: wall(0),
        finished: wall(1),
        old_boot_id: boot("boot-0"),
        new_boot_id: boot("boot-1"),
        trigger: record(RebootPhase::Waiting).trigger,
        began: std::collections::BTreeMap::new(),
        rebooted: None,
        soft: false,
        fingerprints: fingerprints
            .iter()
            .map(|(s, f)| ((*s).to_owned(), print(f)))
            .collect(),
    }
}

const SENTINEL: &str = "sentinel:/run/reboot-needed";

#[test]
fn a_sentinel_makes_a_plan_that_waits_and_looks_at_the_lock_at_once() {
    let decision = decide(&idle(), &config(), now(5));
    let record = written(&decision);
    assert_eq!(
        (record.phase, record.attempts, record.cordoned_by_us),
        (RebootPhase::Waiting, 0, false)
    );
    assert_eq!(record.serves.get(SENTINEL), Some(&print("a")));
    assert_eq!(patch(&decision).waiting_label, Some(true));
    assert_eq!(
        patch(&decision).unschedulable,
        None,
        "nothing is touched yet"
    );
    assert!(
        decision
            .observe
            .iter()
            .any(|look| matches!(look, RebootObserve::Locks { .. }))
    );
}

#[test]
fn an_idle_node_does_nothing_and_looks_at_nothing() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(
        (decision.actions, decision.observe, decision.wake),
        (vec![], vec![], None)
    );
}

#[test]
fn a_label_without_a_record_is_removed_so_that_nobody_calls_who_does_not_wait() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| node.waiting_label = true);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(patch(&decision).waiting_label, Some(false));
    assert_eq!(patch(&decision).record, RecordChange::Remove);
}

#[test]
fn what_cannot_be_read_is_reported_and_neither_begins_nor_ends_a_reboot() {
    let mut seen = idle();
    seen.host.triggers = vec![unknown()];
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.actions, []);
    assert!(has_event(&decision, RebootReason::TriggerUnknown));
    for phase in [RebootPhase::Waiting, RebootPhase::Draining] {
        let mut seen = super::kit::seen(phase);
        seen.host.triggers = vec![unknown()];
        let decision = decide(&seen, &config(), now(5));
        assert_ne!(
            decision.cause.reason,
            RebootReason::TriggerGone,
            "{phase:?}"
        );
    }
}

#[test]
fn a_request_is_a_trigger_from_its_time_on() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| {
        node.request = request(Some(wall(100)));
        node.request_fingerprint = Some(print("r"));
    });
    let early = decide(&seen, &config(), now(40));
    assert_eq!(early.actions, []);
    assert_eq!(early.wake.unwrap().at.as_secs(), 100);
    let due = decide(&seen, &config(), now(100));
    assert_eq!(written(&due).trigger.requester.as_deref(), Some("me"));
    assert_eq!(written(&due).serves.get("request"), Some(&print("r")));
}

#[test]
fn a_request_for_later_is_looked_at_again_in_case_the_clock_is_set() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| {
        node.request = request(Some(wall(1_000_000)));
        node.request_fingerprint = Some(print("r"));
    });
    assert!(decide(&seen, &config(), now(0)).wake.unwrap().at.as_secs() <= 300);
}

#[test]
fn a_bad_request_is_reported_and_left_alone() {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| {
        node.request = ParsedAnnotation::Bad { why: "eof".into() };
    });
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.actions, []);
    assert!(has_event(&decision, RebootReason::RequestUnreadable));
}

#[test]
fn a_request_that_becomes_unreadable_under_way_has_not_gone() {
    let mut seen = super::kit::seen(RebootPhase::Draining);
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| {
        node.request = ParsedAnnotation::Bad { why: "eof".into() };
    });
    set_record(&mut seen, |record| {
        record.serves = [("request".to_owned(), print("r"))].into();
    });
    assert_ne!(
        decide(&seen, &config(), now(5)).cause.reason,
        RebootReason::TriggerGone
    );
}

#[test]
fn a_trigger_that_survived_its_boot_causes_no_other_until_it_is_touched_anew() {
    let mut seen = idle();
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last(&[(SENTINEL, "a")]));
    });
    let survived = decide(&seen, &config(), now(5));
    assert_eq!(survived.actions, []);
    let said = survived
        .report
        .conditions
        .iter()
        .find(|c| c.kind == "SentinelSurvivedReboot")
        .unwrap();
    assert_eq!(said.status, crate::condition::ConditionStatus::True);
    seen.host.triggers = vec![present("b")];
    assert_eq!(
        written(&decide(&seen, &config(), now(5))).phase,
        RebootPhase::Waiting
    );
}

fn command(state: TriggerState) -> ObservedTrigger {
    ObservedTrigger {
        source: "command".into(),
        state,
    }
}

#[test]
fn a_command_that_said_no_since_asks_anew_however_alike_its_words() {
    let same = || TriggerState::Present {
        fingerprint: print("output of nothing"),
        reason: String::new(),
    };
    let mut seen = idle();
    let served = [("command", "output of nothing"), (SENTINEL, "z")];
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last(&served));
    });
    seen.host.triggers = vec![command(same())];
    assert_eq!(decide(&seen, &config(), now(5)).actions, [], "it survived");
    seen.host.triggers = vec![absent(), command(TriggerState::Absent)];
    let gone = decide(&seen, &config(), now(5));
    let patch = patch(&gone);
    let kept = patch.last.clone().unwrap();
    assert_eq!(patch.record, RecordChange::Remove);
    assert_eq!(kept, last(&[(SENTINEL, "z")]), "nothing else changes");
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(kept);
    });
    assert_eq!(decide(&seen, &config(), now(5)).actions, [], "once");
    seen.host.triggers = vec![command(same())];
    let anew = decide(&seen, &config(), now(5));
    assert_eq!(written(&anew).phase, RebootPhase::Waiting);
}

#[test]
fn a_command_that_a_new_process_has_not_run_yet_has_not_said_no() {
    for phase in [RebootPhase::Waiting, RebootPhase::Draining] {
        let mut seen = super::kit::seen(phase);
        set_record(&mut seen, |record| {
            record.serves = [("command".to_owned(), print("a"))].into();
        });
        seen.host.triggers = vec![absent()];
        let early = decide(&seen, &config(), now(5));
        assert_ne!(early.cause.reason, RebootReason::TriggerGone, "{phase:?}");
        seen.host.triggers.push(command(TriggerState::Absent));
        let then = decide(&seen, &config(), now(5));
        assert_eq!(then.cause.reason, RebootReason::TriggerGone, "{phase:?}");
    }
}

#[test]
fn a_survivor_stays_served_after_the_next_reboot_for_another_reason() {
    let mut seen = finished();
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last(&[(SENTINEL, "a"), ("request", "old")]));
    });
    set_record(&mut seen, |record| {
        record.serves = [("request".to_owned(), print("r"))].into();
    });
    let decision = decide(&seen, &config(), now(60));
    let kept = &patch(&decision).last.as_ref().unwrap().fingerprints;
    assert_eq!(kept.get(SENTINEL), Some(&print("a")));
    assert_eq!(kept.get("request"), Some(&print("r")));
}

#[test]
fn a_served_request_is_removed_and_one_that_came_meanwhile_is_not() {
    for (there, removed) in [("r", true), ("newer", false)] {
        let mut seen = finished();
        set_record(&mut seen, |record| {
            record.serves = [("request".to_owned(), print("r"))].into();
        });
        set(&mut seen, |node| {
            node.request = request(None);
            node.request_fingerprint = Some(print(there));
        });
        assert_eq!(
            patch(&decide(&seen, &config(), now(60))).remove_request,
            removed,
            "{there}"
        );
    }
}

#[test]
fn a_withdrawn_reboot_keeps_what_the_last_real_one_served() {
    let mut seen = super::kit::seen(RebootPhase::Waiting);
    seen.host.triggers = vec![absent()];
    seen.lock.leases = Some(vec![free(0)]);
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last(&[(SENTINEL, "a")]));
    });
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(patch(&decision).record, RecordChange::Remove);
    assert_eq!(patch(&decision).last, None);
}

#[test]
fn without_a_boot_id_nothing_is_begun_and_it_is_said() {
    let mut seen = idle();
    seen.host.boot_id = Err("cannot read /proc: mount it".into());
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.actions, []);
    assert!(has_event(&decision, RebootReason::BootIdUnreadable));
}

#[test]
fn an_unreadable_record_stops_everything_and_is_left_alone() {
    let mut seen = idle();
    set(&mut seen, |node| {
        node.record = ParsedAnnotation::Bad { why: "eof".into() };
    });
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.actions, []);
    assert_eq!(decision.cause.reason, RebootReason::RecordUnreadable);
}

/// A returned node with its gates open and the lock released: only the record is left.
fn finished() -> RebootSnapshot {
    let mut seen = super::kit::seen(RebootPhase::Returning);
    seen.host.boot_id = Ok(boot("boot-2"));
    seen.lock.leases = Some(vec![free(0)]);
    seen.run.ready_since = Some(std::time::Duration::ZERO);
    seen.gates = Some(Vec::new());
    set(&mut seen, |node| node.unschedulable = false);
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    seen
}

#[test]
fn no_sentinel_is_believed_while_the_last_reboot_cannot_be_read_and_that_is_said() {
    let mut seen = idle();
    seen.host.triggers = vec![present("a")];
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Bad {
            why: "no JSON".into(),
        }
    });
    let decision = decide(&seen, &config(), now(10));
    assert_eq!(decision.actions, []);
    assert!(has_event(&decision, RebootReason::TriggerUnknown));
}

#[test]
fn a_sentinel_that_no_boot_served_is_planned_again() {
    let unserved = |outcome| LastReboot {
        outcome,
        new_boot_id: boot("boot-0"),
        ..last(&[(SENTINEL, "a")])
    };
    let table = [
        (unserved(RebootOutcome::Rebooted), false),
        (unserved(RebootOutcome::TriggerGone), false),
        (unserved(RebootOutcome::Aborted), true),
        (unserved(RebootOutcome::Released), true),
        (last(&[(SENTINEL, "a")]), true),
    ];
    for (last, served) in table {
        assert_eq!(last.was_served(), served, "{last:?}");
        let mut seen = idle();
        set(&mut seen, |node| {
            node.last_reboot = ParsedAnnotation::Is(last.clone());
        });
        let decision = decide(&seen, &config(), now(5));
        let plans = decision.cause.reason == RebootReason::RebootPlanned;
        assert_eq!(plans, !served, "{last:?}: {decision:?}");
    }
}

#[test]
fn a_command_that_still_says_needed_is_not_forgotten_because_a_sentinel_is_gone() {
    let needed = TriggerState::Present {
        fingerprint: print("output"),
        reason: String::new(),
    };
    let mut seen = idle();
    seen.host.triggers = vec![absent(), command(needed)];
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last(&[("command", "output")]));
    });
    assert_eq!(decide(&seen, &config(), now(5)).actions, []);
}

#[test]
fn an_unreadable_request_does_not_keep_a_reboot_that_it_did_not_ask_for() {
    let mut seen = super::kit::seen(RebootPhase::Draining);
    seen.host.triggers = vec![absent()];
    set(&mut seen, |node| {
        node.request = ParsedAnnotation::Bad { why: "eof".into() };
    });
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::TriggerGone);
}
