//! In which namespace of a workload cluster Dogwatch is.

use dogwatch_k8s::workload_cluster::{CoordinatorPlace, find_coordinators};
use dogwatch_kubesim::api::{ApiServer, Denial};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::support::embedded::server;

async fn create_pod(server: &ApiServer, namespace: &str, app: &str) {
    let client = server.client_for_user("test");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object = json!({ "metadata": { "name": namespace } });
    let object = serde_json::from_value(object).unwrap();
    // It may exist already.
    let _ = namespaces.create(&PostParams::default(), &object).await;
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": app, "labels": { "app.kubernetes.io/name": app } },
        "spec": { "containers": [{ "name": "c", "image": "none" }] },
    }))
    .unwrap();
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    pods.create(&PostParams::default(), &pod).await.unwrap();
}

async fn place(server: &ApiServer, expected: &str) -> CoordinatorPlace {
    let client = server.client_for_user("remediator");
    find_coordinators(&client, expected).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn coordinators_of_another_namespace_are_found_and_those_of_the_expected_one_suffice() {
    const COORDINATOR: &str = "dogwatch-coordinator";
    let server = server();
    create_pod(&server, "default", "other-software").await;
    let nowhere = place(&server, "dogs").await;
    assert_eq!(
        nowhere,
        CoordinatorPlace::Expected,
        "without pods, or later"
    );
    create_pod(&server, "dogwatch", COORDINATOR).await;
    let namespace = "dogwatch".to_owned();
    let elsewhere = CoordinatorPlace::Elsewhere { namespace };
    assert_eq!(place(&server, "default").await, elsewhere);
    assert_eq!(place(&server, "dogwatch").await, CoordinatorPlace::Expected);
    create_pod(&server, "another", COORDINATOR).await;
    assert_eq!(place(&server, "dogwatch").await, CoordinatorPlace::Expected);
    server.set_denials(vec![Denial {
        user: Some("remediator".into()),
        verb: None,
        resource: Some("pods".into()),
    }]);
    let unknown = place(&server, "default").await;
    assert_eq!(unknown, CoordinatorPlace::Expected, "it may not look");
    server.set_denials(Vec::new());
    let pods: Api<Pod> = Api::namespaced(server.client_for_user("test"), "dogwatch");
    let params = DeleteParams::default().grace_period(0);
    pods.delete(COORDINATOR, &params).await.unwrap();
    assert_ne!(place(&server, "dogwatch").await, CoordinatorPlace::Expected);
}
