//! Tracks which nodes are being remediated: from the key on the host until the Node is Ready again,
//! whether or not that Node exists. Reads hosts and not Leases, because the Leases are under test.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_api::annotation;
use serde_json::Value;

use super::super::cluster_observer::{ClusterObserver, ObservedKind};
use super::super::object_views::NodeView;

/// The keys that Dogwatch's remediation sets on a host.
const REMEDIATION_KEYS: [&str; 2] = [
    "reboot.metal3.io/machine-remediation",
    "reboot.metal3.io/power-remediation-",
];

/// The nodes, each with the number of the change at which its remediation began.
#[derive(Debug, Default)]
pub(super) struct RemediatedNodes {
    /// Zero for a node that was unavailable already.
    since: BTreeMap<String, u64>,
}

impl RemediatedNodes {
    /// Takes in the state after change number `change`; `out` are the nodes that were unavailable
    /// before it.
    pub(super) fn update_nodes(
        &mut self,
        now: &ClusterObserver,
        change: u64,
        out: &BTreeSet<&str>,
    ) {
        let hosts = now.list_objects(ObservedKind::Host).map(|(_, host)| host);
        let held: BTreeSet<&str> = hosts
            .filter(|host| has_remediation_key(host))
            .filter_map(|host| host["metadata"]["annotations"][annotation::NODE].as_str())
            .collect();
        let is_back = |name: &str| {
            let node = now
                .get_object(ObservedKind::Node, name)
                .map(NodeView::from_object);
            node.is_some_and(|node| node.ready)
        };
        self.since
            .retain(|name, _| held.contains(name.as_str()) || !is_back(name));
        for name in held {
            let since = if out.contains(name) { 0 } else { change };
            self.since.entry(name.to_owned()).or_insert(since);
        }
    }

    pub(super) fn node_names(&self) -> impl Iterator<Item = &str> {
        self.since.keys().map(String::as_str)
    }

    pub(super) fn is_remediated(&self, name: &str) -> bool {
        self.since.contains_key(name)
    }

    /// Whether the remediation began at or after this change, on a node that was not unavailable
    /// before.
    pub(super) fn is_remediated_since(&self, name: &str, change: u64) -> bool {
        self.since.get(name).is_some_and(|since| *since >= change)
    }
}

fn has_remediation_key(host: &Value) -> bool {
    let annotations = host["metadata"]["annotations"].as_object();
    let mut keys = annotations.into_iter().flat_map(|all| all.keys());
    keys.any(|key| REMEDIATION_KEYS.iter().any(|ours| key.starts_with(ours)))
}
