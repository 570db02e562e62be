//! What several controllers ask of objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};

/// The owner that controls this object.
pub fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The node a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    (!node.is_empty()).then_some(node)
}

/// The pod's phase; a pod without one is Pending.
pub fn phase(pod: &Pod) -> &str {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.unwrap_or("Pending")
}

/// Whether the pod has ended by itself.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod is being deleted.
pub fn is_deleting(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod's Ready condition is True.
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

/// The status of the Node's Ready condition; `Unknown` where it has none.
pub fn node_ready(node: &Node) -> &str {
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

/// Whether the Node is cordoned.
pub fn is_unschedulable(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

/// The Node's taints.
pub fn taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

/// The pod's tolerations.
pub fn tolerations(pod: &Pod) -> &[Toleration] {
    let tolerations = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.tolerations.as_deref());
    tolerations.unwrap_or_default()
}

/// Whether this toleration covers this taint.
pub fn covers(toleration: &Toleration, taint: &Taint) -> bool {
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
        // Without a key only `Exists` means anything.
        _ if key.is_empty() => false,
        _ => {
            toleration.value.as_deref().unwrap_or_default()
                == taint.value.as_deref().unwrap_or_default()
        }
    }
}

/// The first taint of the Node with one of these effects that nothing here tolerates.
pub fn untolerated<'a>(
    node: &'a Node,
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    taints(node)
        .iter()
        .filter(|taint| effects.contains(&taint.effect.as_str()))
        .find(|taint| {
            !tolerations
                .iter()
                .any(|toleration| covers(toleration, taint))
        })
}

/// Whether the labels are what the selector asks for. An empty selector matches everything, as in
/// policy/v1 and apps/v1; an absent one is the caller's to judge.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
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
                // The API server validates operators; what it would refuse matches nothing.
                _ => false,
            }
        })
}

/// An object's labels.
pub fn labels(meta: &ObjectMeta) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    meta.labels.as_ref().unwrap_or(&NONE)
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
            assert_eq!(covers(&toleration, &taint), expected, "{toleration:?}");
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
            assert_eq!(matches(&selector, &labels), expected, "{selector:?}");
        }
    }
}
