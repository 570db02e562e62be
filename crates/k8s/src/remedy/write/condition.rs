//! Conditions of a Machine, in each form that an API version has for them.

use dogwatch_api::condition::OWNER_REMEDIATED;
use dogwatch_core::condition::{Status, Write};
use dogwatch_core::remedy::MachineApi;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::node::seconds;

/// How a Machine's conditions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::remedy) enum Form {
    /// With a severity. OpenShift's.
    OpenShift,
    /// With a severity; those of the next version stand in `status.v1beta2`.
    V1Beta1,
    /// As Kubernetes has them; those of the version before stand in `status.deprecated.v1beta1`.
    V1Beta2,
}

impl Form {
    /// That of this version.
    pub(in crate::remedy) fn of(api: MachineApi, version: &ApiResource) -> Self {
        match api {
            MachineApi::OpenShift => Form::OpenShift,
            MachineApi::ClusterApi if version.version == "v1beta1" => Form::V1Beta1,
            MachineApi::ClusterApi => Form::V1Beta2,
        }
    }

    /// The part of a merge patch that writes these over what stands; others stay. Whoever deletes a
    /// Machine that is handed back looks in the list of its own version: that condition is in both.
    pub(in crate::remedy) fn patch(self, status: &Value, writes: &[Write]) -> Value {
        let here = with(&status["conditions"], writes, |write| self.one(write));
        let mut patch = json!({ "conditions": here });
        let handed_back = |write: &&Write| write.observation.kind == OWNER_REMEDIATED;
        let both: Vec<Write> = writes.iter().filter(handed_back).cloned().collect();
        if both.is_empty() {
            return patch;
        }
        match self {
            Form::OpenShift => {}
            Form::V1Beta1 => {
                let there = with(&status["v1beta2"]["conditions"], &both, plain);
                patch["v1beta2"] = json!({ "conditions": there });
            }
            Form::V1Beta2 => {
                let old = &status["deprecated"]["v1beta1"]["conditions"];
                let there = with(old, &both, with_severity);
                patch["deprecated"] = json!({ "v1beta1": { "conditions": there } });
            }
        }
        patch
    }

    fn one(self, write: &Write) -> Value {
        match self {
            Form::OpenShift | Form::V1Beta1 => with_severity(write),
            Form::V1Beta2 => plain(write),
        }
    }
}

/// A list in a merge patch replaces the whole list.
fn with(standing: &Value, writes: &[Write], one: impl Fn(&Write) -> Value) -> Vec<Value> {
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

fn plain(write: &Write) -> Value {
    let it = &write.observation;
    json!({
        "type": it.kind, "status": it.status.as_str(), "reason": it.reason, "message": it.message,
        "lastTransitionTime": seconds(write.last_transition),
    })
}

/// A severity belongs to what is False; a text that is there is not empty. Source: Cluster API's v1beta1.
fn with_severity(write: &Write) -> Value {
    let mut condition = plain(write);
    let severity = match (write.observation.status, write.observation.kind) {
        (Status::False, OWNER_REMEDIATED) => Some("Warning"),
        (Status::False, _) => Some("Info"),
        (Status::True | Status::Unknown, _) => None,
    };
    if let Some(severity) = severity {
        condition["severity"] = severity.into();
    }
    if let Value::Object(fields) = &mut condition {
        fields.retain(|_, text| *text != "");
    }
    condition
}
