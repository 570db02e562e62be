//! The table of the demo's nodes.

use dogwatch_core::reboot::RebootReason;

use super::run::Demo;
use crate::observer::{NodeView, ObservedKind, PodView, lease_holder};

/// A row of the table of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoRow {
    pub node: String,
    /// `Ready` or `NotReady`, perhaps with `,cordoned`.
    pub status: String,
    pub phase: String,
    /// Pods on the node, without those of DaemonSets and mirror pods.
    pub pods: usize,
    /// The lock that the node holds.
    pub lock: String,
    /// The number of new boots.
    pub boots: usize,
    /// The coordinator's decision and its reason.
    pub why: String,
}

impl Demo {
    pub fn node_rows(&self) -> Vec<DemoRow> {
        self.observer
            .list_objects(ObservedKind::Node)
            .map(|(name, node)| self.node_row(name, &NodeView::from_object(node)))
            .collect()
    }

    fn node_row(&self, name: &str, node: &NodeView) -> DemoRow {
        let ready = if node.ready { "Ready" } else { "NotReady" };
        let cordoned = if node.cordoned { ",cordoned" } else { "" };
        let pods = self
            .observer
            .list_objects(ObservedKind::Pod)
            .map(|(_, pod)| PodView::from_object(pod));
        let holder = format!("node/{name}");
        let mut leases = self.observer.list_objects(ObservedKind::Lease);
        let lock = leases
            .find(|(_, lease)| lease_holder(lease) == Some(&holder))
            .map_or("", |(lease, _)| lease);
        DemoRow {
            node: name.to_owned(),
            status: format!("{ready}{cordoned}"),
            phase: node
                .record
                .as_ref()
                .map_or("", |record| record.phase.as_str())
                .to_owned(),
            pods: pods.filter(|pod| pod.node == name && !pod.stays).count(),
            lock: lock.trim_start_matches("dogwatch-").to_owned(),
            boots: self.checks.count_boots(name),
            why: self.node_reason(name, node),
        }
    }

    fn node_reason(&self, name: &str, node: &NodeView) -> String {
        if node.record.is_some() {
            let newest = self.decision_log.newest_reason(name);
            return newest.map_or("", RebootReason::as_str).to_owned();
        }
        node.last
            .as_ref()
            .map_or("", |last| last.outcome.as_str())
            .to_owned()
    }
}
