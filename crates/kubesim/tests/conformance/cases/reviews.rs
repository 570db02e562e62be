//! Reviews of users, tokens and access; discovery in one answer.

use serde_json::json;

use crate::step::{AGGREGATED, Step, get, post};

const AUTHORIZATION: &str = "/apis/authorization.k8s.io/v1";
const AUTHENTICATION: &str = "/apis/authentication.k8s.io/v1";

pub fn an_admin_may_do_everything() -> Vec<Step> {
    let attributes = json!({ "verb": "delete", "resource": "nodes" });
    vec![
        post(
            format!("{AUTHORIZATION}/selfsubjectaccessreviews"),
            json!({ "spec": { "resourceAttributes": attributes } }),
        )
        .apart()
        .has("/status/allowed", true)
        .has("/spec/resourceAttributes/resource", "nodes"),
        post(
            format!("{AUTHORIZATION}/subjectaccessreviews"),
            json!({ "spec": { "user": "somebody", "groups": ["system:masters"], "resourceAttributes": attributes } }),
        )
        .apart()
        .has("/status/allowed", true),
        post(
            format!("{AUTHORIZATION}/selfsubjectrulesreviews"),
            json!({ "spec": { "namespace": "default" } }),
        )
        .apart()
        .has("/status/incomplete", false),
        get(format!("{AUTHORIZATION}/subjectaccessreviews")).is(405),
    ]
}

pub fn a_user_is_told_who_it_is() -> Vec<Step> {
    vec![
        post(format!("{AUTHENTICATION}/selfsubjectreviews"), json!({}))
            .apart()
            .has("/kind", "SelfSubjectReview")
            .has("/status/userInfo/groups/0", "system:masters"),
        post(
            format!("{AUTHENTICATION}/tokenreviews"),
            json!({ "spec": { "token": "" } }),
        )
        .is(400),
    ]
}

pub fn all_groups_are_discovered_in_one_answer() -> Vec<Step> {
    vec![
        get("/api")
            .accept(AGGREGATED)
            .apart()
            .has("/kind", "APIGroupDiscoveryList")
            .has("/items/0/versions/0/version", "v1"),
        get("/apis")
            .accept(AGGREGATED)
            .apart()
            .has("/apiVersion", "apidiscovery.k8s.io/v2"),
    ]
}

pub fn fields_that_a_kind_does_not_have_are_told() -> Vec<Step> {
    let lease = |spec: serde_json::Value| json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" }, "spec": spec });
    let at = |validation: &str| format!("{}?fieldValidation={validation}", super::LEASES);
    vec![
        post(at("Strict"), lease(json!({ "holder": "x" })))
            .is(400)
            .says("strict decoding error: unknown field \"spec.holder\""),
        post(at("Strict"), lease(json!({ "leaseDurationSeconds": "x" }))).is(400),
        post(at("Warn"), lease(json!({ "holder": "x" }))).lacks("/spec/holder"),
    ]
}
