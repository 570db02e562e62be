//! Policies that refuse evictions. No CEL is evaluated: each says by itself which pods it is about.

use serde_json::json;

use super::kinds::Resource;
use super::status::{ApiError, Result, details};

/// A ValidatingAdmissionPolicy that refuses evictions. As the real one it sees the Eviction alone,
/// not the pod: it goes by the name, and refuses also what is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionPolicy {
    /// Its name.
    pub name: String,
    /// How the names of the pods begin that it keeps.
    pub pods: String,
    /// What it says.
    pub message: String,
}

/// The refusal of the first policy that is about this pod.
pub(crate) fn admit_eviction(
    policies: &[EvictionPolicy],
    pods: &Resource,
    name: &str,
) -> Result<()> {
    let refusing = policies
        .iter()
        .find(|policy| name.starts_with(&policy.pods));
    refusing.map_or(Ok(()), |policy| Err(refusal(policy, pods, name)))
}

/// As kube-apiserver 1.36.1 words it.
fn refusal(policy: &EvictionPolicy, pods: &Resource, name: &str) -> ApiError {
    let EvictionPolicy {
        name: policy,
        message,
        ..
    } = policy;
    let why = format!(
        "ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {message}"
    );
    let mut details = details(&pods.group, &pods.plural, name);
    details["causes"] = json!([{ "message": why }]);
    ApiError {
        code: 422,
        reason: "Invalid",
        details,
        ..ApiError::forbidden(&pods.group, &pods.plural, name, &why)
    }
}
