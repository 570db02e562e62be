//! The objects that the page about other tools shows are ones that Dogwatch takes.

use dogwatch_api::node_reboot::{NodeReboot, RebootMethod};
use dogwatch_api::reboot_policy::RebootPolicy;

const PAGE: &str = include_str!("../../../../docs/beside-other-tools.md");

/// The YAML documents of the page that are of this kind.
fn shown_objects(kind: &str) -> Vec<&'static str> {
    let blocks = PAGE.split("```yaml\n").skip(1);
    let documents = blocks.map(|block| block.split("```").next().unwrap());
    let line = format!("kind: {kind}\n");
    documents.filter(|text| text.contains(&line)).collect()
}

#[test]
fn the_requests_of_other_tools_are_node_reboots() {
    let shown: Vec<NodeReboot> = shown_objects("NodeReboot")
        .into_iter()
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect();
    let methods: Vec<_> = shown
        .iter()
        .map(|one| one.spec.method.unwrap_or_default())
        .collect();
    assert_eq!(methods, [RebootMethod::Reboot, RebootMethod::Hold]);
    assert!(shown[0].spec.deadline.is_some() && shown[0].spec.success.is_some());
}

#[test]
fn the_policy_for_cluster_api_has_rules_that_are_understood() {
    for text in shown_objects("RebootPolicy") {
        let policy: RebootPolicy = serde_saphyr::from_str(text).unwrap();
        let drain = policy.spec.drain.unwrap();
        assert_eq!(drain.rules.unwrap().len(), 3);
    }
    assert_eq!(shown_objects("RebootPolicy").len(), 1);
}
