//! Reads our own user name and the admission policies from the API server.

use dogwatch_core::admission::{LockNamespace, ObservedAdmissionPolicies};
use dogwatch_core::selector::LabelSelector;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Namespace;
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

/// All admission policies and bindings, without Dogwatch's namespace. `None`: the API server does not
/// serve these kinds.
///
/// # Errors
/// When the request fails, or we may not list them.
pub async fn list_admission_policies(
    client: &Client,
) -> Result<Option<ObservedAdmissionPolicies>, Error> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let all = ListParams::default();
    let policies = match with_timeout(policies.list(&all)).await {
        Ok(list) => list.items,
        Err(error) if error.kind() == ApiErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let bindings = with_timeout(bindings.list(&all)).await?.items;
    Ok(Some(ObservedAdmissionPolicies {
        namespace_selectors: policies.iter().filter_map(namespace_selector).collect(),
        namespace: None,
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

/// Dogwatch's namespace. `None`: it does not exist, or we may not read it.
///
/// # Errors
/// When the request fails.
pub async fn read_lock_namespace(
    client: &Client,
    name: &str,
) -> Result<Option<LockNamespace>, Error> {
    let api: Api<Namespace> = Api::all(client.clone());
    match with_timeout(api.get_metadata_opt(name)).await {
        Ok(found) => Ok(found.map(|found| LockNamespace {
            name: name.to_owned(),
            labels: found.metadata.labels.unwrap_or_default(),
        })),
        Err(error) if error.kind() == ApiErrorKind::Forbidden => Ok(None),
        Err(error) => Err(error),
    }
}

/// The policy's name, and the namespaces that it applies to, if it is limited to some.
fn namespace_selector(policy: &ValidatingAdmissionPolicy) -> Option<(String, LabelSelector)> {
    let name = policy.metadata.name.clone()?;
    let constraints = policy.spec.as_ref()?.match_constraints.as_ref()?;
    let selector = serde_json::to_value(constraints.namespace_selector.as_ref()?).ok()?;
    let selector: LabelSelector = serde_json::from_value(selector).ok()?;
    (selector != LabelSelector::default()).then_some((name, selector))
}
