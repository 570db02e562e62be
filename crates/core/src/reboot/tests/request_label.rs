//! §10.6: a label asks for one reboot, and goes only when that reboot has succeeded.

use super::super::*;
use super::kit::*;

const KEY: &str = "nke.nvidia.com/reboot";
const SOURCE: &str = "label:nke.nvidia.com/reboot";

fn asking() -> RebootConfig {
    RebootConfig {
        request_label: Some(KEY.into()),
        ..config()
    }
}

fn with_label(seen: &mut RebootSnapshot, value: &str) {
    set(seen, |node| {
        node.labels.insert(KEY.into(), value.to_owned());
    });
}

/// Node `n1` without a record and without a sentinel; the label is set.
fn asked() -> RebootSnapshot {
    let mut seen = idle();
    seen.host.triggers = vec![absent()];
    with_label(&mut seen, "requested-by-nvsentinel");
    seen
}

/// Node `n1` is back from the reboot that the label asked for.
fn back() -> RebootSnapshot {
    let mut back = seen(RebootPhase::Returning);
    set_record(&mut back, |record| {
        record.serves = [(SOURCE.to_owned(), print("requested-by-nvsentinel"))].into();
        record.cordoned_by_us = false;
    });
    set(&mut back, |node| node.unschedulable = false);
    back.host.boot_id = Ok(boot("boot-2"));
    back.host.triggers = vec![absent()];
    back.run.ready_since = Some(std::time::Duration::ZERO);
    back.gates = Some(Vec::new());
    back.lock.leases = Some(vec![free(0)]);
    back
}

#[test]
fn the_label_asks_for_a_reboot_where_the_flag_names_it() {
    let planned = decide(&asked(), &asking(), now(5));
    let record = written(&planned);
    assert_eq!(record.trigger.source, SOURCE);
    assert_eq!(
        record.serves,
        [(SOURCE.to_owned(), print("requested-by-nvsentinel"))].into()
    );
    let ignored = decide(&asked(), &config(), now(5));
    assert_eq!(ignored.cause.reason, RebootReason::NoRebootWanted);
}

#[test]
fn it_goes_in_the_patch_that_ends_the_reboot_also_if_the_healer_writes_it() {
    let mut back = back();
    with_label(&mut back, "requested-by-nvsentinel");
    // The healer does not know the flag.
    for config in [asking(), config()] {
        let decision = decide(&back, &config, now(60));
        let patch = patch(&decision);
        assert_eq!(patch.remove_labels, [KEY]);
        assert!(matches!(patch.record, RecordChange::Remove));
        let last = patch.last.as_ref().unwrap();
        assert!(
            !last.fingerprints.contains_key(SOURCE),
            "the next one counts"
        );
    }
}

#[test]
fn a_label_that_was_set_to_another_value_meanwhile_is_another_request() {
    let mut back = back();
    with_label(&mut back, "again");
    assert!(
        patch(&decide(&back, &asking(), now(60)))
            .remove_labels
            .is_empty()
    );
}

#[test]
fn a_label_whose_reboot_was_stopped_stays_causes_no_other_and_is_said() {
    let mut seen = asked();
    let stopped = LastReboot {
        outcome: RebootOutcome::Aborted,
        ..super::triggers::last(&[(SOURCE, "requested-by-nvsentinel")])
    };
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(stopped);
    });
    let decision = decide(&seen, &asking(), now(5));
    assert!(
        decision
            .actions
            .iter()
            .all(|action| !matches!(action, RebootAction::PatchNode(_)))
    );
    assert!(has_event(&decision, RebootReason::Aborted));
    // Removed and set anew, it asks again.
    set(&mut seen, |node| {
        node.labels.remove(KEY);
    });
    seen.lock.leases = Some(vec![free(0)]);
    let forgets = decide(&seen, &asking(), now(6));
    let last = patch(&forgets).last.clone().unwrap();
    assert!(last.fingerprints.is_empty());
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(last);
    });
    with_label(&mut seen, "requested-by-nvsentinel");
    assert_eq!(
        written(&decide(&seen, &asking(), now(7))).trigger.source,
        SOURCE
    );
}

#[test]
fn a_stopped_label_stays_stopped_when_the_node_reboots_for_another_reason() {
    let mut back = back();
    set_record(&mut back, |record| {
        record.serves = [("sentinel:/run/reboot-needed".to_owned(), print("a"))].into();
    });
    with_label(&mut back, "requested-by-nvsentinel");
    let stopped = LastReboot {
        outcome: RebootOutcome::Aborted,
        ..super::triggers::last(&[(SOURCE, "requested-by-nvsentinel")])
    };
    set(&mut back, |node| {
        node.last_reboot = ParsedAnnotation::Is(stopped);
    });
    let decision = decide(&back, &asking(), now(60));
    assert!(patch(&decision).remove_labels.is_empty());
    let last = patch(&decision).last.clone().unwrap();
    assert!(last.fingerprints.contains_key(SOURCE));
}

#[test]
fn a_label_that_is_removed_before_the_command_withdraws_the_reboot() {
    let mut seen = seen(RebootPhase::Waiting);
    seen.host.triggers = vec![absent()];
    set_record(&mut seen, |record| {
        record.trigger.source = SOURCE.into();
        record.serves = [(SOURCE.to_owned(), print("requested-by-nvsentinel"))].into();
    });
    let decision = decide(&seen, &asking(), now(5));
    assert_eq!(decision.cause.reason, RebootReason::TriggerGone);
}

#[test]
fn the_value_of_the_label_is_the_reason_of_the_reboot() {
    let planned = decide(&asked(), &asking(), now(5));
    assert_eq!(written(&planned).trigger.reason, "requested-by-nvsentinel");
}

#[test]
fn only_the_label_whose_reboot_was_stopped_is_said_to_stay() {
    let stays = "label:nke.nvidia.com/reboot stays: the reboot that it asked for was stopped. To \
                 ask again, remove the label and set it anew";
    for (stopped, outcome, said) in [
        (
            "requested-by-nvsentinel",
            RebootOutcome::Aborted,
            vec![stays.to_owned()],
        ),
        // The node was rebooted for another reason, or held, since.
        (
            "requested-by-nvsentinel",
            RebootOutcome::Rebooted,
            vec![stays.to_owned()],
        ),
        (
            "requested-by-nvsentinel",
            RebootOutcome::Released,
            vec![stays.to_owned()],
        ),
        ("an earlier value", RebootOutcome::Aborted, vec![]),
    ] {
        let mut seen = asked();
        let last = LastReboot {
            outcome,
            ..super::triggers::last(&[(SOURCE, stopped)])
        };
        set(&mut seen, |node| {
            node.last_reboot = ParsedAnnotation::Is(last);
        });
        let events = decide(&seen, &asking(), now(5)).report.events.into_iter();
        let aborted = events.filter(|event| event.reason == "Aborted");
        let messages: Vec<String> = aborted.map(|event| event.message).collect();
        assert_eq!(messages, said, "{stopped} {outcome:?}");
    }
}
