//! Converts Pods for the drain.

use dogwatch_api::annotation;
use dogwatch_core::drain::{ControllerRef, ObservedPod, PodIdentity, PodMark, PodMarks, PodPhase};
use k8s_openapi::api::core::v1::{Pod, Toleration, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The taint that Kubernetes puts on a cordoned node.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
const CORDON_TAINT: TaintRef<'_> = TaintRef {
    key: UNSCHEDULABLE_TAINT,
    value: "",
    effect: "NoSchedule",
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct TaintRef<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
    pub(crate) effect: &'a str,
}

pub(crate) fn observed_pod(pod: Pod) -> ObservedPod {
    let meta = pod.metadata;
    let name = meta.name.unwrap_or_default();
    let spec = pod.spec.unwrap_or_default();
    let volumes = spec.volumes.unwrap_or_default();
    let annotations = meta.annotations.unwrap_or_default();
    let annotation_value = |mark: PodMark| annotations.get(mark.mark_key()).cloned();
    let status = pod.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let scheduled = conditions.iter().any(|one| one.type_ == "PodScheduled");
    ObservedPod {
        phase: pod_phase(status.phase.as_deref()),
        deleting: meta.deletion_timestamp.is_some(),
        mirror: annotations.contains_key(annotation::MIRROR_POD),
        marks: PodMarks {
            do_not_disrupt: annotation_value(PodMark::DoNotDisrupt),
            safe_to_evict: annotation_value(PodMark::SafeToEvict),
            started: status.start_time.map(|time| time.0),
        },
        controller: meta
            .owner_references
            .unwrap_or_default()
            .into_iter()
            .find_map(controller_owner),
        labels: meta.labels.unwrap_or_default(),
        tolerates_cordon: spec
            .tolerations
            .unwrap_or_default()
            .iter()
            .any(|toleration| tolerates_taint(toleration, CORDON_TAINT)),
        unscheduled: spec.node_name.is_some() && !scheduled,
        claims: volumes
            .iter()
            .filter_map(|volume| volume_claim_name(&name, volume))
            .collect(),
        pod: PodIdentity {
            namespace: meta.namespace.unwrap_or_default(),
            name,
            uid: meta.uid.unwrap_or_default(),
        },
    }
}

fn pod_phase(phase: Option<&str>) -> PodPhase {
    match phase {
        Some("Succeeded" | "Failed") => PodPhase::Finished,
        Some("Pending") | None => PodPhase::Pending,
        Some(_) => PodPhase::Running,
    }
}

fn controller_owner(owner: OwnerReference) -> Option<ControllerRef> {
    (owner.controller == Some(true)).then_some(ControllerRef {
        api_version: owner.api_version,
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
    })
}

/// Whether a toleration matches a taint, by the scheduler's rules.
pub(crate) fn tolerates_taint(toleration: &Toleration, taint: TaintRef<'_>) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let exists = toleration.operator.as_deref() == Some("Exists");
    let value = toleration.value.as_deref().unwrap_or_default();
    let this_key = key == taint.key || (key.is_empty() && exists);
    let this_effect = effect.is_empty() || effect == taint.effect;
    this_key && this_effect && (exists || value == taint.value)
}

/// The claim of a volume. The claim of a generic ephemeral volume is named after pod and volume.
fn volume_claim_name(pod: &str, volume: &Volume) -> Option<String> {
    let mounted = volume
        .persistent_volume_claim
        .as_ref()
        .map(|source| source.claim_name.clone());
    let ephemeral = volume
        .ephemeral
        .as_ref()
        .map(|_| format!("{pod}-{}", volume.name));
    mounted.or(ephemeral)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(json: serde_json::Value) -> ObservedPod {
        observed_pod(serde_json::from_value(json).unwrap())
    }

    #[test]
    fn everything_that_decides_about_a_pod_is_read_from_it() {
        let pod = from(serde_json::json!({
            "metadata": {
                "name": "web-1", "namespace": "shop", "uid": "u1",
                "labels": {"app": "web"},
                "annotations": {
                    "kubernetes.io/config.mirror": "x",
                    "karpenter.sh/do-not-disrupt": "4h",
                    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                },
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "o0"},
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "o1", "controller": true},
                ],
            },
            "spec": {
                "containers": [],
                "tolerations": [{"operator": "Exists"}],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
                    {"name": "scratch", "ephemeral": {}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
            "status": {"phase": "Failed", "startTime": "1970-01-01T00:00:00Z"},
        }));
        let controller = ControllerRef {
            api_version: "apps/v1".into(),
            kind: "DaemonSet".into(),
            name: "d".into(),
            uid: "o1".into(),
        };
        let pod_ref = PodIdentity {
            namespace: "shop".into(),
            name: "web-1".into(),
            uid: "u1".into(),
        };
        assert_eq!(
            pod,
            ObservedPod {
                pod: pod_ref,
                phase: PodPhase::Finished,
                deleting: true,
                mirror: true,
                controller: Some(controller),
                labels: [("app".to_owned(), "web".to_owned())].into(),
                tolerates_cordon: true,
                unscheduled: false,
                claims: vec!["data-web-1".into(), "web-1-scratch".into()],
                marks: PodMarks {
                    do_not_disrupt: Some("4h".into()),
                    safe_to_evict: Some("false".into()),
                    started: Some(jiff::Timestamp::UNIX_EPOCH),
                },
            }
        );
    }

    #[test]
    fn a_pod_that_names_its_node_itself_is_told_apart_from_one_that_the_scheduler_placed() {
        let scheduled = serde_json::json!([{"type": "PodScheduled", "status": "True"}]);
        let initialized = serde_json::json!([{"type": "Initialized", "status": "True"}]);
        let none = serde_json::Value::Null;
        for (node, conditions, unscheduled) in [
            (Some("n1"), &none, true),
            (Some("n1"), &initialized, true),
            (Some("n1"), &scheduled, false),
            (None, &none, false),
        ] {
            let pod = from(serde_json::json!({
                "metadata": {"name": "x"},
                "spec": {"containers": [], "nodeName": node},
                "status": {"conditions": conditions},
            }));
            assert_eq!(pod.unscheduled, unscheduled, "{node:?} {conditions}");
        }
    }

    #[test]
    fn a_bare_pod_of_another_day_is_read_without_its_missing_parts() {
        let pod = from(serde_json::json!({"metadata": {"name": "x"}}));
        assert_eq!(
            (pod.phase, pod.deleting, pod.mirror),
            (PodPhase::Pending, false, false)
        );
        assert_eq!(pod.controller, None);
    }

    #[test]
    fn the_cordons_taint_is_tolerated_as_the_scheduler_says() {
        for (toleration, tolerates) in [
            (serde_json::json!({"operator": "Exists"}), true),
            (
                serde_json::json!({"key": UNSCHEDULABLE_TAINT, "operator": "Exists", "effect": "NoSchedule"}),
                true,
            ),
            (serde_json::json!({"key": UNSCHEDULABLE_TAINT}), true),
            (
                serde_json::json!({"key": UNSCHEDULABLE_TAINT, "operator": "Equal", "value": "x"}),
                false,
            ),
            (
                serde_json::json!({"key": UNSCHEDULABLE_TAINT, "operator": "Exists", "effect": "NoExecute"}),
                false,
            ),
            (
                serde_json::json!({"key": "other", "operator": "Exists"}),
                false,
            ),
            (serde_json::json!({"effect": "NoSchedule"}), false),
        ] {
            let read: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(
                super::tolerates_taint(&read, CORDON_TAINT),
                tolerates,
                "{toleration}"
            );
        }
    }
}
