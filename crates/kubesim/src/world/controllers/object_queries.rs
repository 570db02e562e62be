//! Questions about objects that several controllers ask.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};

/// The owner reference with `controller: true`.
pub fn controller_owner(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

pub fn node_of_pod(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    (!node.is_empty()).then_some(node)
}

/// The pod's phase; a pod without one is Pending.
pub fn pod_phase(pod: &Pod) -> &str {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.unwrap_or("Pending")
}

/// Whether the pod has succeeded or failed.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(pod_phase(pod), "Succeeded" | "Failed")
}

pub fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let ready = conditions
        .unwrap_or_default()
        .iter()
        .find(|condition| condition.type_ == "Ready");
    ready.is_some_and(|condition| condition.status == "True")
}

/// The status of the Node's Ready condition; `Unknown` without one.
pub fn node_ready_status(node: &Node) -> &str {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let ready = conditions
        .unwrap_or_default()
        .iter()
        .find(|condition| condition.type_ == "Ready");
    ready.map_or("Unknown", |condition| &condition.status)
}

pub fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

pub fn node_taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

pub fn pod_tolerations(pod: &Pod) -> &[Toleration] {
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref());
    tolerations.unwrap_or_default()
}

pub fn tolerates_taint(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    if !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        // A toleration without a key is valid only with `Exists`.
        _ if key.is_empty() => false,
        _ => {
            toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default()
        }
    }
}

/// The first taint of the Node with one of these effects that no toleration covers.
pub fn find_untolerated_taint<'a>(
    node: &'a Node,
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    node_taints(node)
        .iter()
        .filter(|taint| effects.contains(&taint.effect.as_str()))
        .find(|taint| {
            !tolerations
                .iter()
                .any(|toleration| tolerates_taint(toleration, taint))
        })
}

/// Whether the labels match the selector. An empty selector matches everything, as in policy/v1 and
/// apps/v1; the caller decides about an absent one.
pub fn selector_matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let exact = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    exact
        .into_iter()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().all(|expression| {
            let value = labels.get(&expression.key);
            let values = expression.values.as_deref().unwrap_or_default();
            match expression.operator.as_str() {
                "In" => value.is_some_and(|value| values.contains(value)),
                "NotIn" => value.is_none_or(|value| !values.contains(value)),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                // The API server validates operators; an invalid one matches nothing.
                _ => false,
            }
        })
}

pub fn object_labels(meta: &ObjectMeta) -> &BTreeMap<String, String> {
    static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();
    meta.labels.as_ref().unwrap_or(&NO_LABELS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_toleration_covers_what_kubernetes_says() {
        let table = [
            (json!({ "operator": "Exists" }), true),
            (
                json!({ "operator": "Exists", "effect": "NoExecute" }),
                false,
            ),
            (json!({ "key": "k", "operator": "Exists" }), true),
            (json!({ "key": "other", "operator": "Exists" }), false),
            (
                json!({ "key": "k", "value": "v", "effect": "NoSchedule" }),
                true,
            ),
            (json!({ "key": "k", "value": "w" }), false),
            (json!({ "value": "v" }), false),
        ];
        let taint: Taint =
            serde_json::from_value(json!({ "key": "k", "value": "v", "effect": "NoSchedule" }))
                .unwrap();
        for (toleration, expected) in table {
            let toleration = serde_json::from_value(toleration).unwrap();
            assert_eq!(
                tolerates_taint(&toleration, &taint),
                expected,
                "{toleration:?}"
            );
        }
    }

    #[test]
    fn a_selector_matches_what_kubernetes_says() {
        let labels = BTreeMap::from([("app".to_owned(), "a".to_owned())]);
        let one = |operator: &str, key: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
        let table = [
            (json!({}), true),
            (json!({ "matchLabels": { "app": "a" } }), true),
            (json!({ "matchLabels": { "app": "b" } }), false),
            (one("In", "app", &["a", "b"]), true),
            (one("NotIn", "app", &["a"]), false),
            (one("NotIn", "other", &["a"]), true),
            (one("Exists", "app", &[]), true),
            (one("DoesNotExist", "app", &[]), false),
        ];
        for (selector, expected) in table {
            let selector = serde_json::from_value(selector).unwrap();
            assert_eq!(
                selector_matches(&selector, &labels),
                expected,
                "{selector:?}"
            );
        }
    }
}
