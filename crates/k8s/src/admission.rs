//! Who we are to the API server, and whether the admission policies are in force.

use dogwatch_core::admission::PoliciesSeen;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};

use crate::error::{Error, Kind, ask};

/// Our own user name, as admission and audit know it; `None`: the API server names nobody, or does not say.
///
/// # Errors
/// When there is no answer.
pub async fn user(client: &Client) -> Result<Option<String>, Error> {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = SelfSubjectReview::default();
    let answer = match ask(api.create(&PostParams::default(), &review)).await {
        Ok(answer) => answer,
        // Kubernetes before 1.28.
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let user = answer.status.and_then(|status| status.user_info);
    Ok(user
        .and_then(|user| user.username)
        .filter(|name| !name.is_empty()))
}

/// All admission policies and bindings; `None`: the API server has no such kinds.
///
/// # Errors
/// When there is no answer, or we may not look.
pub async fn policies(client: &Client) -> Result<Option<PoliciesSeen>, Error> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let all = ListParams::default();
    let policies = match ask(policies.list_metadata(&all)).await {
        Ok(list) => list.items,
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let bindings = ask(bindings.list(&all)).await?.items;
    Ok(Some(PoliciesSeen {
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
