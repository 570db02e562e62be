//! Admission policies that refuse evictions. No CEL is evaluated: each policy selects pods by name
//! prefix.

use serde_json::json;

use super::kinds::ServedResource;
use super::status::{ApiError, ApiResult, status_details};

/// A ValidatingAdmissionPolicy that refuses evictions. Like the real one it sees only the Eviction,
/// not the pod: it matches by name, and also refuses evictions of pods that no longer exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionPolicy {
    pub name: String,
    /// Prefix of the names of the pods that the policy protects.
    pub pods: String,
    pub message: String,
}

/// Returns the refusal of the first policy that matches the pod.
pub(crate) fn admit_eviction(
    policies: &[EvictionPolicy],
    pods: &ServedResource,
    name: &str,
) -> ApiResult<()> {
    let refusing = policies
        .iter()
        .find(|policy| name.starts_with(&policy.pods));
    refusing.map_or(Ok(()), |policy| {
        Err(policy_denial_error(policy, pods, name))
    })
}

/// The wording is that of kube-apiserver 1.36.1.
fn policy_denial_error(policy: &EvictionPolicy, pods: &ServedResource, name: &str) -> ApiError {
    let EvictionPolicy {
        name: policy,
        message,
        ..
    } = policy;
    let why = format!(
        "ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {message}"
    );
    let mut details = status_details(&pods.group, &pods.plural, name);
    details["causes"] = json!([{ "message": why }]);
    ApiError {
        code: 422,
        reason: "Invalid",
        details,
        ..ApiError::forbidden(&pods.group, &pods.plural, name, &why)
    }
}
