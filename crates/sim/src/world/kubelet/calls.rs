//! The calls a kubelet makes. Each is one thing to tell; whether it was taken is all that counts.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::config::KubeletConfig;
use super::machine::{Report, Work};
use super::objects;
use crate::world::controllers::words;

/// Who a kubelet is in `managedFields`.
const MANAGER: &str = "kubelet";

/// Makes the Node if there is none, and says what runs on it. Answers the Node's UID.
pub async fn register(
    client: &Client,
    config: &KubeletConfig,
    status: &Value,
) -> kube::Result<Option<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = config.node.as_str();
    let params = PatchParams {
        field_manager: Some(MANAGER.into()),
        ..PatchParams::default()
    };
    let mut registered = nodes
        .patch_status(node, &params, &Patch::Strategic(status))
        .await;
    if is_not_found(&registered) {
        let object =
            serde_json::from_value(objects::node(config)).map_err(kube::Error::SerdeError)?;
        let created = nodes.create(&post(), &object).await;
        if !is_conflict(&created) {
            created?;
        }
        registered = nodes
            .patch_status(node, &params, &Patch::Strategic(status))
            .await;
    }
    Ok(registered?.uid())
}

/// Tells the Node's status. A Node that was deleted is not made again before the next start, as with
/// a real kubelet.
pub async fn node_status(client: &Client, node: &str, status: &Value) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let patch = Patch::Strategic(status);
    let told = nodes
        .patch_status(node, &PatchParams::default(), &patch)
        .await;
    if is_not_found(&told) {
        Ok(())
    } else {
        told.map(drop)
    }
}

/// Tells the Node's status if it says something else of our readiness.
pub async fn check(client: &Client, node: &str, status: &Value) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let ours = &status["status"]["conditions"][0]["status"];
    match nodes.get_opt(node).await? {
        Some(object) if words::node_ready(&object) != ours => {
            node_status(client, node, status).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Renews the Node's Lease, or makes it.
pub async fn renew_lease(
    client: &Client,
    config: &KubeletConfig,
    now: Timestamp,
) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let renewal = objects::node_lease_renewal(now);
    let patch = Patch::Merge(&renewal);
    let renewed = leases
        .patch(config.node.as_str(), &PatchParams::default(), &patch)
        .await;
    if !is_not_found(&renewed) {
        return renewed.map(drop);
    }
    let lease = objects::node_lease(&config.node, now);
    let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
    leases.create(&post(), &lease).await.map(drop)
}

/// Makes the mirror pods that are not there.
pub async fn mirror(client: &Client, config: &KubeletConfig, node_uid: &str) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    for name in &config.static_pods {
        let pod = objects::mirror_pod(config, name, node_uid);
        let pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
        let created = pods.create(&post(), &pod).await;
        if !is_conflict(&created) {
            created?;
        }
    }
    Ok(())
}

/// Tells one thing about one pod. A pod that is no more needs no telling.
pub async fn tell(client: &Client, work: &Work, now: Timestamp) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &work.namespace);
    let outcome = match work.what {
        Report::Ended => {
            let params = DeleteParams::default()
                .grace_period(0)
                .preconditions(Preconditions {
                    uid: Some(work.uid.clone()),
                    resource_version: None,
                });
            pods.delete(&work.name, &params).await.map(drop)
        }
        Report::Starting { .. } | Report::Ready { .. } | Report::Failed => {
            let status = objects::pod_status(work, now);
            let patch = Patch::Merge(&status);
            pods.patch_status(&work.name, &PatchParams::default(), &patch)
                .await
                .map(drop)
        }
    };
    // A conflict is told again: the watch will say soon enough if this pod was replaced.
    if is_not_found(&outcome) {
        Ok(())
    } else {
        outcome
    }
}

fn post() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    }
}

fn is_not_found<T>(outcome: &kube::Result<T>) -> bool {
    has_code(outcome, 404)
}

fn is_conflict<T>(outcome: &kube::Result<T>) -> bool {
    has_code(outcome, 409)
}

fn has_code<T>(outcome: &kube::Result<T>, code: u16) -> bool {
    matches!(outcome, Err(kube::Error::Api(status)) if status.code == code)
}
