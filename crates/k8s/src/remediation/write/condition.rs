//! Conditions of a Machine, in the form of each API version.

use dogwatch_api::condition::OWNER_REMEDIATED;
use dogwatch_core::condition::{ConditionStatus, ConditionWrite};
use dogwatch_core::remediation::MachineApi;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::node::format_seconds;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::remediation) enum ConditionForm {
    /// OpenShift: with a severity.
    OpenShift,
    /// With a severity; the conditions of the next version are in `status.v1beta2`.
    V1Beta1,
    /// As in Kubernetes; the conditions of the version before are in `status.deprecated.v1beta1`.
    V1Beta2,
}

impl ConditionForm {
    pub(in crate::remediation) fn of_version(api: MachineApi, version: &ApiResource) -> Self {
        match api {
            MachineApi::OpenShift => ConditionForm::OpenShift,
            MachineApi::ClusterApi if version.version == "v1beta1" => ConditionForm::V1Beta1,
            MachineApi::ClusterApi => ConditionForm::V1Beta2,
        }
    }

    /// The part of a merge patch that writes these conditions; others stay. The controller that
    /// deletes a Machine which was handed back reads the list of its own version, so that condition
    /// is written to both.
    pub(in crate::remediation) fn status_patch(
        self,
        status: &Value,
        writes: &[ConditionWrite],
    ) -> Value {
        let here = merge_conditions(&status["conditions"], writes, |write| {
            self.condition_value(write)
        });
        let mut patch = json!({ "conditions": here });
        let handed_back = |write: &&ConditionWrite| write.observation.kind == OWNER_REMEDIATED;
        let both: Vec<ConditionWrite> = writes.iter().filter(handed_back).cloned().collect();
        if both.is_empty() {
            return patch;
        }
        match self {
            ConditionForm::OpenShift => {}
            ConditionForm::V1Beta1 => {
                let there =
                    merge_conditions(&status["v1beta2"]["conditions"], &both, plain_condition);
                patch["v1beta2"] = json!({ "conditions": there });
            }
            ConditionForm::V1Beta2 => {
                let old = &status["deprecated"]["v1beta1"]["conditions"];
                let there = merge_conditions(old, &both, with_severity);
                patch["deprecated"] = json!({ "v1beta1": { "conditions": there } });
            }
        }
        patch
    }

    fn condition_value(self, write: &ConditionWrite) -> Value {
        match self {
            ConditionForm::OpenShift | ConditionForm::V1Beta1 => with_severity(write),
            ConditionForm::V1Beta2 => plain_condition(write),
        }
    }
}

/// A list in a merge patch replaces the whole list.
fn merge_conditions(
    standing: &Value,
    writes: &[ConditionWrite],
    one: impl Fn(&ConditionWrite) -> Value,
) -> Vec<Value> {
    let is_written = |condition: &Value| {
        let kind = condition["type"].as_str();
        writes
            .iter()
            .any(|write| Some(write.observation.kind) == kind)
    };
    let standing = standing.as_array().into_iter().flatten();
    let kept = standing.filter(|condition| !is_written(condition)).cloned();
    kept.chain(writes.iter().map(one)).collect()
}

fn plain_condition(write: &ConditionWrite) -> Value {
    let it = &write.observation;
    json!({
        "type": it.kind, "status": it.status.as_str(), "reason": it.reason, "message": it.message,
        "lastTransitionTime": format_seconds(write.last_transition),
    })
}

/// Only False conditions have a severity, and a reason or message that is present is not empty.
/// Source: Cluster API's v1beta1.
fn with_severity(write: &ConditionWrite) -> Value {
    let mut condition = plain_condition(write);
    let severity = match (write.observation.status, write.observation.kind) {
        (ConditionStatus::False, OWNER_REMEDIATED) => Some("Warning"),
        (ConditionStatus::False, _) => Some("Info"),
        (ConditionStatus::True | ConditionStatus::Unknown, _) => None,
    };
    if let Some(severity) = severity {
        condition["severity"] = severity.into();
    }
    if let Value::Object(fields) = &mut condition {
        fields.retain(|_, text| *text != "");
    }
    condition
}
