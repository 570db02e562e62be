//! Whose machine is being remediated: from our key on its host until its Node is Ready again, whether or
//! not that Node exists. Read from the hosts and not from the Leases, which are what is under test.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_api::annotation;
use serde_json::Value;

use super::super::object::NodeView;
use super::super::observer::{Kind, Observer};

/// The keys that a remediation of ours puts on a host.
const KEYS: [&str; 2] = [
    "reboot.metal3.io/machine-remediation",
    "reboot.metal3.io/power-remediation-",
];

/// The nodes, each with the number of the change since which it is one.
#[derive(Debug, Default)]
pub(super) struct Remediated {
    /// Zero for one that was out already.
    since: BTreeMap<String, u64>,
}

impl Remediated {
    /// Takes in what stands after the change of this number; `out` are those that were out before it.
    pub(super) fn look(&mut self, now: &Observer, change: u64, out: &BTreeSet<&str>) {
        let hosts = now.all(Kind::Host).map(|(_, host)| host);
        let held: BTreeSet<&str> = hosts
            .filter(|host| is_held(host))
            .filter_map(|host| host["metadata"]["annotations"][annotation::NODE].as_str())
            .collect();
        let is_back = |name: &str| {
            let node = now.get(Kind::Node, name).map(NodeView::of);
            node.is_some_and(|node| node.ready)
        };
        self.since
            .retain(|name, _| held.contains(name.as_str()) || !is_back(name));
        for name in held {
            let since = if out.contains(name) { 0 } else { change };
            self.since.entry(name.to_owned()).or_insert(since);
        }
    }

    /// All of them.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.since.keys().map(String::as_str)
    }

    /// Whether it is one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.since.contains_key(name)
    }

    /// Whether it became one, and was not out before, at or after the change of this number.
    pub(super) fn is_later(&self, name: &str, change: u64) -> bool {
        self.since.get(name).is_some_and(|since| *since >= change)
    }
}

fn is_held(host: &Value) -> bool {
    let annotations = host["metadata"]["annotations"].as_object();
    let mut keys = annotations.into_iter().flat_map(|all| all.keys());
    keys.any(|key| KEYS.iter().any(|ours| key.starts_with(ours)))
}
