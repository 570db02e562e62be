//! Reads the return gates from the cluster. Source: specification §2.5.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};

use dogwatch_core::policy::ReturnGate;
use dogwatch_core::selector::LabelSelector;

use crate::Error;
use crate::error::with_timeout;
use crate::readable_dates::ReadableApi as _;

/// Which of `gates` are shut, as text; empty if none is. A gate is open when the DaemonSets' pods
/// are ready, no PodDisruptionBudget that covered a drained pod is short, and the volumes are
/// attached.
pub async fn list_shut_gates(
    client: &Client,
    node: &str,
    gates: &[ReturnGate],
    budgets: &[String],
) -> Result<Vec<String>, Error> {
    let mut shut = Vec::new();
    for gate in gates {
        shut.extend(match gate {
            ReturnGate::DaemonSetPods => list_unready_daemon_pods(client, node).await?,
            ReturnGate::DisruptionBudgets => list_short_budgets(client, budgets).await?,
            ReturnGate::Volumes => list_detached_volumes(client, node).await?,
        });
    }
    Ok(shut)
}

/// How many pods are named: people read this in a condition, and a node may have hundreds.
const MAX_NAMED_PODS: usize = 5;

/// The pods on the node that a policy's gate waits for: selected, and not finished. As text,
/// sorted, the first few by name.
pub async fn list_blocking_pods(
    client: &Client,
    node: &str,
    selector: &LabelSelector,
) -> Result<Vec<String>, Error> {
    let pods: Api<Pod> = Api::all(client.clone());
    let selected = ListParams::default()
        .fields(&format!("spec.nodeName={node}"))
        .labels(&selector.to_query_string());
    let all = with_timeout(pods.list_readable(&selected)).await?;
    let mut names: Vec<String> = all
        .items
        .iter()
        .filter(|pod| is_running(pod))
        .map(|pod| {
            let namespace = pod.namespace().unwrap_or_default();
            format!("pod {namespace}/{} runs on this node", pod.name_any())
        })
        .collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_NAMED_PODS);
    if more > 0 {
        names.truncate(MAX_NAMED_PODS);
        names.push(format!("{more} more pods"));
    }
    Ok(names)
}

/// `Pending` or `Running`, as in kured's `--blocking-pod-selector`.
fn is_running(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

async fn list_unready_daemon_pods(client: &Client, node: &str) -> Result<Vec<String>, Error> {
    let pods: Api<Pod> = Api::all(client.clone());
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let unready = with_timeout(pods.list_readable(&on_node))
        .await?
        .items
        .into_iter()
        .filter(|pod| is_daemon(pod) && !is_ready(pod));
    Ok(unready
        .map(|pod| {
            let namespace = pod.namespace().unwrap_or_default();
            format!("DaemonSet pod {namespace}/{} is not ready", pod.name_any())
        })
        .collect())
}

fn is_daemon(pod: &Pod) -> bool {
    let owners = pod.owner_references().iter();
    owners
        .filter(|owner| owner.controller == Some(true))
        .any(|owner| owner.kind == "DaemonSet")
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    conditions
        .unwrap_or_default()
        .iter()
        .any(|c| c.type_ == "Ready" && c.status == "True")
}

async fn list_short_budgets(client: &Client, budgets: &[String]) -> Result<Vec<String>, Error> {
    let mut short = Vec::new();
    for (namespace, name) in budgets.iter().filter_map(|budget| budget.split_once('/')) {
        let api: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
        let Some(status) = with_timeout(api.get_readable_opt(name))
            .await?
            .and_then(|budget| budget.status)
        else {
            continue;
        };
        let (healthy, desired) = (
            status.current_healthy.unwrap_or(0),
            status.desired_healthy.unwrap_or(0),
        );
        if healthy < desired {
            short.push(format!(
                "PodDisruptionBudget {namespace}/{name} lacks healthy pods: {healthy} healthy of {desired} desired"
            ));
        }
    }
    Ok(short)
}

async fn list_detached_volumes(client: &Client, node: &str) -> Result<Vec<String>, Error> {
    let attachments: Api<VolumeAttachment> = Api::all(client.clone());
    let all = with_timeout(attachments.list_readable(&ListParams::default())).await?;
    let unattached = all.items.into_iter().filter(|attachment| {
        let attached = attachment
            .status
            .as_ref()
            .is_some_and(|status| status.attached);
        attachment.spec.node_name == node
            && !attached
            && attachment.metadata.deletion_timestamp.is_none()
    });
    Ok(unattached
        .map(|attachment| {
            let volume = attachment
                .spec
                .source
                .persistent_volume_name
                .as_deref()
                .unwrap_or("inline");
            format!("volume {volume} is not attached yet")
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_date_that_nobody_can_read_does_not_hide_the_attachments() {
        let error = json!({ "time": "9999-12-31T23:59:59Z", "message": "no such disk" });
        let attachment = json!({
            "metadata": { "name": "a" },
            "spec": { "attacher": "csi", "nodeName": "n1", "source": { "persistentVolumeName": "v1" } },
            "status": { "attached": false, "attachError": error },
        });
        let list = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachmentList",
            "metadata": {}, "items": [attachment] });
        let body = list.to_string();
        let service = tower::service_fn(move |_: Request<Body>| {
            let body = Body::from(body.clone().into_bytes());
            async move { Response::builder().body(body) }
        });
        let client = Client::new(service, "default");
        let shut = list_shut_gates(&client, "n1", &[ReturnGate::Volumes], &[]).await;
        assert_eq!(shut.unwrap(), ["volume v1 is not attached yet"]);
    }
}
