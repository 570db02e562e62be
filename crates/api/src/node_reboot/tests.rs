//! The types and the schema agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use super::*;
use crate::schema::check::{
    assert_reads_back, assert_same_fields, parts_without_bound, parts_without_description,
    schema_of, undocumented_fields,
};

/// Sets every field of every type: a new field does not compile until it is added here, and then
/// the schema must have it.
fn full() -> NodeReboot {
    let mut request = NodeReboot::new("gpu-7", spec());
    request.status = Some(status());
    request
}

fn spec() -> NodeRebootSpec {
    let text = |text: &str| Some(text.to_owned());
    let at = "2026-12-24T02:00:00Z".parse().ok();
    NodeRebootSpec {
        node_name: "worker-1".into(),
        node_uid: text("u1"),
        method: Some(RebootMethod::Reboot),
        reason: text("GPU fell off its bus"),
        requester: text("nvsentinel"),
        not_before: at,
        deadline: at,
        success: Some(SuccessSpec {
            conditions: vec![RequiredCondition {
                kind: "GpuMemWatch".into(),
                status: "False".into(),
            }],
            within: text("10m"),
        }),
        escalation: Some(vec![RebootMethod::Reboot]),
        cancel: Some(true),
        ttl_after_finished: text("24h"),
    }
}

fn status() -> NodeRebootStatus {
    let at = "2026-12-24T02:00:00Z".parse().unwrap();
    NodeRebootStatus {
        observed_generation: Some(1),
        phase: Some(NodeRebootPhase::Draining),
        message: "drains its pods".into(),
        node_uid: Some("u1".into()),
        attempts: vec![RebootAttemptStatus {
            method: RebootMethod::Reboot,
            started_at: at,
            drained_at: Some(at),
            rebooted_at: Some(at),
            finished_at: Some(at),
            boot_id_before: Some("b1".into()),
            boot_id_after: Some("b2".into()),
            power: Some(PowerCycleStatus {
                host: "hosts/h1".into(),
                host_uid: "u2".into(),
                requested_at: at,
                off_at: Some(at),
                released_at: Some(at),
            }),
            outcome: Some("Rebooted".into()),
        }],
        estimated_start: Some(at),
        estimated_finish: Some(at),
        conditions: vec![Condition {
            type_: condition::SUCCEEDED.into(),
            status: "Unknown".into(),
            reason: "Draining".into(),
            message: String::new(),
            last_transition_time: Time(at),
            observed_generation: Some(1),
        }],
    }
}

#[test]
fn the_schema_knows_every_field_of_the_types_and_no_other() {
    assert_same_fields(&full(), &node_reboot_crd());
}

#[test]
fn a_request_reads_back_as_it_was_written() {
    assert_reads_back(&full());
}

#[test]
fn a_field_that_this_version_does_not_know_is_no_silent_loss() {
    for spec in [
        json!({ "nodeName": "n", "newRule": 1 }),
        json!({ "nodeName": "n", "method": "Wait" }),
        json!({ "nodeName": "n", "success": { "newRule": 1 } }),
    ] {
        assert!(serde_json::from_value::<NodeRebootSpec>(spec).is_err());
    }
}

#[test]
fn every_field_explains_itself_to_kubectl_and_has_a_largest_size() {
    let schema = schema_of(&node_reboot_crd());
    assert_eq!(parts_without_description(&schema), Vec::<String>::new());
    assert_eq!(parts_without_bound(&schema), Vec::<String>::new());
}

#[test]
fn every_field_but_cancel_is_fixed_once_it_is_written() {
    let schema = schema_of(&node_reboot_crd());
    let spec = &schema["properties"]["spec"];
    let rules = spec["x-kubernetes-validations"].to_string();
    for field in spec["properties"].as_object().unwrap().keys() {
        let fixed = rules.contains(&format!("self.{field} == oldSelf.{field}"));
        assert_eq!(fixed, field != "cancel", "{field}");
    }
}

#[test]
fn a_word_is_written_as_it_is_shown() {
    let schema = schema_of(&node_reboot_crd());
    let text = &schema["properties"]["status"]["properties"]["phase"]["description"];
    for phase in NodeRebootPhase::ALL {
        assert!(text.as_str().unwrap().contains(phase.as_str()), "{phase:?}");
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
}

#[test]
fn the_api_server_fills_in_what_absent_fields_mean() {
    let schema = schema_of(&node_reboot_crd());
    let spec = &schema["properties"]["spec"]["properties"];
    assert_eq!(spec["method"]["default"], RebootMethod::default().as_str());
    assert_eq!(
        spec["ttlAfterFinished"]["default"],
        DEFAULT_TTL_AFTER_FINISHED
    );
    assert_eq!(
        spec["success"]["properties"]["within"]["default"],
        DEFAULT_WITHIN
    );
}

#[test]
fn the_docs_name_every_field_of_the_spec() {
    let page = include_str!("../../../../docs/ask-for-a-reboot.md");
    assert_eq!(
        undocumented_fields(&node_reboot_crd(), page),
        Vec::<String>::new()
    );
}
