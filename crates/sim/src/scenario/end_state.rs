//! What a run leaves behind, to compare it with another run of the same script: all that Dogwatch
//! keeps on the cluster, without times, versions and ids.

use std::collections::BTreeSet;

use dogwatch_api::annotation;
use dogwatch_api::lease::process_of_presence;
use dogwatch_core::power::REBOOT_ANNOTATION;
use serde_json::Value;

use super::scenario_cluster::ScenarioCluster;
use crate::observer::{
    LEADER_LEASE, NodeView, ObservedKind, lease_holder, parse_host, text_at_pointer,
};

/// One line for each object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndState(BTreeSet<String>);

impl EndState {
    pub(super) fn of_cluster(stage: &ScenarioCluster) -> Self {
        let mut lines = BTreeSet::new();
        let objects = |kind| stage.observer.list_objects(kind);
        lines.extend(objects(ObservedKind::Node).map(|(name, node)| node_line(stage, name, node)));
        let stays = |name: &str| name == LEADER_LEASE || process_of_presence(name).is_some();
        let leases = objects(ObservedKind::Lease).filter(|(name, _)| !stays(name));
        lines.extend(leases.filter_map(|(name, lease)| {
            Some(format!("lease {name}: held by {}", lease_holder(lease)?))
        }));
        lines.extend(objects(ObservedKind::Host).map(|(name, host)| host_line(stage, name, host)));
        lines.extend(
            objects(ObservedKind::NodeReboot)
                .map(|(name, reboot)| format!("node-reboot {name}: {}", succeeded_text(reboot))),
        );
        lines
            .extend(objects(ObservedKind::Policy).map(|(name, _)| {
                format!("policy {name}: rollout {:?}", stage.rollout_phase(name))
            }));
        lines.extend(stage.list_remediations().iter().map(|remediation| {
            let name = text_at_pointer(remediation, "/metadata/name");
            format!("remediation {name}: {}", succeeded_text(remediation))
        }));
        Self(lines)
    }

    /// The lines that only one of the two has: `-` here, `+` there.
    pub fn differences_to(&self, other: &Self) -> Vec<String> {
        let gone = self.0.difference(&other.0).map(|line| format!("- {line}"));
        let come = other.0.difference(&self.0).map(|line| format!("+ {line}"));
        gone.chain(come).collect()
    }
}

fn node_line(stage: &ScenarioCluster, name: &str, node: &Value) -> String {
    let view = NodeView::from_object(node);
    let phase = view.record.as_ref().map(|record| record.phase.as_str());
    let outcome = view.last.as_ref().map(|last| format!("{:?}", last.outcome));
    let annotations = [
        annotation::REBOOT_REQUESTED,
        annotation::ABORT_REQUESTED,
        annotation::KEEP_CORDONED,
        annotation::API_LOCK,
        annotation::FENCING,
    ];
    let annotations = annotations
        .iter()
        .filter(|key| !node["metadata"]["annotations"][**key].is_null());
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let taints = taints.map(|taint| text_at_pointer(taint, "/key").to_owned());
    format!(
        "node {name}: phase {phase:?}, cordoned {}, ready {}, label {}, boots {}, last {outcome:?}, annotations {:?}, taints {:?}, created {} times",
        view.cordoned,
        view.ready,
        view.waiting_label,
        stage.checks.count_boots(name),
        annotations.collect::<Vec<_>>(),
        taints.collect::<BTreeSet<_>>(),
        stage.count_nodes_made(name),
    )
}

fn host_line(stage: &ScenarioCluster, name: &str, host: &Value) -> String {
    let keys = parse_host(host).map(|host| {
        let ours = host.annotations.into_keys();
        ours.filter(|key| key.starts_with(REBOOT_ANNOTATION) || *key == annotation::NODE_BACKUP)
            .collect::<Vec<_>>()
    });
    let metal = stage.bare_metal_hosts.as_ref();
    let machine = metal.and_then(|metal| metal.lab.machine_of_host(name));
    let powered = machine.map(|machine| machine.power_state().is_powered());
    format!(
        "host {name}: power {powered:?}, poweredOn {}, keys {keys:?}",
        host["status"]["poweredOn"]
    )
}

fn succeeded_text(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == "Succeeded");
    found.map_or("unfinished".to_owned(), |condition| {
        let word = |field| text_at_pointer(condition, field);
        format!("{} {}", word("/status"), word("/reason"))
    })
}
