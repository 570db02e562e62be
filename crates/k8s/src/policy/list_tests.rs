//! What a list of the policies makes of the server's answers.

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

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
