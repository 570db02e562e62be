//! The objects that a kubelet writes: its Node, its Lease, the status of its pods, its mirror pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::config::KubeletConfig;
use super::machine::{PodReport, PodReportKind};

/// Duration of a Node's Lease, in seconds (a real kubelet's default).
const LEASE_SECONDS: u32 = 40;

/// The machine's ids, the same in all its boots.
#[derive(Debug, Clone)]
pub struct MachineIdentity {
    /// `status.nodeInfo.machineID`.
    pub machine_id: String,
    /// `status.nodeInfo.systemUUID`.
    pub system_uuid: String,
}

/// The Node as the kubelet registers it, without its status.
pub fn node_manifest(config: &KubeletConfig) -> Value {
    let name = &config.node;
    let mut labels = config.labels.clone();
    labels.insert("kubernetes.io/hostname".into(), name.clone());
    labels.insert("kubernetes.io/os".into(), "linux".into());
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": { "taints": config.taints },
    })
}

/// A strategic merge patch of the Node's status with the fields and conditions that a kubelet owns.
pub fn node_status_patch(
    config: &KubeletConfig,
    identity: &MachineIdentity,
    boot: &str,
    ready: bool,
    since: Timestamp,
) -> Value {
    let amount = json!({ "cpu": "8", "memory": "16Gi", "pods": config.capacity.to_string() });
    json!({ "status": {
        "capacity": amount,
        "allocatable": amount,
        "addresses": [{ "type": "Hostname", "address": config.node }],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": boot,
            "containerRuntimeVersion": "sim://1.0.0",
            "kernelVersion": "6.12.0",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.1",
            "machineID": identity.machine_id,
            "operatingSystem": "linux",
            "osImage": "Dogwatch simulated node",
            "systemUUID": identity.system_uuid,
        },
        "conditions": [ready_condition(ready, since, config.clock.now())],
    }})
}

/// A strategic merge patch of the Ready condition with a new heartbeat time.
pub fn node_heartbeat(ready: bool, since: Timestamp, now: Timestamp) -> Value {
    json!({ "status": { "conditions": [ready_condition(ready, since, now)] } })
}

fn ready_condition(ready: bool, since: Timestamp, now: Timestamp) -> Value {
    let (status, reason, message) = if ready {
        ("True", "KubeletReady", "kubelet is posting ready status")
    } else {
        (
            "False",
            "KubeletNotReady",
            "container runtime network not ready",
        )
    };
    json!({
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": format_seconds(now),
        "lastTransitionTime": format_seconds(since),
    })
}

/// The Node's Lease as it is first created.
pub fn node_lease(node: &str, now: Timestamp) -> Value {
    let mut lease = node_lease_renewal(now);
    lease["apiVersion"] = json!("coordination.k8s.io/v1");
    lease["kind"] = json!("Lease");
    lease["metadata"] = json!({ "name": node, "namespace": "kube-node-lease" });
    lease["spec"]["holderIdentity"] = json!(node);
    lease["spec"]["leaseDurationSeconds"] = json!(LEASE_SECONDS);
    lease
}

/// A merge patch that renews the Lease.
pub fn node_lease_renewal(now: Timestamp) -> Value {
    json!({ "spec": { "renewTime": format!("{now:.6}") } })
}

/// A merge patch of a pod's status. The UID in it is a precondition.
pub fn pod_status_patch(work: &PodReport, now: Timestamp) -> Value {
    let (phase, ready, restarts) = match work.kind {
        PodReportKind::Starting { restarts } => ("Running", "False", restarts),
        PodReportKind::Ready { restarts } => ("Running", "True", restarts),
        PodReportKind::Failed => ("Failed", "False", 0),
        PodReportKind::Ended => ("Succeeded", "False", 0),
    };
    let now = format_seconds(now);
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "lastTransitionTime": now });
    let state = match (phase, ready) {
        ("Running", "True") => json!({ "running": { "startedAt": now } }),
        ("Running", _) => json!({ "waiting": { "reason": "ContainerCreating" } }),
        (_, _) => json!({ "terminated": { "exitCode": 137, "finishedAt": now } }),
    };
    json!({
        "metadata": { "uid": work.uid },
        "status": {
            "phase": phase,
            "startTime": now,
            "conditions": [
                condition("PodScheduled", "True"),
                condition("Initialized", "True"),
                condition("ContainersReady", ready),
                condition("Ready", ready),
            ],
            "containerStatuses": [{
                "name": "main",
                "image": "sim",
                "imageID": "sim",
                "ready": ready == "True",
                "restartCount": restarts,
                "state": state,
            }],
        },
    })
}

/// The mirror pod of a static pod.
pub fn mirror_pod(config: &KubeletConfig, name: &str, node_uid: &str) -> Value {
    let node = &config.node;
    let hash = format!("{name}-{node}");
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": hash,
            "namespace": "kube-system",
            "annotations": {
                "kubernetes.io/config.hash": hash,
                "kubernetes.io/config.mirror": hash,
                "kubernetes.io/config.source": "file",
            },
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Node",
                "name": node,
                "uid": node_uid,
                "controller": true,
            }],
        },
        "spec": {
            "nodeName": node,
            "tolerations": [{ "operator": "Exists", "effect": "NoExecute" }],
            "containers": [{ "name": "main", "image": "sim" }],
        },
    })
}

/// Kubernetes' `Time`: whole seconds.
fn format_seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}
