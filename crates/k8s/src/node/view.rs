//! Converts a Node into an [`ObservedNode`].

use dogwatch_api::reboot_policy::is_ready_resource;
use dogwatch_api::{annotation, label};
use dogwatch_core::condition::CurrentCondition;
use dogwatch_core::name::{BadName, BootId, NodeName};
use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation, TriggerFingerprint};
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use kube::ResourceExt as _;

use super::OUT_OF_SERVICE_TAINT;

/// Fails only on a name that no API server would have accepted.
pub fn observed_node(node: &Node) -> Result<ObservedNode, BadName> {
    let annotation = |key: &str| node.annotations().get(key).map(String::as_str);
    let status = node.status.as_ref();
    let conditions = status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let boot_id = status
        .and_then(|status| status.node_info.as_ref())
        .map(|info| info.boot_id.as_str());
    let system_uuid = status
        .and_then(|status| status.node_info.as_ref())
        .map(|info| info.system_uuid.clone());
    Ok(ObservedNode {
        name: NodeName::new(node.name_any())?,
        uid: node.uid().unwrap_or_default(),
        resource_version: node.resource_version().unwrap_or_default(),
        unschedulable: node
            .spec
            .as_ref()
            .and_then(|spec| spec.unschedulable)
            .unwrap_or(false),
        ready: conditions
            .iter()
            .any(|c| c.type_ == "Ready" && c.status == "True"),
        boot_id: boot_id.and_then(|text| BootId::new(text).ok()),
        labels: node.labels().clone(),
        keep_cordoned: annotation(annotation::KEEP_CORDONED).is_some_and(|value| value != "false"),
        quarantined: annotation(annotation::NVSENTINEL_QUARANTINE).is_some(),
        needs_remediation: annotation(annotation::EXTERNAL_REMEDIATION).is_some(),
        out_of_service: node_taints(node)
            .iter()
            .any(|taint| taint.key == OUT_OF_SERVICE_TAINT),
        being_fenced: annotation(annotation::FENCING).is_some(),
        system_uuid: system_uuid.filter(|text| !text.is_empty()),
        provider_id: node
            .spec
            .as_ref()
            .and_then(|spec| spec.provider_id.clone())
            .filter(|text| !text.is_empty()),
        waiting_label: node
            .labels()
            .get(label::REBOOT)
            .is_some_and(|value| value == label::WAITING),
        record: ParsedAnnotation::from_text(annotation(annotation::REBOOT)),
        request: ParsedAnnotation::from_text(annotation(annotation::REBOOT_REQUESTED)),
        request_fingerprint: annotation(annotation::REBOOT_REQUESTED)
            .map(|text| TriggerFingerprint(text.to_owned())),
        estimated_start: annotation(annotation::ESTIMATED_START).and_then(|text| text.parse().ok()),
        abort: ParsedAnnotation::from_text(annotation(annotation::ABORT_REQUESTED)),
        api_lock: annotation(annotation::API_LOCK).is_some(),
        last_reboot: ParsedAnnotation::from_text(annotation(annotation::LAST_REBOOT)),
        conditions: conditions.iter().map(node_condition).collect(),
        taint_keys: node_taints(node)
            .iter()
            .map(|taint| taint.key.clone())
            .collect(),
        extended_resources: extended_resources(node),
    })
}

/// Resources of which the Node has some, without those that every Node has.
fn extended_resources(node: &Node) -> Vec<String> {
    let status = node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    let amounts = allocatable.into_iter().flatten();
    let extended = amounts.filter(|(name, amount)| {
        is_ready_resource(name) && amount.0.chars().any(|digit| ('1'..='9').contains(&digit))
    });
    extended.map(|(name, _)| name.clone()).collect()
}

fn node_taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    taints.unwrap_or_default()
}

fn node_condition(condition: &NodeCondition) -> CurrentCondition {
    CurrentCondition {
        kind: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        last_transition: condition.last_transition_time.as_ref().map(|time| time.0),
        last_heartbeat: condition.last_heartbeat_time.as_ref().map(|time| time.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: serde_json::Value) -> ObservedNode {
        let node: Node = serde_json::from_value(json).unwrap();
        observed_node(&node).unwrap()
    }

    #[test]
    fn a_bare_node_is_schedulable_and_not_ready() {
        let seen = node(serde_json::json!({"metadata": {"name": "n1"}}));
        assert!(!seen.unschedulable && !seen.ready && !seen.api_lock);
        assert_eq!(seen.abort, ParsedAnnotation::Absent);
        assert_eq!(seen.record, ParsedAnnotation::Absent);
    }

    #[test]
    fn only_what_a_device_plugin_offers_is_an_extended_resource() {
        let seen = node(serde_json::json!({
            "metadata": {"name": "n1"},
            "spec": {"taints": [{"key": "a.example/b", "effect": "NoSchedule"}]},
            "status": {"allocatable": {
                "cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "0", "amd.com/gpu": "8",
                "hugepages-1Gi": "1Gi", "hugepages-2Mi": "0"}}}));
        assert_eq!(seen.extended_resources, ["amd.com/gpu", "hugepages-1Gi"]);
        assert_eq!(seen.taint_keys, ["a.example/b"]);
    }

    #[test]
    fn an_unreadable_record_is_bad_and_not_absent() {
        let seen = node(
            serde_json::json!({"metadata": {"name": "n1", "annotations": {
            "dogwatch.dev/reboot": "{", "dogwatch.dev/reboot-requested": "please"}}}),
        );
        assert!(matches!(seen.record, ParsedAnnotation::Bad { .. }));
        assert!(matches!(seen.request, ParsedAnnotation::Bad { .. }));
    }

    #[test]
    fn an_abort_that_cannot_be_read_is_an_abort_all_the_same() {
        let seen = node(
            serde_json::json!({"metadata": {"name": "n1", "annotations": {
            "dogwatch.dev/abort-requested": "now!", "dogwatch.dev/api-lock": "{}"}}}),
        );
        assert!(matches!(seen.abort, ParsedAnnotation::Bad { .. }));
        assert!(seen.api_lock);
    }
}
