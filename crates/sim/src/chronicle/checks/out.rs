//! S1: how many of a group are out, and how many might be when each of them began.
//!
//! A node is out in the group of its Lease, wherever its labels have moved it since; and it counts
//! in the group that its labels name as well, once they do. Its limit is the highest that it could
//! have counted by: the policies between its win and its cordon; of the others, what their Leases say
//! as well. Nobody may make a group larger than the smallest limit of those who are out in it. A
//! remediation waits for nobody, and whoever wins after it began counts its node.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::group_of_lease;
use serde_json::Value;

use super::super::object::{NodeView, holder_of};
use super::super::observer::{Kind, Observer};
use super::leave::Leave;
use super::remediated::Remediated;

/// A node's newest Lease.
#[derive(Debug)]
struct Hold {
    group: GroupName,
    /// The change at which it was won.
    won: u64,
    /// The highest by which it could count itself: the policies between its win and its cordon.
    limit: usize,
    /// The highest that its Lease has said, by which others count.
    recorded: usize,
}

/// Where a node's labels put it, and since which change.
#[derive(Debug)]
struct Membership {
    group: GroupName,
    since: u64,
    ignored: bool,
}

#[derive(Debug, Default)]
pub(super) struct Out {
    changes: u64,
    members: BTreeMap<String, Membership>,
    holds: BTreeMap<String, Hold>,
    remediated: Remediated,
    /// Who is out now.
    by_group: BTreeMap<GroupName, BTreeSet<String>>,
    most: BTreeMap<GroupName, usize>,
}

impl Out {
    /// Every group in which a node was out, with how many at most.
    pub(super) fn most(&self) -> impl Iterator<Item = (&str, usize)> {
        self.most
            .iter()
            .map(|(group, most)| (group.as_str(), *most))
    }

    /// A Lease was won, or says something else.
    pub(super) fn saw_lease(&mut self, name: &str, before: Option<&Value>, after: Option<&Value>) {
        self.changes += 1;
        let group = group_of_lease(name);
        let holder = after.and_then(node_that_holds);
        let (Some(group), Some(holder), Some(lease)) = (group, holder, after) else {
            return;
        };
        let recorded = recorded_max(lease);
        let known = self.holds.get_mut(holder);
        if let Some(hold) = known.filter(|_| before.and_then(node_that_holds) == Some(holder)) {
            hold.recorded = hold.recorded.max(recorded);
        } else {
            let hold = Hold {
                group,
                won: self.changes,
                limit: 0,
                recorded,
            };
            self.holds.insert(holder.to_owned(), hold);
        }
    }

    /// Nodes or policies have changed; answers what is broken now.
    pub(super) fn look(&mut self, now: &Observer, leave: &Leave) -> Vec<String> {
        self.changes += 1;
        let out = self.by_group.values().flatten();
        let out: BTreeSet<&str> = out.map(String::as_str).collect();
        self.remediated.look(now, self.changes, &out);
        let nodes: Vec<(&str, NodeView)> = now
            .all(Kind::Node)
            .map(|(name, node)| (name, NodeView::of(node)))
            .collect();
        self.place(&nodes, leave);
        self.raise(&nodes, leave);
        let out = self.out_now(&nodes);
        let mut broken = Vec::new();
        for (group, names) in &out {
            let most = self.most.entry(group.clone()).or_default();
            *most = names.len().max(*most);
            let before = self.by_group.get(group);
            let joined = names.iter();
            let joined = joined.filter(|name| before.is_none_or(|before| !before.contains(*name)));
            let joined = joined.filter(|name| !self.remediated.has(name));
            for name in joined {
                broken.extend(self.too_many(group, name, names, &out));
            }
        }
        self.by_group = out;
        broken
    }

    fn place(&mut self, nodes: &[(&str, NodeView)], leave: &Leave) {
        for (name, node) in nodes {
            let group = leave.rule(&node.labels).group;
            let known = self.members.get(*name);
            let since = known.filter(|known| known.group == group);
            let since = since.map_or(self.changes, |known| known.since);
            let ignored = node.ignored;
            let membership = Membership {
                group,
                since,
                ignored,
            };
            self.members.insert((*name).to_owned(), membership);
        }
    }

    /// Who has won and was not out before may have counted by what stands now.
    fn raise(&mut self, nodes: &[(&str, NodeView)], leave: &Leave) {
        let was_out = |name: &str| self.by_group.values().any(|names| names.contains(name));
        for (name, node) in nodes.iter().filter(|(name, _)| !was_out(name)) {
            let rule = leave.rule(&node.labels);
            let members = self.members.values();
            let members = members.filter(|other| other.group == rule.group && !other.ignored);
            let limit = rule.config.max_unavailable.of(members.count());
            let hold = self.holds.get_mut(*name);
            if let Some(hold) = hold.filter(|hold| hold.group == rule.group) {
                hold.limit = hold.limit.max(limit);
            }
        }
    }

    fn out_now(&self, nodes: &[(&str, NodeView)]) -> BTreeMap<GroupName, BTreeSet<String>> {
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
        // Where its labels put it when its Node was last there.
        for name in self.remediated.names() {
            let known = self.members.get(name);
            if known.is_some_and(|known| known.ignored) {
                continue;
            }
            let group = known.map_or_else(GroupName::default_group, |known| known.group.clone());
            out.entry(group).or_default().insert(name.to_owned());
        }
        out
    }

    /// Whether `joined` makes the group larger than anybody in it allows.
    fn too_many(
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
        let later = |name: &str| self.remediated.is_later(name, won);
        let counts = |name: &&String| name.as_str() == joined || !(ignored(name) || later(name));
        let all: Vec<&str> = names
            .iter()
            .chain(moved_in)
            .filter(counts)
            .map(String::as_str)
            .collect();
        let limits = names.iter().filter(counts).filter_map(|name| {
            let hold = self.holds.get(name)?;
            let own = name == joined;
            Some(if own {
                hold.limit
            } else {
                hold.limit.max(hold.recorded)
            })
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

fn node_that_holds(lease: &Value) -> Option<&str> {
    holder_of(lease)?.strip_prefix("node/")
}

/// What the holder's record says; whoever says nothing counts by one.
fn recorded_max(lease: &Value) -> usize {
    let record = &lease["metadata"]["annotations"][dogwatch_api::annotation::HOLDER];
    let record: Option<Value> = record
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let max = record.and_then(|record| record["max"].as_u64());
    max.map_or(1, |max| usize::try_from(max).unwrap_or(usize::MAX))
}
