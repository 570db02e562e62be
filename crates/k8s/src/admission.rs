//! Reads our own user name and the admission policies from the API server.

use dogwatch_core::admission::ObservedAdmissionPolicies;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};

use crate::error::{ApiErrorKind, Error, with_timeout};

/// Our own user name, as admission and audit log spell it. `None`: the API server returns no name
/// or has no SelfSubjectReview.
///
/// # Errors
/// When the request fails.
pub async fn read_own_user(client: &Client) -> Result<Option<String>, Error> {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = SelfSubjectReview::default();
    let answer = match with_timeout(api.create(&PostParams::default(), &review)).await {
        Ok(answer) => answer,
        // Kubernetes before 1.28 has no SelfSubjectReview.
        Err(error) if error.kind() == ApiErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let user = answer.status.and_then(|status| status.user_info);
    Ok(user
        .and_then(|user| user.username)
        .filter(|name| !name.is_empty()))
}

/// All admission policies and bindings. `None`: the API server does not serve these kinds.
///
/// # Errors
/// When the request fails, or we may not list them.
pub async fn list_admission_policies(
    client: &Client,
) -> Result<Option<ObservedAdmissionPolicies>, Error> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let all = ListParams::default();
    let policies = match with_timeout(policies.list_metadata(&all)).await {
        Ok(list) => list.items,
        Err(error) if error.kind() == ApiErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let bindings = with_timeout(bindings.list(&all)).await?.items;
    Ok(Some(ObservedAdmissionPolicies {
        policies: policies
            .into_iter()
            .filter_map(|policy| policy.metadata.name)
            .collect(),
        bindings: bindings
            .into_iter()
            .filter_map(|binding| Some((binding.metadata.name?, binding.spec.policy_name)))
            .collect(),
    }))
}
