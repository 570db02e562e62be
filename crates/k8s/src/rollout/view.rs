//! Converts workloads and pods for the rollout's decisions.

use dogwatch_core::rollout::{
    ObservedRolloutPod, ObservedWorkload, RESTARTED_AT_ANNOTATION, RestartTargetKind,
    RolloutCounts, WorkloadCondition, WorkloadOwner,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::Value;

/// `name` is as a person writes it.
pub(super) fn observed_object(
    name: &str,
    kind: RestartTargetKind,
    object: &DynamicObject,
) -> ObservedWorkload {
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let template = &spec["template"];
    let update = &spec["updateStrategy"];
    let wanted = match kind {
        RestartTargetKind::DaemonSet => parse_number(&status["desiredNumberScheduled"]).or(Some(0)),
        RestartTargetKind::Deployment
        | RestartTargetKind::StatefulSet
        | RestartTargetKind::ReplicaSet
        | RestartTargetKind::ReplicationController
        | RestartTargetKind::Job
        | RestartTargetKind::CronJob
        | RestartTargetKind::Pod
        | RestartTargetKind::Other => parse_number(&spec["replicas"]),
    };
    ObservedWorkload {
        kind,
        name: name.to_owned(),
        uid: object.uid().unwrap_or_default(),
        deleting: object.metadata.deletion_timestamp.is_some(),
        generation: object.metadata.generation.unwrap_or(0),
        observed: status["observedGeneration"].as_i64(),
        template: template["spec"]["containers"].is_array(),
        restarted_at: parse_text(&template["metadata"]["annotations"][RESTARTED_AT_ANNOTATION]),
        paused: spec["paused"] == true,
        on_delete: update["type"] == "OnDelete",
        partition: parse_number(&update["rollingUpdate"]["partition"]).unwrap_or(0),
        wanted,
        counts: parse_counts(kind, status),
        one_revision: status["currentRevision"] == status["updateRevision"],
        conditions: parse_conditions(status),
        owner: controller_owner(object),
    }
}

fn parse_counts(kind: RestartTargetKind, status: &Value) -> RolloutCounts {
    let [total, updated, ready, available] = match kind {
        RestartTargetKind::DaemonSet => [
            "currentNumberScheduled",
            "updatedNumberScheduled",
            "numberReady",
            "numberAvailable",
        ],
        RestartTargetKind::Deployment
        | RestartTargetKind::StatefulSet
        | RestartTargetKind::ReplicaSet
        | RestartTargetKind::ReplicationController
        | RestartTargetKind::Job
        | RestartTargetKind::CronJob
        | RestartTargetKind::Pod
        | RestartTargetKind::Other => [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ],
    }
    .map(|field| parse_number(&status[field]).unwrap_or(0));
    RolloutCounts {
        total,
        updated,
        ready,
        available,
    }
}

fn parse_conditions(status: &Value) -> Vec<WorkloadCondition> {
    let conditions = status["conditions"].as_array();
    let of = |condition: &Value| WorkloadCondition {
        kind: parse_text(&condition["type"]).unwrap_or_default(),
        is_true: condition["status"] == "True",
        reason: parse_text(&condition["reason"]).unwrap_or_default(),
        message: parse_text(&condition["message"]).unwrap_or_default(),
    };
    conditions.into_iter().flatten().map(of).collect()
}

pub(super) fn controller_owner(object: &impl kube::ResourceExt) -> Option<WorkloadOwner> {
    let owners = object.owner_references().iter();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    owners.next().map(|owner| WorkloadOwner {
        kind: owner.kind.clone(),
        name: owner.name.clone(),
    })
}

pub(super) fn observed_pod(pod: &Pod) -> ObservedRolloutPod {
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
        join_reason(reason, condition.message.as_deref())
    });
    let containers = status.init_container_statuses.iter().flatten();
    let mut containers = containers.chain(status.container_statuses.iter().flatten());
    ObservedRolloutPod {
        name: pod.name_any(),
        restarted_at: pod.annotations().get(RESTARTED_AT_ANNOTATION).cloned(),
        ready,
        leaving: ended || pod.metadata.deletion_timestamp.is_some(),
        problem: containers.find_map(waiting_reason).or(unscheduled),
    }
}

/// Why a container waits; `None` while it is only being created.
fn waiting_reason(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let usual = matches!(reason, "ContainerCreating" | "PodInitializing");
    (!usual).then(|| join_reason(reason, waiting.message.as_deref()))
}

pub(super) fn join_reason(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {}", message.trim()),
        Some(_) | None => reason.to_owned(),
    }
}

/// The label selector of the pods: the object's own, else the labels of its template.
pub(super) fn pod_selector(object: &DynamicObject) -> Option<String> {
    let spec = &object.data["spec"];
    let own = &spec["selector"];
    let selector = if own.is_object() {
        own.clone()
    } else {
        serde_json::json!({ "matchLabels": spec["template"]["metadata"]["labels"] })
    };
    let selector: dogwatch_core::selector::LabelSelector = serde_json::from_value(selector).ok()?;
    Some(selector.to_query_string()).filter(|query| !query.is_empty())
}

fn parse_number(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn parse_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: &Value) -> ObservedRolloutPod {
        let pod = json!({ "metadata": { "name": "p", "annotations": { RESTARTED_AT_ANNOTATION: "t" } }, "status": status });
        observed_pod(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_pods_trouble_is_told_in_the_kubelets_and_the_schedulers_own_words() {
        let waiting = |reason: &str, message: &str| {
            json!({ "containerStatuses": [{ "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "waiting": { "reason": reason, "message": message } } }] })
        };
        let pull = pod(&waiting("ImagePullBackOff", "Back-off pulling image"));
        assert_eq!(
            pull.problem.as_deref(),
            Some("ImagePullBackOff: Back-off pulling image")
        );
        assert_eq!(pod(&waiting("ContainerCreating", "")).problem, None);
        let full = pod(&json!({ "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" } ] }));
        assert_eq!(
            full.problem.as_deref(),
            Some("Unschedulable: 0/3 nodes are available")
        );
        let ready = pod(&json!({ "conditions": [{ "type": "Ready", "status": "True" }] }));
        assert!(ready.ready && !ready.leaving && ready.restarted_at.as_deref() == Some("t"));
        assert!(pod(&json!({ "phase": "Failed" })).leaving);
    }

    #[test]
    fn pods_are_found_by_the_selector_or_else_by_the_templates_labels() {
        let found = |spec: Value| {
            let object = json!({ "metadata": { "name": "x" }, "spec": spec });
            pod_selector(&serde_json::from_value(object).unwrap())
        };
        let selector = json!({ "selector": { "matchLabels": { "app": "web" } } });
        assert_eq!(found(selector).as_deref(), Some("app=web"));
        let labels = json!({ "template": { "metadata": { "labels": { "app": "api" } } } });
        assert_eq!(found(labels).as_deref(), Some("app=api"));
        assert_eq!(found(json!({ "selector": {} })), None);
    }
}
