//! The types and the schema agree.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use super::*;
use crate::power_remediation::{StrategySpec, StrategyType};
use crate::schema::check::{
    assert_reads_back, assert_same_fields, parts_without_description, schema_of,
};

/// Sets every field of every type.
fn full() -> PowerRemediationTemplate {
    let one = || BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let strategy = StrategySpec {
        kind: Some(StrategyType::DeleteNode),
        retry_limit: Some(2),
        timeout: Some("15m".into()),
    };
    let template = TemplateResource {
        metadata: Some(TemplateMetadata {
            labels: one(),
            annotations: one(),
        }),
        spec: PowerRemediationSpec {
            strategy: Some(strategy),
        },
    };
    let condition = Condition {
        type_: "Any".into(),
        status: "True".into(),
        reason: "Any".into(),
        message: String::new(),
        last_transition_time: Time("2026-12-24T02:00:00Z".parse().unwrap()),
        observed_generation: Some(1),
    };
    PowerRemediationTemplate {
        api_version: api_version::<PowerRemediationTemplate>(),
        kind: kind::<PowerRemediationTemplate>(),
        metadata: ObjectMeta::default(),
        spec: PowerRemediationTemplateSpec { template },
        status: Some(PowerRemediationTemplateStatus {
            conditions: vec![condition],
        }),
    }
}

#[test]
fn the_schema_knows_every_field_of_the_types_and_no_other() {
    assert_same_fields(&full(), &template_crd());
}

#[test]
fn a_template_reads_back_as_it_was_written() {
    assert_reads_back(&full());
}

#[test]
fn every_field_explains_itself_to_kubectl() {
    assert_eq!(
        parts_without_description(&schema_of(&template_crd())),
        Vec::<String>::new()
    );
}

#[test]
fn a_template_has_what_a_request_has_and_may_become_another_strategy() {
    let request = schema_of(&crate::power_remediation::remediation_crd());
    let template = schema_of(&template_crd());
    let mut request = request["properties"]["spec"].clone();
    let kind = &mut request["properties"]["strategy"]["properties"]["type"];
    let rules = kind
        .as_object_mut()
        .and_then(|kind| kind.remove("x-kubernetes-validations"));
    assert_eq!(rules.unwrap()[0]["rule"], json!("self == oldSelf"));
    let template = &template["properties"]["spec"]["properties"]["template"];
    assert_eq!(template["properties"]["spec"], request);
}
