//! What a list of the policies makes of the server's answers.

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use dogwatch_api::reboot_policy::RebootPolicyStatus;

use super::*;
use crate::cluster::PolicyObjectState;
use crate::fleet::{FleetClient, PauseChange};

/// A server that gives every request the same answer.
fn answering_client(code: u16, body: &Value) -> Client {
    let body = body.to_string();
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = Body::from(body.clone().into_bytes());
        async move { Response::builder().status(code).body(body) }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_date_that_nobody_can_read_in_one_policy_does_not_hide_the_policies() {
    let entry = json!({ "manager": "m", "operation": "Update", "time": "9999-12-31T23:59:59Z" });
    let policy = json!({ "metadata": { "name": "workers", "managedFields": [entry] }, "spec": {} });
    let list = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicyList",
        "metadata": { "resourceVersion": "7" }, "items": [policy] });
    let policies = list_policies(&answering_client(200, &list)).await.unwrap();
    let names = policies.known_policies().iter().map(|it| it.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["workers"]);
}

#[tokio::test]
async fn a_refusal_that_the_watch_does_not_show_is_a_failure_like_another() {
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
        "reason": "Forbidden", "message": "the authorizer is not ready yet" });
    let client = answering_client(403, &status);
    let error = list_policies_beside_watch(&client, || false).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ApiErrorKind::Transient, "{error}");
    let policies = list_policies_beside_watch(&client, || true).await.unwrap();
    assert!(
        matches!(policies, ClusterPolicies::Unreadable { .. }),
        "{policies:?}"
    );
}

#[tokio::test]
async fn such_a_policy_can_be_paused_and_its_status_be_written() {
    let entry = json!({ "manager": "m", "operation": "Update", "time": "9999-12-31T23:59:59Z" });
    let policy = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "workers", "uid": "u1", "resourceVersion": "7", "managedFields": [entry] },
        "spec": {} });
    let client = answering_client(200, &policy);
    let fleet = FleetClient::new(client.clone(), "dogwatch");
    let paused = fleet.change_pause("workers", |_| PauseChange::Clear).await;
    assert_eq!(paused.unwrap(), Some(PauseChange::Clear));
    let seen = PolicyObjectState {
        uid: "u1".into(),
        resource_version: "7".into(),
        generation: None,
        status: None,
    };
    let status = RebootPolicyStatus::default();
    write_status(&client, "workers", &seen, &status)
        .await
        .unwrap();
}
