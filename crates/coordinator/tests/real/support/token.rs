//! Tokens as a kubelet gets them for its pods: bound to a pod, and so to its node.

use serde_json::{Value, json};

use super::api::Api;

/// The token of this account of Dogwatch, for a pod on this existing Node.
///
/// A mirror pod replaces the one that the kubelet would run: no controller deletes it, and no drain
/// evicts it.
pub async fn on_node(api: &Api, account: &str, node: &str) -> String {
    let name = format!("{account}-{node}");
    let pod = json!({
        "metadata": { "name": name, "annotations": { "kubernetes.io/config.mirror": "none" } },
        "spec": {
            "nodeName": node,
            "serviceAccountName": account,
            "containers": [{ "name": "main", "image": "none" }],
        },
    });
    let pod = api.create("/api/v1/namespaces/dogwatch/pods", &pod).await;
    let bound_to = json!({
        "apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"],
    });
    let spec = json!({ "boundObjectRef": bound_to });
    request(api, "dogwatch", account, &spec).await
}

/// The token of an account, bound to no pod.
pub async fn unbound(api: &Api, namespace: &str, account: &str) -> String {
    request(api, namespace, account, &json!({})).await
}

async fn request(api: &Api, namespace: &str, account: &str, spec: &Value) -> String {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let answer = api.create(&path, &json!({ "spec": spec })).await;
    let token = answer["status"]["token"].as_str();
    token.expect("the answer has a token").to_owned()
}
