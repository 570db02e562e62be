//! From objects to what the decision sees.

use dogwatch_core::rollout::{
    ConditionSeen, Counts, Kind, ObjectSeen, Owner, PodSeen, RESTARTED_AT,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::Value;

/// What the decision sees of an object; `name` is as a person writes it.
pub(super) fn object_seen(name: &str, kind: Kind, object: &DynamicObject) -> ObjectSeen {
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let template = &spec["template"];
    let update = &spec["updateStrategy"];
    let wanted = match kind {
        Kind::DaemonSet => number(&status["desiredNumberScheduled"]).or(Some(0)),
        Kind::Deployment
        | Kind::StatefulSet
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::Job
        | Kind::CronJob
        | Kind::Pod
        | Kind::Other => number(&spec["replicas"]),
    };
    ObjectSeen {
        kind,
        name: name.to_owned(),
        uid: object.uid().unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        generation: object.metadata.generation.unwrap_or(0),
        observed: status["observedGeneration"].as_i64(),
        template: template["spec"]["containers"].is_array(),
        stamp: text(&template["metadata"]["annotations"][RESTARTED_AT]),
        paused: spec["paused"] == true,
        on_delete: update["type"] == "OnDelete",
        partition: number(&update["rollingUpdate"]["partition"]).unwrap_or(0),
        wanted,
        counts: counts(kind, status),
        one_revision: status["currentRevision"] == status["updateRevision"],
        conditions: conditions(status),
        owner: owner(object),
    }
}

fn counts(kind: Kind, status: &Value) -> Counts {
    let [total, updated, ready, available] = match kind {
        Kind::DaemonSet => [
            "currentNumberScheduled",
            "updatedNumberScheduled",
            "numberReady",
            "numberAvailable",
        ],
        Kind::Deployment
        | Kind::StatefulSet
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::Job
        | Kind::CronJob
        | Kind::Pod
        | Kind::Other => [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ],
    }
    .map(|field| number(&status[field]).unwrap_or(0));
    Counts {
        total,
        updated,
        ready,
        available,
    }
}

fn conditions(status: &Value) -> Vec<ConditionSeen> {
    let conditions = status["conditions"].as_array();
    let of = |condition: &Value| ConditionSeen {
        kind: text(&condition["type"]).unwrap_or_default(),
        is_true: condition["status"] == "True",
        reason: text(&condition["reason"]).unwrap_or_default(),
        message: text(&condition["message"]).unwrap_or_default(),
    };
    conditions.into_iter().flatten().map(of).collect()
}

pub(super) fn owner(object: &impl kube::ResourceExt) -> Option<Owner> {
    let owners = object.owner_references().iter();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    owners.next().map(|owner| Owner {
        kind: owner.kind.clone(),
        name: owner.name.clone(),
    })
}

/// What the decision sees of a pod.
pub(super) fn pod_seen(pod: &Pod) -> PodSeen {
    let status = pod.status.clone().unwrap_or_default();
    let ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let conditions = status.conditions.iter().flatten();
    let ready = conditions
        .clone()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let unscheduled = conditions
        .clone()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let unscheduled = unscheduled.map(|condition| {
        let reason = condition.reason.as_deref().unwrap_or("Unscheduled");
        said(reason, condition.message.as_deref())
    });
    let containers = status.init_container_statuses.iter().flatten();
    let mut containers = containers.chain(status.container_statuses.iter().flatten());
    PodSeen {
        name: pod.name_any(),
        stamp: pod.annotations().get(RESTARTED_AT).cloned(),
        ready,
        leaving: ended || pod.metadata.deletion_timestamp.is_some(),
        trouble: containers.find_map(waits).or(unscheduled),
    }
}

/// What a container waits for, unless it is only being made.
fn waits(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let usual = matches!(reason, "ContainerCreating" | "PodInitializing");
    (!usual).then(|| said(reason, waiting.message.as_deref()))
}

pub(super) fn said(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {}", message.trim()),
        Some(_) | None => reason.to_owned(),
    }
}

/// The label selector of the pods: the object's own, else the labels of its template.
pub(super) fn pod_labels(object: &DynamicObject) -> Option<String> {
    let spec = &object.data["spec"];
    let own = &spec["selector"];
    let selector = if own.is_object() {
        own.clone()
    } else {
        serde_json::json!({ "matchLabels": spec["template"]["metadata"]["labels"] })
    };
    let selector: dogwatch_core::selector::LabelSelector = serde_json::from_value(selector).ok()?;
    Some(selector.query()).filter(|query| !query.is_empty())
}

fn number(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Value) -> PodSeen {
        let pod = json!({ "metadata": { "name": "p", "annotations": { RESTARTED_AT: "t" } }, "status": status });
        pod_seen(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_pods_trouble_is_told_in_the_kubelets_and_the_schedulers_own_words() {
        let waiting = |reason: &str, message: &str| {
            json!({ "containerStatuses": [{ "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": reason, "message": message } } }] })
        };
        let pull = pod(&waiting("ImagePullBackOff", "Back-off pulling image"));
        assert_eq!(
            pull.trouble.as_deref(),
            Some("ImagePullBackOff: Back-off pulling image")
        );
        assert_eq!(pod(&waiting("ContainerCreating", "")).trouble, None);
        let full = pod(&json!({ "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" } ] }));
        assert_eq!(
            full.trouble.as_deref(),
            Some("Unschedulable: 0/3 nodes are available")
        );
        let ready = pod(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
        assert!(ready.ready && !ready.leaving && ready.stamp.as_deref() == Some("t"));
        assert!(pod(&json!({ "phase": "Failed" })).leaving);
    }

    #[test]
    fn pods_are_found_by_the_selector_or_else_by_the_templates_labels() {
        let found = |spec: Value| {
            let object = json!({ "metadata": { "name": "x" }, "spec": spec });
            pod_labels(&serde_json::from_value(object).unwrap())
        };
        let selector = json!({ "selector": { "matchLabels": { "app": "web" } } });
        assert_eq!(found(selector).as_deref(), Some("app=web"));
        let labels = json!({ "template": { "metadata": { "labels": { "app": "api" } } } });
        assert_eq!(found(labels).as_deref(), Some("app=api"));
        assert_eq!(found(json!({ "selector": {} })), None);
    }
}
