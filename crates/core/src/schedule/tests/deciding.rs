//! The decision at each time.

use super::kit::*;
use crate::decision::EventSeverity;
use crate::schedule::*;

const TEN: &str = "2026-03-02T10:00:00Z";

fn record_of(seen: &ScheduleSnapshot) -> &OccurrenceRecord {
    seen.schedule.status.history.first().unwrap()
}

#[test]
fn the_intention_stands_before_the_first_request() {
    let seen = seen(once(TEN));
    let waiting = decide(&seen, now("2026-03-02T09:59:59Z"));
    assert_eq!(written(&waiting).current, None);
    let (mut seen, _) = seen.settled(now("2026-03-02T09:59:59Z"));
    // This holds even if the targets have been read already.
    seen.targets = Some(ObservedTargets {
        nodes: Ok(vec![object("n1")]),
        hosts: Ok(Vec::new()),
        taken: now(TEN).mono,
    });
    let due = decide(&seen, now(TEN));
    assert_eq!(written(&due).current.unwrap().at, at(TEN));
    assert_eq!(due.cause.reason, ScheduleReason::Issuing);
    let (seen, asking) = seen.settled(now(TEN));
    assert_eq!(asked(&asking).len(), 1);
    assert_eq!(seen.schedule.status.last, Some(at(TEN)));
}

#[test]
fn targets_are_read_afresh_before_they_are_asked() {
    let (mut seen, looking) = seen(once(TEN)).settled(now(TEN));
    assert_eq!(
        (looking.actions.len(), looking.observe.as_slice()),
        (0, &[ScheduleObserve::Targets, ScheduleObserve::Reboots][..])
    );
    seen.targets = Some(ObservedTargets {
        nodes: Ok(vec![object("n1")]),
        hosts: Ok(Vec::new()),
        taken: now(TEN).mono,
    });
    assert_eq!(asked(&decide(&seen, now(TEN))).len(), 1);
    let stale = decide(&seen, now("2026-03-02T10:00:10Z"));
    assert_eq!((stale.actions.len(), stale.observe.len()), (0, 2));
}

#[test]
fn what_is_later_than_the_deadline_is_missed_and_said_loudly_once() {
    let on_time = decide(&seen(once(TEN)), now("2026-03-02T11:00:00Z"));
    assert!(written(&on_time).current.is_some());
    let late = now("2026-03-02T11:00:01Z");
    let (missed, after) = seen(once(TEN)).settled(late);
    assert_eq!(record_of(&missed).outcome, OccurrenceOutcome::Missed);
    assert_eq!(missed.schedule.status.current, None);
    assert!(missed.schedule.status.conditions.iter().any(|condition| {
        condition.kind == "LastOccurrenceIssued"
            && condition.status == "False"
            && condition.reason == "Missed"
    }));
    let [event] = after.report.events.as_slice() else {
        panic!("{:?}", after.report.events);
    };
    assert_eq!(
        (event.severity, event.reason),
        (EventSeverity::Warning, "Missed")
    );
    assert_eq!(after.cause.reason, ScheduleReason::Completed);
    let (much_later, quiet) = missed.clone().settled(now("2026-03-09T00:00:00Z"));
    assert_eq!(much_later.schedule.status, missed.schedule.status);
    assert_eq!(quiet.report.events, []);
}

#[test]
fn an_appointed_time_of_long_ago_is_missed_and_reboots_nobody() {
    let (seen, decision) = seen(once("2001-01-01T00:00:00Z")).settled(now(TEN));
    assert_eq!(record_of(&seen).outcome, OccurrenceOutcome::Missed);
    assert!(decision.actions.is_empty());
}

#[test]
fn a_recurrence_begins_with_its_creation_and_not_with_the_day_before() {
    let mut new = seen(daily("09:30"));
    new.schedule.created = at(TEN);
    let (new, _) = new.settled(now(TEN));
    assert_eq!(new.schedule.status.history, []);
    assert_eq!(new.schedule.status.next, Some(at("2026-03-03T09:30:00Z")));
}

#[test]
fn a_change_makes_no_time_of_before_it_come() {
    // Today's occurrence was handled; the new start lies between it and now, within the deadline.
    let mut changed = seen(daily("09:45"));
    changed.schedule.changed = Some(at(TEN));
    let (changed, _) = changed.settled(now(TEN));
    assert_eq!(changed.schedule.status.current, None);
    assert_eq!(changed.schedule.status.history, []);
    // The same for a schedule that was suspended over its time and then resumed.
    let mut resumed = seen(daily("09:45"));
    resumed.schedule.created = at("2026-03-02T00:00:00Z");
    if let Ok(plan) = &mut resumed.schedule.plan {
        plan.suspend = true;
    }
    let (mut resumed, decision) = resumed.settled(now("2026-03-02T09:50:00Z"));
    assert_eq!(decision.cause.reason, ScheduleReason::Suspended);
    assert_eq!(resumed.schedule.status.next, None);
    resumed.schedule.plan = Ok(daily("09:45"));
    resumed.schedule.generation = Some(2);
    resumed.schedule.changed = Some(at(TEN));
    let (resumed, _) = resumed.settled(now(TEN));
    assert_eq!(resumed.schedule.status.history, []);
    assert_eq!(
        resumed.schedule.status.next,
        Some(at("2026-03-03T09:45:00Z"))
    );
}

#[test]
fn after_an_outage_only_the_newest_is_made_up_for_and_the_others_are_counted() {
    let mut seen = seen(daily("10:00"));
    seen.schedule.created = at("2026-02-20T12:00:00Z");
    let (seen, _) = seen.settled(now("2026-03-02T10:30:00Z"));
    assert_eq!(seen.schedule.status.current.unwrap().at, at(TEN));
    let missed = record_of(&seen);
    assert_eq!(
        (missed.outcome, missed.at),
        (OccurrenceOutcome::Missed, at("2026-03-01T10:00:00Z"))
    );
    assert!(missed.message.contains("8 before it"), "{}", missed.message);
    assert!(
        missed.message.contains("from 2026-02-21T10:00:00Z on"),
        "{}",
        missed.message
    );
}

#[test]
fn a_handled_time_stays_handled_when_the_clock_is_set_back() {
    let (first, _) = seen(daily("10:00")).settled(now(TEN));
    let mut done = first.issuing(TEN, vec![], vec![], now(TEN));
    done.schedule.plan = Ok(SchedulePlan {
        nodes: Some(TargetChoice::default()),
        ..daily("10:00")
    });
    let (done, _) = done.settled(now(TEN));
    assert_eq!(
        (record_of(&done).outcome, record_of(&done).at),
        (OccurrenceOutcome::NoTargets, at(TEN))
    );
    let back = now("2026-03-02T09:00:00Z");
    let (back, _) = done.settled(back);
    assert_eq!(back.schedule.status.next, Some(at("2026-03-03T10:00:00Z")));
    assert_eq!(back.schedule.status.current, None);
}

#[test]
fn a_clock_that_was_years_ahead_for_a_while_stops_nothing_afterwards() {
    let issued = |moment: &str| OccurrenceRecord {
        at: at(moment),
        ended: at(moment),
        outcome: OccurrenceOutcome::Requested,
        asked: 1,
        noted: 0,
        failed: 0,
        targets: Vec::new(),
        message: String::new(),
        reboots: None,
    };
    let mut seen = seen(daily("10:00"));
    seen.schedule.status.history = ["2031-01-01T10:00:00Z", "2026-03-01T10:00:00Z"]
        .map(issued)
        .into();
    let (seen, decision) = seen.settled(now("2026-03-01T12:00:00Z"));
    assert_eq!(seen.schedule.status.next, Some(at(TEN)));
    assert_eq!(decision.report.events, [], "news of the future is none");
    let (seen, _) = seen.settled(now(TEN));
    assert_eq!(seen.schedule.status.current.unwrap().at, at(TEN));
}

#[test]
fn a_schedule_that_is_suspended_or_changed_meanwhile_asks_nobody_more() {
    let begun = |change: fn(&mut SchedulePlan)| {
        let mut plan = once(TEN);
        change(&mut plan);
        plan.nodes = Some(TargetChoice {
            names: vec!["n1".into(), "n2".into()],
            selector: None,
        });
        let asked = TargetObject {
            marks: mark_of("u1", TEN, false),
            ..object("n1")
        };
        let seen = seen(plan).issuing(TEN, vec![asked, object("n2")], vec![], now(TEN));
        seen.settled(now(TEN))
    };
    let (goes_on, decision) = begun(|_| {});
    assert_eq!(asked(&decision).len(), 1);
    assert!(goes_on.schedule.status.current.is_some());
    let suspend: fn(&mut SchedulePlan) = |plan| plan.suspend = true;
    let postpone: fn(&mut SchedulePlan) =
        |plan| plan.when = ScheduleTiming::At(at("2026-03-05T10:00:00Z"));
    for (change, why) in [
        (suspend, "suspended"),
        (postpone, "no longer has this occurrence"),
    ] {
        let (ended, decision) = begun(change);
        assert!(decision.actions.is_empty());
        let record = record_of(&ended);
        assert_eq!(record.outcome, OccurrenceOutcome::Cancelled);
        assert_eq!((record.asked, record.failed), (1, 1));
        assert!(record.message.contains(why), "{}", record.message);
    }
}

#[test]
fn a_schedule_that_cannot_be_understood_any_more_issues_nothing_and_says_why() {
    let mut seen = seen(once(TEN)).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    seen.schedule.plan = Err(vec!["spec.at: \"x\" is no time".into()]);
    let (seen, decision) = seen.settled(now(TEN));
    assert_eq!(record_of(&seen).outcome, OccurrenceOutcome::Cancelled);
    assert_eq!(decision.cause.reason, ScheduleReason::Invalid);
    assert!(decision.cause.message.contains("spec.at"));
    assert!(
        decision
            .report
            .events
            .iter()
            .any(|event| event.reason == "Invalid")
    );
}

#[test]
fn a_schedule_that_is_being_deleted_does_nothing() {
    let mut seen = seen(once(TEN)).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    seen.schedule.deleting = true;
    let decision = decide(&seen, now(TEN));
    assert!(decision.actions.is_empty() && decision.observe.is_empty() && decision.wake.is_none());
}

#[test]
fn a_target_that_cannot_be_asked_is_tried_until_the_deadline_and_then_named() {
    let mut seen = seen(once(TEN)).issuing(TEN, vec![object("n1")], vec![], now(TEN));
    let target = ScheduleTarget {
        kind: ScheduleTargetKind::Node,
        name: "n1".into(),
    };
    seen.request_errors
        .insert(target, "the API server answered 403".into());
    let (mut seen, decision) = seen.settled(now(TEN));
    assert_eq!(asked(&decision).len(), 1);
    let late = now("2026-03-02T11:00:01Z");
    seen.targets.as_mut().unwrap().taken = late.mono;
    let (seen, decision) = seen.settled(late);
    assert!(decision.actions.is_empty());
    let record = record_of(&seen);
    assert_eq!(record.outcome, OccurrenceOutcome::Failed);
    assert!(
        record
            .message
            .contains("Node n1 (the API server answered 403)"),
        "{}",
        record.message
    );
}

#[test]
fn the_time_of_the_next_one_ends_an_occurrence_that_cannot_be_finished() {
    let mut plan = daily("10:00");
    plan.starting_deadline = std::time::Duration::from_hours(100);
    let next = now("2026-03-03T10:00:00Z");
    let mut seen = seen(plan).issuing(TEN, vec![object("n1")], vec![], next);
    seen.schedule.created = at("2026-03-02T00:00:00Z");
    let (seen, _) = seen.settled(next);
    assert_eq!(seen.schedule.status.current.unwrap().at, next.wall);
    assert_eq!(
        (record_of(&seen).at, record_of(&seen).outcome),
        (at(TEN), OccurrenceOutcome::Failed)
    );
}

#[test]
fn only_so_many_past_occurrences_are_kept_the_newest_first() {
    let mut seen = seen(daily("10:00"));
    for day in 1..=28 {
        let late = now(&format!("2026-02-{day:02}T12:00:00Z"));
        seen = seen.settled(late).0;
    }
    let history = &seen.schedule.status.history;
    assert_eq!(history.len(), MAX_HISTORY_RECORDS);
    assert_eq!(history[0].at, at("2026-02-28T10:00:00Z"));
}

fn mark_of(uid: &str, moment: &str, noted: bool) -> crate::reboot::ParsedAnnotation<ScheduleMarks> {
    let by = "dogwatch/monthly".to_owned();
    let mark = ScheduleMark {
        by,
        at: at(moment),
        noted,
        node_reboot: None,
    };
    crate::reboot::ParsedAnnotation::Is(ScheduleMarks::from([(uid.to_owned(), mark)]))
}
