//! The API calls of a kubelet. Each reports one fact; the caller only learns whether the API server
//! accepted it.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::config::KubeletConfig;
use super::machine::{PodReport, PodReportKind};
use super::objects;
use crate::world::controllers::object_queries;

/// The kubelet's name in `managedFields`.
const FIELD_MANAGER: &str = "kubelet";

/// Creates the Node if it does not exist, and patches its status. Returns the Node's UID.
pub async fn register_node(
    client: &Client,
    config: &KubeletConfig,
    status: &Value,
) -> kube::Result<Option<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = config.node.as_str();
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PatchParams::default()
    };
    let mut registered = nodes
        .patch_status(node, &params, &Patch::Strategic(status))
        .await;
    if is_not_found(&registered) {
        let object = serde_json::from_value(objects::node_manifest(config))
            .map_err(kube::Error::SerdeError)?;
        let created = nodes.create(&create_params(), &object).await;
        if !is_conflict(&created) {
            created?;
        }
        registered = nodes
            .patch_status(node, &params, &Patch::Strategic(status))
            .await;
    }
    Ok(registered?.uid())
}

/// Patches the Node's status. A deleted Node is not created again before the next start, as with a
/// real kubelet.
pub async fn patch_node_status(client: &Client, node: &str, status: &Value) -> kube::Result<()> {
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

/// Patches the Node's status if it contradicts our readiness.
pub async fn correct_node_status(client: &Client, node: &str, status: &Value) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let ours = &status["status"]["conditions"][0]["status"];
    match nodes.get_opt(node).await? {
        Some(object) if object_queries::node_ready_status(&object) != ours => {
            patch_node_status(client, node, status).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Renews the Node's Lease, or creates it.
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
    leases.create(&create_params(), &lease).await.map(drop)
}

/// Creates the missing mirror pods.
pub async fn create_mirror_pods(
    client: &Client,
    config: &KubeletConfig,
    node_uid: &str,
) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    for name in &config.static_pods {
        let pod = objects::mirror_pod(config, name, node_uid);
        let pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
        let created = pods.create(&create_params(), &pod).await;
        if !is_conflict(&created) {
            created?;
        }
    }
    Ok(())
}

/// Reports one fact about a pod. A pod that no longer exists needs no report.
pub async fn report_pod(client: &Client, work: &PodReport, now: Timestamp) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &work.namespace);
    let outcome = match work.kind {
        PodReportKind::Ended => {
            let params = DeleteParams::default()
                .grace_period(0)
                .preconditions(Preconditions {
                    uid: Some(work.uid.clone()),
                    resource_version: None,
                });
            pods.delete(&work.name, &params).await.map(drop)
        }
        PodReportKind::Starting { .. } | PodReportKind::Ready { .. } | PodReportKind::Failed => {
            let status = objects::pod_status_patch(work, now);
            let patch = Patch::Merge(&status);
            pods.patch_status(&work.name, &PatchParams::default(), &patch)
                .await
                .map(drop)
        }
    };
    // A conflict is retried: the watch soon shows whether this pod was replaced.
    if is_not_found(&outcome) {
        Ok(())
    } else {
        outcome
    }
}

fn create_params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.into()),
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
