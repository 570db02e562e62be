//! The types and the schema agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use super::*;
use crate::schema::check::{
    assert_reads_back, assert_same_fields, parts_without_bound, parts_without_description,
    schema_of, undocumented_fields,
};
use crate::selector::LabelSelector;

/// Sets every field of every type: a new field does not compile until it is added here, and then
/// the schema must have it.
fn full() -> RebootSchedule {
    let mut schedule = RebootSchedule::new("metal3", "monthly", spec());
    schedule.status = Some(status());
    schedule
}

fn spec() -> RebootScheduleSpec {
    let text = |text: &str| Some(text.to_owned());
    let chosen = || TargetsSpec {
        names: Some(vec!["n1".into()]),
        selector: Some(selector()),
    };
    RebootScheduleSpec {
        at: text("2026-12-24T03:00"),
        recurrence: Some(RecurrenceSpec {
            days: Some(vec!["Mon".into()]),
            start: text("03:00"),
            rrule: text("FREQ=DAILY"),
            excluded_dates: Some(vec!["2026-12-24".into()]),
        }),
        time_zone: text("Europe/Berlin"),
        starting_deadline: text("1h"),
        suspend: Some(true),
        reason: text("kernel"),
        mode: Some(HostPowerOffMode::Soft),
        nodes: Some(chosen()),
        hosts: Some(chosen()),
    }
}

fn status() -> RebootScheduleStatus {
    let at = "2026-12-24T02:00:00Z".parse().unwrap();
    RebootScheduleStatus {
        observed_generation: Some(1),
        spec_since: Some(at),
        spec_since_generation: Some(1),
        spec_write_seen: Some(at),
        next_occurrence: Some(at),
        last_occurrence: Some(at),
        current: Some(CurrentOccurrenceStatus { at, begun: at }),
        history: vec![OccurrenceStatus {
            at,
            ended: at,
            outcome: "PartlyRequested".into(),
            requested: 1,
            already_requested: 1,
            failed: 1,
            targets: vec![TargetEndStatus {
                kind: "Node".into(),
                name: "n1".into(),
                result: "Failed".into(),
                message: "no Node has this name".into(),
                node_reboot: Some("monthly-20261224020000-0123456789ab".into()),
            }],
            message: "1 of 3 were requested".into(),
            reboots: Some(reboots()),
        }],
        conditions: vec![Condition {
            type_: "Active".into(),
            status: "True".into(),
            reason: "WaitingForTime".into(),
            message: String::new(),
            last_transition_time: Time(at),
            observed_generation: Some(1),
        }],
    }
}

fn reboots() -> OccurrenceRebootsStatus {
    let at = "2026-12-24T02:00:00Z".parse().unwrap();
    OccurrenceRebootsStatus {
        made: 5,
        open: 1,
        succeeded: 1,
        failed: 1,
        given_up: 1,
        unknown: 1,
        failures: vec![RebootFailureStatus {
            node: "n1".into(),
            node_reboot: "monthly-20261224020000-0123456789ab".into(),
            reason: "SuccessNotReached".into(),
            message: "m".into(),
        }],
        ended: Some(at),
        settled: Some(SettledRebootsStatus {
            until: at,
            succeeded: 1,
            failed: 1,
            given_up: 1,
        }),
    }
}

fn selector() -> LabelSelector {
    let text = json!({ "matchLabels": { "a": "b" },
        "matchExpressions": [{ "key": "c", "operator": "In", "values": ["d"] }] });
    serde_json::from_value(text).unwrap()
}

#[test]
fn the_schema_knows_every_field_of_the_types_and_no_other() {
    assert_same_fields(&full(), &schedule_crd());
}

#[test]
fn a_schedule_reads_back_as_it_was_written() {
    assert_reads_back(&full());
}

#[test]
fn a_field_that_this_version_does_not_know_is_no_silent_loss() {
    for spec in [
        json!({ "newRule": 1 }),
        json!({ "nodes": { "newRule": 1 } }),
        json!({ "recurrence": { "newRule": 1 } }),
    ] {
        assert!(serde_json::from_value::<RebootScheduleSpec>(spec).is_err());
    }
}

#[test]
fn every_field_explains_itself_to_kubectl_and_has_a_largest_size() {
    let schema = schema_of(&schedule_crd());
    assert_eq!(parts_without_description(&schema), Vec::<String>::new());
    assert_eq!(parts_without_bound(&schema), Vec::<String>::new());
}

#[test]
fn the_docs_name_every_field_of_the_spec() {
    let page = include_str!("../../../../docs/schedules.md");
    assert_eq!(
        undocumented_fields(&schedule_crd(), page),
        Vec::<String>::new()
    );
}
