//! The types and the schema say the same.

use std::collections::BTreeSet;

use dogwatch_core::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::*;

/// Every field of every type is set: a new one does not compile until it is added here, and then
/// the schema has to know it.
fn full() -> RebootSchedule {
    let mut schedule = RebootSchedule::new("metal3", "monthly", spec());
    schedule.status = Some(status());
    schedule
}

fn spec() -> RebootScheduleSpec {
    let text = |text: &str| Some(text.to_owned());
    let chosen = || Chosen {
        names: Some(vec!["n1".into()]),
        selector: Some(selector()),
    };
    RebootScheduleSpec {
        at: text("2026-12-24T03:00"),
        recurrence: Some(Recurrence {
            days: Some(vec!["Mon".into()]),
            start: text("03:00"),
            rrule: text("FREQ=DAILY"),
            excluded_dates: Some(vec!["2026-12-24".into()]),
        }),
        time_zone: text("Europe/Berlin"),
        starting_deadline: text("1h"),
        suspend: Some(true),
        reason: text("kernel"),
        mode: Some(Mode::Soft),
        nodes: Some(chosen()),
        hosts: Some(chosen()),
    }
}

fn status() -> RebootScheduleStatus {
    let at = "2026-12-24T02:00:00Z".parse().unwrap();
    RebootScheduleStatus {
        observed_generation: Some(1),
        next_occurrence: Some(at),
        last_occurrence: Some(at),
        current: Some(Current { at, begun: at }),
        history: vec![Occurrence {
            at,
            ended: at,
            outcome: "PartlyRequested".into(),
            requested: 1,
            already_requested: 1,
            failed: 1,
            targets: vec![TargetEnd {
                kind: "Node".into(),
                name: "n1".into(),
                result: "Failed".into(),
                message: "there is no Node of that name".into(),
            }],
            message: "1 of 3 were asked".into(),
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

fn selector() -> LabelSelector {
    let text = json!({ "matchLabels": { "a": "b" },
        "matchExpressions": [{ "key": "c", "operator": "In", "values": ["d"] }] });
    serde_json::from_value(text).unwrap()
}

/// Each field as `spec.nodes.names`.
fn fields_of(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                found.insert(path.clone());
                fields_of(value, &path, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                fields_of(item, &format!("{path}[]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Every part of the schema, with its path; keys of maps are `a`.
fn every_part<'a>(schema: &'a Value, path: &str, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(path, schema);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, schema) in properties {
            every_part(schema, &format!("{path}.{name}"), visit);
        }
    }
    for (part, name) in [("items", "[]"), ("additionalProperties", ".a")] {
        if schema[part].is_object() {
            every_part(&schema[part], &format!("{path}{name}"), visit);
        }
    }
}

fn schema() -> Value {
    crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn the_schema_knows_every_field_of_the_types_and_no_other() {
    let (mut types, mut schema_has) = (BTreeSet::new(), BTreeSet::new());
    fields_of(&serde_json::to_value(full()).unwrap(), "", &mut types);
    types.retain(|field| !field.starts_with(".metadata."));
    every_part(&schema(), "", &mut |path, _| {
        if !path.is_empty() && !path.ends_with("[]") {
            schema_has.insert(path.to_owned());
        }
    });
    assert_eq!(types, schema_has);
}

#[test]
fn a_schedule_reads_back_as_it_was_written() {
    let text = serde_json::to_string(&full()).unwrap();
    assert_eq!(
        serde_json::from_str::<RebootSchedule>(&text).unwrap(),
        full()
    );
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
    every_part(&schema(), "", &mut |path, part| {
        let explained = part["description"]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        assert!(explained || path == ".metadata", "{path}");
        let bound = match part["type"].as_str() {
            Some("string") if part["enum"].is_null() => "maxLength",
            Some("array") => "maxItems",
            _ => return,
        };
        assert!(part[bound].is_u64() || !path.starts_with(".spec"), "{path}");
    });
}

#[test]
fn the_docs_name_every_field_of_the_spec() {
    let docs = include_str!("../../../../docs/schedules.md");
    every_part(&schema()["properties"]["spec"], "", &mut |path, _| {
        let field = path.trim_start_matches('.');
        // What a label selector is made of is Kubernetes' own.
        let is_selector = field.contains("match");
        if !field.is_empty() && !field.ends_with(']') && !is_selector {
            assert!(docs.contains(&format!("`{field}`")), "{field}");
        }
    });
}
