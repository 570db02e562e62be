//! Checks S1: when a node becomes unavailable, its group does not exceed the budget.
//!
//! A node counts in the group of its Lease, even if its labels have changed since; if its labels
//! name another group, it counts there too. Its limit is the highest `maxUnavailable` by which it
//! could have counted: the policies between its bid and its cordon. For other nodes that held their
//! Leases then, the numbers that their Leases recorded count as well. No node may make a group
//! larger than the smallest limit of the nodes that are unavailable in it. A remediation does not
//! wait for the budget, but every node that takes a lock after its start counts the remediated
//! node.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::group_of_lease;
use serde_json::Value;

use super::super::cluster_observer::{ClusterObserver, ObservedKind};
use super::super::object_views::{NodeView, lease_holder};
use super::policy_check::PolicyCheck;
use super::remediated::RemediatedNodes;

#[derive(Debug)]
struct HeldLease {
    group: GroupName,
    /// The number of the change at which the bid succeeded.
    won: u64,
    /// The highest limit under the policies between its bid and its cordon.
    limit: usize,
    /// The highest limit that its Lease has recorded, by which other nodes count.
    recorded: usize,
    /// The number of the change that freed the Lease: who wins a lock later does not know its limit.
    freed: Option<u64>,
}

/// The group that a node's labels name, and the number of the change since when.
#[derive(Debug)]
struct GroupMembership {
    group: GroupName,
    since: u64,
    ignored: bool,
}

#[derive(Debug, Default)]
pub(super) struct BudgetCheck {
    changes: u64,
    members: BTreeMap<String, GroupMembership>,
    holds: BTreeMap<String, HeldLease>,
    remediated: RemediatedNodes,
    /// The nodes that are unavailable now.
    by_group: BTreeMap<GroupName, BTreeSet<String>>,
    most: BTreeMap<GroupName, usize>,
}

impl BudgetCheck {
    /// Returns every group that had unavailable nodes, with the highest count.
    pub(super) fn most_out_by_group(&self) -> impl Iterator<Item = (&str, usize)> {
        self.most
            .iter()
            .map(|(group, most)| (group.as_str(), *most))
    }

    /// Takes in a Lease that was taken or changed.
    pub(super) fn record_lease(
        &mut self,
        name: &str,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        self.changes += 1;
        let group = group_of_lease(name);
        let holder = after.and_then(holding_node);
        self.free_earlier_hold(group.as_ref(), before.and_then(holding_node), holder);
        let (Some(group), Some(holder), Some(lease)) = (group, holder, after) else {
            return;
        };
        let recorded = recorded_max_unavailable(lease);
        let known = self.holds.get_mut(holder);
        if let Some(hold) = known.filter(|_| before.and_then(holding_node) == Some(holder)) {
            hold.recorded = hold.recorded.max(recorded);
        } else {
            let hold = HeldLease {
                group,
                won: self.changes,
                limit: 0,
                recorded,
                freed: None,
            };
            self.holds.insert(holder.to_owned(), hold);
        }
    }

    fn free_earlier_hold(
        &mut self,
        group: Option<&GroupName>,
        before: Option<&str>,
        after: Option<&str>,
    ) {
        let freed = before.filter(|before| after != Some(*before));
        if let Some(hold) = freed.and_then(|before| self.holds.get_mut(before))
            && Some(&hold.group) == group
        {
            hold.freed = Some(self.changes);
        }
    }

    /// Judges the groups after a change of nodes, hosts or policies; returns what is broken now.
    pub(super) fn judge_groups(
        &mut self,
        now: &ClusterObserver,
        leave: &PolicyCheck,
    ) -> Vec<String> {
        self.changes += 1;
        let out = self.by_group.values().flatten();
        let out: BTreeSet<&str> = out.map(String::as_str).collect();
        self.remediated.update_nodes(now, self.changes, &out);
        let nodes: Vec<(&str, NodeView)> = now
            .list_objects(ObservedKind::Node)
            .map(|(name, node)| (name, NodeView::from_object(node)))
            .collect();
        self.assign_groups(&nodes, leave);
        self.raise_limits(&nodes, leave);
        let out = self.nodes_out_by_group(&nodes);
        let mut broken = Vec::new();
        for (group, names) in &out {
            let most = self.most.entry(group.clone()).or_default();
            *most = names.len().max(*most);
            let before = self.by_group.get(group);
            let joined = names.iter();
            let joined = joined.filter(|name| before.is_none_or(|before| !before.contains(*name)));
            let joined = joined.filter(|name| !self.remediated.is_remediated(name));
            for name in joined {
                broken.extend(self.find_excess(group, name, names, &out));
            }
        }
        self.by_group = out;
        broken
    }

    fn assign_groups(&mut self, nodes: &[(&str, NodeView)], leave: &PolicyCheck) {
        for (name, node) in nodes {
            let group = leave.current_rule(&node.labels).group;
            let known = self.members.get(*name);
            let since = known.filter(|known| known.group == group);
            let since = since.map_or(self.changes, |known| known.since);
            let ignored = node.ignored;
            let membership = GroupMembership {
                group,
                since,
                ignored,
            };
            self.members.insert((*name).to_owned(), membership);
        }
    }

    /// Raises the limits of lock holders that were not unavailable before the change: they may have
    /// counted by the present policies.
    fn raise_limits(&mut self, nodes: &[(&str, NodeView)], leave: &PolicyCheck) {
        let was_out = |name: &str| self.by_group.values().any(|names| names.contains(name));
        for (name, node) in nodes.iter().filter(|(name, _)| !was_out(name)) {
            let rule = leave.current_rule(&node.labels);
            let members = self.members.values();
            let members = members.filter(|other| other.group == rule.group && !other.ignored);
            let limit = rule.config.max_unavailable.allowed_nodes(members.count());
            let hold = self.holds.get_mut(*name);
            if let Some(hold) = hold.filter(|hold| hold.group == rule.group) {
                hold.limit = hold.limit.max(limit);
            }
        }
    }

    fn nodes_out_by_group(
        &self,
        nodes: &[(&str, NodeView)],
    ) -> BTreeMap<GroupName, BTreeSet<String>> {
        let mut out: BTreeMap<GroupName, BTreeSet<String>> = BTreeMap::new();
        for (name, node) in nodes.iter().filter(|(_, node)| node.is_out_by_us()) {
            let lease = node
                .record
                .as_ref()
                .and_then(|record| record.lease.as_deref());
            let own = || self.members[*name].group.clone();
            let group = lease.and_then(group_of_lease).unwrap_or_else(own);
            out.entry(group).or_default().insert((*name).to_owned());
        }
        // A Node that was deleted counts in the group that its last labels named.
        for name in self.remediated.node_names() {
            let known = self.members.get(name);
            if known.is_some_and(|known| known.ignored) {
                continue;
            }
            let group = known.map_or_else(GroupName::default_group, |known| known.group.clone());
            out.entry(group).or_default().insert(name.to_owned());
        }
        out
    }

    /// Returns why the group is too large after `joined` became unavailable, if it is.
    fn find_excess(
        &self,
        group: &GroupName,
        joined: &str,
        names: &BTreeSet<String>,
        out: &BTreeMap<GroupName, BTreeSet<String>>,
    ) -> Option<String> {
        let won = self.holds.get(joined).map_or(0, |hold| hold.won);
        let elsewhere = out.iter().filter(|(other, _)| *other != group);
        let moved_in = elsewhere.flat_map(|(_, names)| names).filter(|name| {
            let membership = &self.members[*name];
            membership.group == *group && membership.since < won
        });
        let ignored = |name: &str| self.members.get(name).is_some_and(|it| it.ignored);
        let later = |name: &str| self.remediated.is_remediated_since(name, won);
        let counts = |name: &&String| name.as_str() == joined || !(ignored(name) || later(name));
        let all: Vec<&str> = names
            .iter()
            .chain(moved_in)
            .filter(counts)
            .map(String::as_str)
            .collect();
        let limits = names.iter().filter(counts).filter_map(|name| {
            let hold = self.holds.get(name)?;
            if name == joined {
                return Some(hold.limit);
            }
            let was_held = hold.freed.is_none_or(|freed| freed > won);
            was_held.then(|| hold.limit.max(hold.recorded))
        });
        let limit = limits.min().unwrap_or(1).max(1);
        (all.len() > limit).then(|| {
            format!(
                "{} are out of service at the same time, {limit} may be",
                all.join(" and ")
            )
        })
    }
}

fn holding_node(lease: &Value) -> Option<&str> {
    lease_holder(lease)?.strip_prefix("node/")
}

/// The `maxUnavailable` in the holder's record; 1 if there is none.
fn recorded_max_unavailable(lease: &Value) -> usize {
    let record = &lease["metadata"]["annotations"][dogwatch_api::annotation::HOLDER];
    let record: Option<Value> = record
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let max = record.and_then(|record| record["max"].as_u64());
    max.map_or(1, |max| usize::try_from(max).unwrap_or(usize::MAX))
}
