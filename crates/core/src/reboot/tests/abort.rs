//! §2.4: a person stops the reboot under way (`dogwatch abort`).

use super::super::*;
use super::kit::*;
use crate::lock::ObservedLease;
use crate::policy::MinInterval;

fn stopped(phase: RebootPhase) -> RebootSnapshot {
    let mut seen = seen(phase);
    set(&mut seen, |node| {
        node.abort = ParsedAnnotation::Is(AbortRequest {
            reason: "not today".into(),
            requester: "kim".into(),
        });
    });
    seen
}

const PHASES: [RebootPhase; 4] = [
    RebootPhase::Waiting,
    RebootPhase::Draining,
    RebootPhase::Rebooting,
    RebootPhase::Returning,
];

#[test]
fn it_uncordons_then_releases_then_forgets_and_says_who_and_why() {
    for phase in PHASES {
        let mut seen = stopped(phase);
        if phase != RebootPhase::Waiting {
            let first = decide(&seen, &config(), now(5));
            assert_eq!(patch(&first).unschedulable, Some(false), "{phase:?}");
            assert_eq!(written(&first).phase, phase);
            assert!(!patch(&first).remove_abort);
            assert_eq!(first.cause.message, "stopped by kim: not today");
            set_record(&mut seen, |record| record.cordoned_by_us = false);
            set(&mut seen, |node| node.unschedulable = false);
        }
        let second = decide(&seen, &config(), now(5));
        assert!(
            matches!(
                second.actions.as_slice(),
                [RebootAction::Release {
                    over_budget: false,
                    ..
                }]
            ),
            "{phase:?}"
        );
        seen.lock.leases = Some(vec![free(0)]);
        let third = decide(&seen, &config(), now(5));
        let last = patch(&third).last.as_ref().unwrap();
        let rebooted = phase == RebootPhase::Returning;
        let outcome = if rebooted {
            RebootOutcome::Rebooted
        } else {
            RebootOutcome::Aborted
        };
        assert_eq!(last.outcome, outcome, "{phase:?}");
        assert_eq!(patch(&third).record, RecordChange::Remove);
        assert!(patch(&third).remove_abort);
        assert_eq!(patch(&third).unschedulable, None);
    }
}

#[test]
fn a_cordon_of_somebody_else_stays() {
    let mut seen = stopped(RebootPhase::Draining);
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    let decision = decide(&seen, &config(), now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Release { .. }]
    ));
    seen.lock.leases = Some(vec![free(0)]);
    assert_eq!(patch(&decide(&seen, &config(), now(5))).unschedulable, None);
}

#[test]
fn who_asked_to_keep_it_cordoned_after_the_boot_is_not_overruled() {
    let mut seen = stopped(RebootPhase::Returning);
    set(&mut seen, |node| node.keep_cordoned = true);
    seen.lock.leases = Some(vec![free(0)]);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(patch(&decision).unschedulable, None);
    assert_eq!(patch(&decision).record, RecordChange::Remove);
}

#[test]
fn an_abort_leaves_the_cordon_of_a_quarantined_node_in_every_phase() {
    for phase in [
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ] {
        let mut seen = stopped(phase);
        set(&mut seen, |node| node.quarantined = true);
        seen.lock.leases = Some(vec![free(0)]);
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(patch(&decision).unschedulable, None, "{phase:?}");
        assert_eq!(patch(&decision).record, RecordChange::Remove, "{phase:?}");
    }
}

#[test]
fn what_asked_for_it_counts_as_served_and_what_comes_later_does_not() {
    let mut seen = stopped(RebootPhase::Waiting);
    seen.lock.leases = Some(vec![free(0)]);
    let decision = decide(&seen, &config(), now(5));
    let last = patch(&decision).last.clone().unwrap();
    for (fingerprint, wanted) in [("a", false), ("b", true)] {
        let mut after = idle();
        after.host.triggers = vec![present(fingerprint)];
        set(&mut after, |node| {
            node.last_reboot = ParsedAnnotation::Is(last.clone());
        });
        let decision = decide(&after, &config(), now(6));
        let planned = decision.cause.reason == RebootReason::RebootPlanned;
        assert_eq!(planned, wanted, "{fingerprint}");
    }
}

#[test]
fn the_reboot_before_it_is_remembered_so_that_the_next_keeps_its_distance() {
    let mut seen = stopped(RebootPhase::Waiting);
    seen.lock.leases = Some(vec![free(0)]);
    let before = super::triggers::last(&[]);
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(before.clone());
    });
    let once = patch(&decide(&seen, &config(), now(5)))
        .last
        .clone()
        .unwrap();
    set(&mut seen, |node| {
        node.last_reboot = ParsedAnnotation::Is(once.clone());
    });
    let twice = patch(&decide(&seen, &config(), now(9)))
        .last
        .clone()
        .unwrap();
    for last in [once, twice] {
        assert_eq!(last.outcome, RebootOutcome::Aborted);
        assert_eq!(last.last_rebooted_at(), Some(before.finished));
        let interval = MinInterval::since_last_reboot(Some(&last));
        assert_eq!(interval, MinInterval::since_last_reboot(Some(&before)));
    }
}

#[test]
fn a_boot_that_has_come_all_the_same_is_one() {
    let mut seen = stopped(RebootPhase::Rebooting);
    seen.host.boot_id = Ok(boot("boot-2"));
    assert_eq!(
        written(&decide(&seen, &config(), now(5))).phase,
        RebootPhase::Returning
    );
}

#[test]
fn a_lock_on_which_an_older_run_stands_is_taken_over_before_it_goes() {
    let mut seen = stopped(RebootPhase::Waiting);
    seen.lock.leases = Some(vec![held(0, "n1", &["coordinator/a"])]);
    let decision = decide(&seen, &config(), now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Bid { .. }]
    ));
}

#[test]
fn a_lock_on_which_only_requests_of_others_stand_is_theirs() {
    let mut seen = stopped(RebootPhase::Waiting);
    let theirs: ObservedLease = held(0, "n1", &["api/x/1"]);
    seen.lock.leases = Some(vec![theirs]);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(patch(&decision).record, RecordChange::Remove);
}

#[test]
fn a_bid_that_may_still_land_is_settled_first() {
    let mut seen = stopped(RebootPhase::Waiting);
    seen.lock.leases = Some(vec![free(0)]);
    seen.lock.unsettled_bid = Some("dogwatch-default-0".into());
    let decision = decide(&seen, &config(), now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Bid { .. }]
    ));
}

#[test]
fn a_request_for_later_outlives_the_reboot_that_is_stopped_and_one_that_is_due_does_not() {
    let table = [(None, true), (Some(wall(5)), true), (Some(wall(6)), false)];
    for phase in PHASES {
        for (not_before, removed) in table {
            let mut seen = stopped(phase);
            set_record(&mut seen, |record| record.cordoned_by_us = false);
            seen.lock.leases = Some(vec![free(0)]);
            set(&mut seen, |node| {
                node.request = ParsedAnnotation::Is(RebootRequest {
                    reason: "firmware".into(),
                    requester: "somebody else".into(),
                    not_before,
                    ..RebootRequest::default()
                });
                node.request_fingerprint = Some(print("r"));
            });
            let decision = decide(&seen, &config(), now(5));
            assert!(patch(&decision).remove_abort, "{phase:?}");
            let remove = patch(&decision).remove_request;
            assert_eq!(remove, removed, "{phase:?} {not_before:?}");
        }
    }
}

#[test]
fn when_nothing_is_under_way_it_is_served_at_once_with_the_request_that_has_not_begun() {
    let mut seen = idle();
    set(&mut seen, |node| {
        node.abort = ParsedAnnotation::Bad {
            why: "no JSON".into(),
        };
        node.request = ParsedAnnotation::Is(RebootRequest {
            reason: String::new(),
            requester: String::new(),
            not_before: Some(wall(1000)),
            ..RebootRequest::default()
        });
    });
    let decision = decide(&seen, &config(), now(5));
    assert!(patch(&decision).remove_abort && patch(&decision).remove_request);
    assert_eq!(patch(&decision).last, None);
}

#[test]
fn after_the_uncordon_the_cordon_is_nobodys_and_the_record_says_who_stopped_it() {
    let first = decide(&stopped(RebootPhase::Draining), &config(), now(5));
    let record = written(&first);
    assert!(!record.cordoned_by_us, "a later cordon is not Dogwatch's");
    assert_eq!(record.message, "stopped by kim: not today");
}

#[test]
fn an_abort_is_one_event_a_warning_only_if_it_uncordoned_the_node() {
    use crate::decision::EventSeverity;
    let said = |decision: &RebootDecision| -> Vec<(EventSeverity, String)> {
        let events = decision.report.events.iter();
        let aborted = events.filter(|event| event.reason == "Aborted");
        aborted
            .map(|event| (event.severity, event.message.clone()))
            .collect()
    };
    let text = "stopped by kim: not today".to_owned();
    let mut drained = stopped(RebootPhase::Draining);
    let first = decide(&drained, &config(), now(5));
    assert_eq!(said(&first), [(EventSeverity::Warning, text.clone())]);
    let record = written(&first).clone();
    drained.lock.leases = Some(vec![free(0)]);
    set(&mut drained, |node| {
        node.unschedulable = false;
        node.record = ParsedAnnotation::Is(record);
    });
    let last = decide(&drained, &config(), now(6));
    assert!(patch(&last).remove_abort);
    assert_eq!(said(&last), [(EventSeverity::Warning, text.clone())]);
    let mut waits = stopped(RebootPhase::Waiting);
    waits.lock.leases = Some(vec![free(0)]);
    let last = decide(&waits, &config(), now(5));
    assert_eq!(said(&last), [(EventSeverity::Normal, text)]);
}

#[test]
fn a_sentinel_that_was_touched_before_the_abort_asks_for_no_other_reboot() {
    let mut seen = stopped(RebootPhase::Draining);
    seen.host.triggers = vec![present("touched-anew")];
    seen.lock.leases = Some(vec![free(0)]);
    set_record(&mut seen, |record| record.cordoned_by_us = false);
    let last = patch(&decide(&seen, &config(), now(5))).last.clone();
    let mut after = idle();
    after.host.triggers = vec![present("touched-anew")];
    set(&mut after, |node| {
        node.last_reboot = ParsedAnnotation::Is(last.unwrap());
    });
    let decision = decide(&after, &config(), now(6));
    assert_eq!(decision.actions, []);
}
