//! The objects a kubelet writes: its Node, its Lease, the status of its pods, its mirror pods.

use dogwatch_core::name::{BootId, NodeName};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::config::KubeletConfig;
use super::machine::{Report, Work};

/// How long a Node's Lease is said to last, in seconds (a real kubelet's default).
const LEASE_SECONDS: u32 = 40;

/// Which machine this is, over all its boots.
#[derive(Debug, Clone)]
pub struct MachineIdentity {
    /// `status.nodeInfo.machineID`.
    pub machine_id: String,
    /// `status.nodeInfo.systemUUID`.
    pub system_uuid: String,
}

/// The Node as the kubelet registers it; its status is written apart.
pub fn node(config: &KubeletConfig) -> Value {
    let name = config.node.as_str();
    let mut labels = config.labels.clone();
    labels.insert("kubernetes.io/hostname".into(), name.into());
    labels.insert("kubernetes.io/os".into(), "linux".into());
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": { "taints": config.taints },
    })
}

/// A strategic merge patch of the Node's status: what a kubelet knows, and only its own conditions.
pub fn node_status(
    config: &KubeletConfig,
    identity: &MachineIdentity,
    boot: &BootId,
    ready: bool,
    since: Timestamp,
) -> Value {
    let amount = json!({ "cpu": "8", "memory": "16Gi", "pods": config.capacity.to_string() });
    json!({ "status": {
        "capacity": amount,
        "allocatable": amount,
        "addresses": [{ "type": "Hostname", "address": config.node.as_str() }],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": boot.as_str(),
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

/// A strategic merge patch that only says "still so".
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
        "lastHeartbeatTime": seconds(now),
        "lastTransitionTime": seconds(since),
    })
}

/// The Node's Lease as it is first made.
pub fn node_lease(node: &NodeName, now: Timestamp) -> Value {
    let mut lease = node_lease_renewal(now);
    lease["apiVersion"] = json!("coordination.k8s.io/v1");
    lease["kind"] = json!("Lease");
    lease["metadata"] = json!({ "name": node.as_str(), "namespace": "kube-node-lease" });
    lease["spec"]["holderIdentity"] = json!(node.as_str());
    lease["spec"]["leaseDurationSeconds"] = json!(LEASE_SECONDS);
    lease
}

/// A merge patch that renews it.
pub fn node_lease_renewal(now: Timestamp) -> Value {
    json!({ "spec": { "renewTime": format!("{now:.6}") } })
}

/// A merge patch of a pod's status. The UID in it is a precondition.
pub fn pod_status(work: &Work, now: Timestamp) -> Value {
    let (phase, ready, restarts) = match work.what {
        Report::Starting { restarts } => ("Running", "False", restarts),
        Report::Ready { restarts } => ("Running", "True", restarts),
        Report::Failed => ("Failed", "False", 0),
        Report::Ended => ("Succeeded", "False", 0),
    };
    let now = seconds(now);
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

/// The shadow of a static pod.
pub fn mirror_pod(config: &KubeletConfig, name: &str, node_uid: &str) -> Value {
    let node = config.node.as_str();
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
fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}
