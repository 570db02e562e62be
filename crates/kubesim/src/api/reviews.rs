//! Reviews of tokens and of access.
//!
//! A token is the name of its user, as everywhere in this server. Everybody may do everything that
//! no [`Denial`](super::Denial) forbids.

use http::Method;
use serde_json::{Value, json};

use super::access::denies_action;
use super::request::{ApiRequest, ApiResponse};
use super::status::{ApiError, ApiResult};
use super::store::ObjectStore;
use super::value::text_at;

const AUTHENTICATION: &str = "authentication.k8s.io/v1";
const AUTHORIZATION: &str = "authorization.k8s.io/v1";

/// The kinds of review: group and version, plural, kind, and whether they have a namespace.
pub(crate) const REVIEWS: [(&str, &str, &str, bool); 6] = [
    (
        AUTHENTICATION,
        "selfsubjectreviews",
        "SelfSubjectReview",
        false,
    ),
    (AUTHENTICATION, "tokenreviews", "TokenReview", false),
    (
        AUTHORIZATION,
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        true,
    ),
    (
        AUTHORIZATION,
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        false,
    ),
    (
        AUTHORIZATION,
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        false,
    ),
    (
        AUTHORIZATION,
        "subjectaccessreviews",
        "SubjectAccessReview",
        false,
    ),
];

/// The answer to a review; None for another path.
pub(crate) fn answer_review(
    store: &ObjectStore,
    request: &ApiRequest,
) -> Option<ApiResult<ApiResponse>> {
    let path = request.path.strip_prefix("/apis/")?;
    let mut reviews = REVIEWS.iter();
    let review = reviews.find(|(version, plural, _, namespaced)| {
        let rest = path
            .strip_prefix(version)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| {
            rest == *plural
                || (*namespaced && rest.starts_with("namespaces/") && rest.ends_with(plural))
        })
    })?;
    if request.method != Method::POST {
        return Some(Err(ApiError::method_not_allowed()));
    }
    Some(review_body(store, request, review.0, review.2))
}

fn review_body(
    store: &ObjectStore,
    request: &ApiRequest,
    version: &str,
    kind: &str,
) -> ApiResult<ApiResponse> {
    let body: Value = serde_json::from_slice(&request.body)
        .map_err(|error| ApiError::bad_request(format!("the body is no {kind}: {error}")))?;
    let status = match kind {
        "SelfSubjectReview" => json!({ "userInfo": user_info(&request.user) }),
        "TokenReview" => token_status(text_at(&body, &["spec", "token"]))?,
        "SelfSubjectRulesReview" => rules_status(),
        "SelfSubjectAccessReview" => access_status(store, &request.user, &body["spec"]),
        _ => access_status(store, text_at(&body, &["spec", "user"]), &body["spec"]),
    };
    let mut review = json!({ "kind": kind, "apiVersion": version, "metadata": body.get("metadata").cloned().unwrap_or_else(|| json!({})), "status": status });
    if let Some(spec) = body.get("spec") {
        review["spec"] = spec.clone();
    }
    Ok(ApiResponse::with_code(201, review.to_string()))
}

fn user_info(user: &str) -> Value {
    let mut groups = Vec::new();
    if let Some((namespace, _)) = user
        .strip_prefix("system:serviceaccount:")
        .and_then(|account| account.split_once(':'))
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    } else {
        groups.push("system:masters".to_owned());
    }
    groups.push("system:authenticated".to_owned());
    json!({ "username": user, "groups": groups })
}

fn token_status(token: &str) -> ApiResult<Value> {
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(ApiError::bad_request(why));
    }
    Ok(json!({ "authenticated": true, "user": user_info(token), "audiences": [] }))
}

fn access_status(store: &ObjectStore, user: &str, spec: &Value) -> Value {
    let attributes = &spec["resourceAttributes"];
    let resource = match text_at(attributes, &["subresource"]) {
        "" => text_at(attributes, &["resource"]).to_owned(),
        subresource => format!("{}/{subresource}", text_at(attributes, &["resource"])),
    };
    let verb = text_at(attributes, &["verb"]);
    if denies_action(&store.denials, user, verb, &resource) {
        return json!({ "allowed": false, "reason": "denied to this user" });
    }
    json!({ "allowed": true })
}

fn rules_status() -> Value {
    json!({
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    })
}
