//! A StatefulSet of one pod with a local volume and a budget. Its pod adds the boot id of its node to a file on the volume.

use dogwatch_testbed::real_node::{BUSYBOX_IMAGE, NODE_NAME, VOLUME_FOLDER};
use serde_json::{Value, json};

use crate::stage::{RealStage, has_condition};

/// It is Ready when all that the node has written is on its disk: with files of containerd or of CNI that are empty after a cut of
/// the power, the kubelet starts no pod of before again.
const WRITER: &str = "cat /proc/sys/kernel/random/boot_id >> /data/boots; busybox sync; : > /tmp/synced; trap 'exit 0' TERM; sleep 1000000000 & wait";
const READER: &str = "cat /data/boots > /dev/termination-log";

/// It runs, or waits for a node.
pub struct Workload;

impl Workload {
    /// Starts it with a budget of this many pods that may be unavailable, and waits until its pod is Ready.
    pub async fn start(stage: &RealStage, max_unavailable: u32) -> Self {
        let objects = [
            local_volume(),
            volume_claim(),
            stateful_set(),
            budget(max_unavailable),
        ];
        stage.apply(&objects).await;
        let workload = Self;
        workload.until_ready(stage).await;
        workload
    }

    pub async fn pod(&self, stage: &RealStage) -> Value {
        stage.get(&["pod", "writer-0"]).await.unwrap()
    }

    pub async fn until_ready(&self, stage: &RealStage) -> Value {
        let ask = async || {
            let pod = stage.get(&["pod", "writer-0"]).await?;
            let is = has_condition(&pod, "Ready", "True");
            let is = is && pod["metadata"]["deletionTimestamp"].is_null();
            if is { Ok(pod) } else { Err(pod.to_string()) }
        };
        let pod = stage.until("the workload's pod is Ready", ask).await;
        stage.report("the workload's pod is Ready");
        pod
    }

    pub async fn allow_disruptions(&self, stage: &RealStage, max_unavailable: u32) {
        stage.apply(&[budget(max_unavailable)]).await;
    }

    /// The boot ids in the file on the volume, as another pod reads them.
    pub async fn read_volume(&self, stage: &RealStage) -> Vec<String> {
        let mut pod =
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "reader" } });
        pod["spec"] = pod_spec(READER);
        pod["spec"]["restartPolicy"] = "Never".into();
        stage.apply(&[pod]).await;
        let ask = async || {
            let pod = stage.get(&["pod", "reader"]).await?;
            let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
            let message = ended["message"].as_str().map(str::to_owned);
            message.ok_or(pod.to_string())
        };
        let text = stage.until("the volume is read", ask).await;
        text.lines().map(str::to_owned).collect()
    }
}

fn pod_spec(script: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 5,
        "containers": [{
            "name": "main",
            "image": BUSYBOX_IMAGE,
            "command": ["/bin/sh", "-c", script],
            "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
        }],
        "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
    })
}

fn stateful_set() -> Value {
    let labels = json!({ "app": "writer" });
    let mut pod = pod_spec(WRITER);
    let synced = json!({ "exec": { "command": ["/bin/cat", "/tmp/synced"] }, "periodSeconds": 2, "timeoutSeconds": 10 });
    pod["containers"][0]["readinessProbe"] = synced;
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "writer" },
        "spec": {
            "replicas": 1, "serviceName": "writer",
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

fn budget(max_unavailable: u32) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "writer" },
        "spec": { "maxUnavailable": max_unavailable, "selector": { "matchLabels": { "app": "writer" } } },
    })
}

fn local_volume() -> Value {
    let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME] });
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "first" },
        "spec": {
            "capacity": { "storage": "100Mi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain", "local": { "path": VOLUME_FOLDER },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } },
        },
    })
}

fn volume_claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "first",
            "resources": { "requests": { "storage": "100Mi" } },
        },
    })
}
