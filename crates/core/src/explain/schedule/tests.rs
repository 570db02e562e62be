use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::Now;
use crate::condition::CurrentCondition;
use crate::schedule::{
    CurrentOccurrence, HostRebootMode, OccurrenceOutcome, OccurrenceReboots, OccurrenceRecord,
    RebootFailure, ScheduleName, ScheduleReason, ScheduleRecurrence, ScheduleStatus,
    ScheduleTiming, TargetOutcome, TargetResult,
};
use crate::selector::LabelSelector;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Now {
    Now {
        wall: at("2026-11-22T00:00:00Z"),
        mono: Duration::ZERO,
    }
}

/// Every day at 03:00 in Berlin, observed by the controller.
fn daily() -> Schedule {
    let recurrence = ScheduleRecurrence {
        start: "03:00".into(),
        ..ScheduleRecurrence::default()
    };
    let (when, zone) = ScheduleTiming::new(None, Some(&recurrence), Some("Europe/Berlin")).unwrap();
    Schedule {
        name: ScheduleName {
            namespace: "dogwatch".into(),
            name: "daily".into(),
        },
        uid: "u".into(),
        resource_version: "1".into(),
        generation: Some(1),
        created: at("2026-01-01T00:00:00Z"),
        changed: Some(at("2026-11-21T12:00:00Z")),
        deleting: false,
        plan: Ok(SchedulePlan {
            when,
            zone,
            starting_deadline: Duration::from_hours(1),
            suspend: false,
            reason: "kernel".into(),
            mode: HostRebootMode::Soft,
            nodes: Some(TargetChoice {
                names: vec!["n1".into()],
                selector: Some(LabelSelector::default()),
            }),
            hosts: None,
        }),
        status: ScheduleStatus {
            observed_generation: Some(1),
            ..ScheduleStatus::default()
        },
    }
}

fn once(text: &str) -> Schedule {
    let mut schedule = daily();
    let (when, zone) = ScheduleTiming::new(Some(text), None, None).unwrap();
    (plan(&mut schedule).when, plan(&mut schedule).zone) = (when, zone);
    schedule
}

fn plan(schedule: &mut Schedule) -> &mut SchedulePlan {
    schedule.plan.as_mut().unwrap()
}

fn record(outcome: OccurrenceOutcome) -> OccurrenceRecord {
    let target = |name: &str, result, message: &str| TargetOutcome {
        kind: ScheduleTargetKind::Node,
        name: name.into(),
        result,
        message: message.into(),
        node_reboot: None,
    };
    OccurrenceRecord {
        at: at("2026-11-21T02:00:00Z"),
        ended: at("2026-11-21T02:00:09Z"),
        outcome,
        asked: 1,
        noted: 0,
        failed: 3,
        targets: vec![
            target("n2", TargetResult::Failed, "no Node has this name"),
            target("n1", TargetResult::Requested, ""),
        ],
        message: "1 of 4 were requested".into(),
        reboots: None,
    }
}

fn explained(schedule: &Schedule) -> ScheduleExplanation {
    let view = ScheduleReportInput {
        schedule: schedule.clone(),
        controller: ObservedController::Leads {
            holder: "controller-1".into(),
            renewed: Some(now().wall),
        },
    };
    explain_schedule(&view, now())
}

fn text(explanation: &ScheduleExplanation) -> String {
    let lines = explanation.chain.iter();
    let lines = lines.map(|line| format!("{}: {}", line.topic.as_str(), line.text));
    lines.collect::<Vec<_>>().join("\n")
}

fn only_row(schedule: &Schedule) -> ScheduleRow {
    schedule_rows([schedule], now()).remove(0)
}

#[test]
fn the_next_times_are_told_on_the_schedules_own_clock() {
    let text = text(&explained(&daily()));
    for line in [
        "when: at 2026-11-22 02:00:00Z (in 120m): 2026-11-22T03:00:00+01:00[Europe/Berlin]",
        "when: at 2026-11-23 02:00:00Z",
        "when: at 2026-11-24 02:00:00Z",
        "whom: Node n1",
        "whom: every Node",
        "deadline: an occurrence may begin up to 60m late",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("2026-11-25"), "three are enough: {text}");
    let row = only_row(&daily());
    assert_eq!(row.next, Some(at("2026-11-22T02:00:00Z")));
    assert_eq!(
        (row.state, row.needs_somebody),
        (ScheduleReason::WaitingForTime, false)
    );
}

#[test]
fn a_time_that_has_come_and_that_nobody_begins_is_said_with_what_to_do() {
    let come = once("2026-11-21T23:30:00Z");
    let explanation = explained(&come);
    let words = "its time came at 2026-11-21T23:30:00Z, and no controller has started it";
    assert!(explanation.summary.contains(words), "{explanation:?}");
    assert!(explanation.advice[0].contains("--components power or healer"));
    let row = only_row(&come);
    assert_eq!(row.not_begun, Some(at("2026-11-21T23:30:00Z")));
    assert!(row.needs_somebody);

    let mut begun = come.clone();
    begun.status.current = Some(CurrentOccurrence {
        at: at("2026-11-21T23:30:00Z"),
        begun: at("2026-11-21T23:30:00Z"),
    });
    let row = only_row(&begun);
    assert_eq!((row.state, row.not_begun), (ScheduleReason::Issuing, None));
    let text = text(&explained(&begun));
    assert!(text.contains("phase: the requests of 2026-11-21 23:30:00Z are issued since"));

    let view = ScheduleReportInput {
        schedule: come,
        controller: ObservedController::Nobody,
    };
    let advice = explain_schedule(&view, now()).advice;
    assert!(advice[0].starts_with("start the controller"), "{advice:?}");
}

#[test]
fn a_time_that_is_too_late_has_not_come() {
    let row = only_row(&once("2026-11-21T22:59:59Z"));
    assert_eq!(
        (row.state, row.not_begun),
        (ScheduleReason::Completed, None)
    );
}

#[test]
fn while_it_is_suspended_no_time_lies_ahead() {
    for mut schedule in [daily(), once("2026-11-21T23:30:00Z")] {
        plan(&mut schedule).suspend = true;
        let row = only_row(&schedule);
        assert_eq!(
            (row.state, row.next, row.not_begun),
            (ScheduleReason::Suspended, None, None)
        );
        let explanation = explained(&schedule);
        assert!(!text(&explanation).contains("when: "), "{explanation:?}");
        assert!(explanation.advice[0].contains(r#"{"spec":{"suspend":false}}"#));
    }
}

#[test]
fn what_is_wrong_with_it_is_said_problem_by_problem() {
    let mut schedule = daily();
    schedule.plan = Err(vec!["spec.at: no time".into(), "spec: nobody".into()]);
    let explanation = explained(&schedule);
    let text = text(&explanation);
    assert!(text.contains("asked: invalid: spec.at: no time"));
    assert!(text.contains("asked: invalid: spec: nobody"));
    assert!(explanation.advice[0].contains("kubectl edit -n dogwatch rebootschedule daily"));
    assert!(only_row(&schedule).needs_somebody);
}

#[test]
fn what_each_target_got_is_told_and_how_many_are_not_listed() {
    let mut schedule = daily();
    schedule.status.history = vec![record(OccurrenceOutcome::PartlyRequested)];
    let explanation = explained(&schedule);
    let text = text(&explanation);
    for line in [
        "last: 2026-11-21 02:00:00Z: PartlyRequested: 1 of 4 were requested",
        "target: Node n2: Failed: no Node has this name",
        "target: Node n1: Requested",
        "target: and 2 more, which are not listed",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let advice = &explanation.advice;
    assert!(advice[0].contains("dogwatch explain node/n2"), "{advice:?}");
    assert!(advice[1].contains("dogwatch explain node/n1"), "{advice:?}");
}

#[test]
fn whoever_needs_somebody_comes_first() {
    let outcomes = [
        (OccurrenceOutcome::Requested, false),
        (OccurrenceOutcome::Cancelled, false),
        (OccurrenceOutcome::PartlyRequested, true),
        (OccurrenceOutcome::Failed, true),
        (OccurrenceOutcome::Missed, true),
        (OccurrenceOutcome::NoTargets, true),
    ];
    let schedules = outcomes.map(|(outcome, _)| {
        let mut schedule = daily();
        schedule.name.name = outcome.as_str().to_lowercase();
        schedule.status.history = vec![record(outcome)];
        schedule
    });
    for (schedule, (outcome, needs)) in schedules.iter().zip(outcomes) {
        assert_eq!(only_row(schedule).needs_somebody, needs, "{outcome:?}");
    }
    let rows = schedule_rows(&schedules, now());
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let first = ["failed", "missed", "notargets", "partlyrequested"];
    assert_eq!(names, [&first[..], &["cancelled", "requested"]].concat());
}

#[test]
fn what_the_controller_said_of_another_version_is_said_to_be_so() {
    let mut schedule = daily();
    schedule.status.conditions = vec![CurrentCondition {
        kind: "Active".into(),
        status: "False".into(),
        reason: "Suspended".into(),
        message: "spec.suspend is true".into(),
        last_transition: None,
        last_heartbeat: None,
    }];
    schedule.generation = Some(2);
    let text = text(&explained(&schedule));
    assert!(text.contains("no controller has read this version"));
    assert!(text.contains("says: Suspended: spec.suspend is true"));
    assert!(text.contains("current state: WaitingForTime: the next occurrence is at"));
}

#[test]
fn how_the_reboots_ended_is_told_with_the_names_of_the_node_reboots() {
    let mut schedule = daily();
    let mut newest = record(OccurrenceOutcome::Requested);
    newest.targets[1].node_reboot = Some("daily-1".into());
    newest.reboots = Some(OccurrenceReboots {
        made: 3,
        open: 1,
        succeeded: 1,
        failed: 1,
        failures: vec![RebootFailure {
            node: "n1".into(),
            node_reboot: "daily-1".into(),
            reason: "NodeGone".into(),
            message: "the Node was deleted".into(),
        }],
        ..OccurrenceReboots::default()
    });
    schedule.status.history = vec![newest];
    let explanation = explained(&schedule);
    let text = text(&explanation);
    for line in [
        "last: 2026-11-21 02:00:00Z: AwaitingReboots: 1 of 3 NodeReboots succeeded; 1 not ended yet; \
         1 failed",
        "target: Node n1: NodeReboot daily-1: NodeGone: the Node was deleted",
        "target: Node n1: Requested: NodeReboot daily-1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let advice = &explanation.advice;
    assert!(
        advice[0].ends_with("dogwatch explain nodereboot/daily-1"),
        "{advice:?}"
    );
    assert!(
        advice[1].contains("-l dogwatch.dev/schedule-uid="),
        "{advice:?}"
    );
    let row = only_row(&schedule);
    assert_eq!(
        (row.reboots, row.needs_somebody),
        (Some(ScheduleReason::AwaitingReboots), true)
    );
}
