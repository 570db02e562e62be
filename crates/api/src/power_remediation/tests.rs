//! The types and the schema agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use super::*;
use crate::schema::check::{
    assert_reads_back, assert_same_fields, parts_without_bound, parts_without_description,
    schema_of,
};

/// Sets every field of every type: a new field does not compile until it is added here, and then
/// the schema must have it.
fn full() -> PowerRemediation {
    let strategy = StrategySpec {
        kind: Some(StrategyType::OutOfServiceTaint),
        retry_limit: Some(2),
        timeout: Some("15m".into()),
    };
    let spec = PowerRemediationSpec {
        strategy: Some(strategy),
    };
    let mut request = PowerRemediation::new("machines", "worker-1", spec);
    request.status = Some(status());
    request
}

fn status() -> PowerRemediationStatus {
    let at = "2026-12-24T02:00:00.000001Z".parse().unwrap();
    PowerRemediationStatus {
        observed_generation: Some(1),
        phase: Some(PowerRemediationPhase::PoweringOn),
        started_at: Some(at),
        ended_at: Some(at),
        attempt: Some(AttemptStatus {
            number: 1,
            started_at: at,
            key_at: Some(at),
            off_confirmed_at: Some(at),
            released_at: Some(at),
            key_removed_at: Some(at),
        }),
        host: Some(HostReference {
            namespace: "machines".into(),
            name: "host-1".into(),
            uid: "u1".into(),
        }),
        node: Some(NodeReference {
            name: "worker-1".into(),
            uid: Some("u2".into()),
            boot_id: Some("b1".into()),
        }),
        tainted_at: Some(at),
        off_proof: Some(OffProofStatus {
            source: "Person".into(),
            command: Some("PowerOff".into()),
            confirmed_at: at,
            by: Some("somebody".into()),
            reason: Some("the plug is out".into()),
        }),
        timeline: vec![TimelineEntry {
            what: "Requested".into(),
            at,
        }],
        conditions: vec![said(condition::PROCESSING, "True")],
    }
}

fn said(type_: &str, status: &str) -> Condition {
    Condition {
        type_: type_.into(),
        status: status.into(),
        reason: "PoweringOn".into(),
        message: String::new(),
        last_transition_time: Time("2026-12-24T02:00:00Z".parse().unwrap()),
        observed_generation: Some(1),
    }
}

#[test]
fn the_schema_knows_every_field_of_the_types_and_no_other() {
    assert_same_fields(&full(), &remediation_crd());
}

#[test]
fn a_request_reads_back_as_it_was_written() {
    assert_reads_back(&full());
}

#[test]
fn a_field_that_this_version_does_not_know_is_no_silent_loss() {
    for spec in [
        json!({ "newRule": 1 }),
        json!({ "strategy": { "newRule": 1 } }),
        json!({ "strategy": { "type": "Reprovision" } }),
    ] {
        assert!(serde_json::from_value::<PowerRemediationSpec>(spec).is_err());
    }
}

#[test]
fn every_field_explains_itself_to_kubectl_and_has_a_largest_size() {
    let schema = schema_of(&remediation_crd());
    assert_eq!(parts_without_description(&schema), Vec::<String>::new());
    assert_eq!(parts_without_bound(&schema), Vec::<String>::new());
}

#[test]
fn the_api_server_fills_in_what_absent_fields_mean() {
    let schema = schema_of(&remediation_crd());
    let strategy = &schema["properties"]["spec"]["properties"]["strategy"]["properties"];
    let filled = |field: &str| strategy[field]["default"].clone();
    assert_eq!(filled("type"), StrategyType::DeleteNode.as_str());
    assert_eq!(filled("retryLimit"), DEFAULT_RETRY_LIMIT);
    assert_eq!(filled("timeout"), DEFAULT_TIMEOUT);
}

#[test]
fn a_word_is_written_as_it_is_shown() {
    for kind in [StrategyType::DeleteNode, StrategyType::OutOfServiceTaint] {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    let schema = schema_of(&remediation_crd());
    let text = &schema["properties"]["status"]["properties"]["phase"]["description"];
    for phase in PowerRemediationPhase::ALL {
        assert!(text.as_str().unwrap().contains(phase.as_str()), "{phase:?}");
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
}

#[test]
fn cluster_api_finds_the_kinds_by_their_names_and_labels() {
    use crate::power_remediation_template as template;
    for (crd, name, kind) in [
        (remediation_crd(), CRD_NAME, "PowerRemediation"),
        (
            template::template_crd(),
            template::CRD_NAME,
            "PowerRemediationTemplate",
        ),
    ] {
        assert_eq!(crd["spec"]["names"]["kind"], kind);
        // Cluster API derives the CustomResourceDefinition's name from the kind.
        assert_eq!(name, format!("{}s.dogwatch.dev", kind.to_lowercase()));
        assert_eq!(crd["metadata"]["name"], name);
        for contract in ["v1beta1", "v1beta2"] {
            let label = &crd["metadata"]["labels"][format!("cluster.x-k8s.io/{contract}")];
            assert_eq!(*label, "v1alpha1");
        }
    }
}

#[test]
fn the_phase_is_the_last_step_that_was_seen_and_then_the_end() {
    let whole = status();
    let attempt = |change: fn(&mut AttemptStatus)| {
        let mut attempt = whole.attempt;
        change(attempt.as_mut().unwrap());
        attempt
    };
    let after = |attempt| PowerRemediationStatus {
        attempt,
        ..PowerRemediationStatus::default()
    };
    let ended = |succeeded: Option<&str>| PowerRemediationStatus {
        ended_at: whole.ended_at,
        conditions: succeeded
            .map(|status| said(condition::SUCCEEDED, status))
            .into_iter()
            .collect(),
        ..after(whole.attempt)
    };
    let begun = attempt(|attempt| {
        attempt.key_at = None;
        attempt.off_confirmed_at = None;
        attempt.released_at = None;
    });
    let off = attempt(|attempt| {
        attempt.off_confirmed_at = None;
        attempt.released_at = None;
    });
    let proved = attempt(|attempt| attempt.released_at = None);
    for (status, phase) in [
        (after(None), PowerRemediationPhase::Waiting),
        (after(begun), PowerRemediationPhase::Waiting),
        (after(off), PowerRemediationPhase::PoweringOff),
        (after(proved), PowerRemediationPhase::Releasing),
        (after(whole.attempt), PowerRemediationPhase::PoweringOn),
        (ended(Some("True")), PowerRemediationPhase::Succeeded),
        (ended(Some("False")), PowerRemediationPhase::Failed),
        (ended(None), PowerRemediationPhase::Withdrawn),
    ] {
        assert_eq!(status.current_phase(), phase, "{status:?}");
    }
}
