//! Telling others that a node is away because we reboot it: medik8s' Lease of the node, and Cluster
//! API's annotation on its Machine. Source: specification §4.4.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::Now;
use crate::name::NodeName;
use crate::policy::Policies;
use crate::reboot::{Config, NodeSeen, Phase, RebootsWatched};

/// Whose marks they are: the holder of the Lease, and the annotation's value. Only what says so is ever
/// taken away.
pub const MARK: &str = "dogwatch.dev";

/// How much longer than the `rebootTimeout` others are told: at its end the coordinator may begin the
/// next attempt, and nobody is to find the node unmarked in between.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(30);

/// A Lease that ends earlier than it should by no more than this is left as it is.
const EXACT_ENOUGH: Duration = Duration::from_secs(10);

/// How often the marks are looked at while a node is to have some: others may have been in the way, or
/// have taken one off.
pub const SAY_AGAIN: Duration = Duration::from_mins(1);

/// A node of which others are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebooting {
    /// Its UID.
    pub uid: String,
    /// Until when, in monotonic time.
    pub until: Duration,
}

/// A Machine of Cluster API that carries our mark, or whose Node reboots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineMark {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// `status.nodeRef.name`.
    pub node: Option<String>,
    /// `status.nodeRef.uid`, where there is one: v1beta2 has none.
    pub node_uid: Option<String>,
    /// Annotation `cluster.x-k8s.io/skip-remediation`.
    pub skip: Option<String>,
}

/// A Lease in medik8s' namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLease {
    /// `node-NODE`.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// What a write to it relies on.
    pub resource_version: String,
    /// `spec.holderIdentity`.
    pub holder: Option<String>,
    /// `spec.renewTime` and `spec.leaseDurationSeconds`: until when it is valid. `None`: one is missing.
    pub ends: Option<Timestamp>,
    /// `spec.leaseTransitions`.
    pub transitions: u32,
}

/// One write. Each is conditional on what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The annotation is put on a Machine that has none.
    MarkMachine(MachineMark),
    /// Ours is taken off.
    UnmarkMachine(MachineMark),
    /// A Lease is made, or one that is over or ours is written for so long.
    TakeLease {
        /// For which node.
        node: NodeName,
        /// Its UID: the Lease goes with it.
        node_uid: String,
        /// As it stands; `None`: there is none.
        lease: Option<NodeLease>,
        /// Until when it is to be valid.
        ends: Timestamp,
    },
    /// Ours is deleted: that is how medik8s gives one back.
    DeleteLease(NodeLease),
}

/// The name of medik8s' Lease of a node.
pub fn lease_name(node: &NodeName) -> String {
    format!("node-{node}")
}

/// Of which nodes others are told, and until when: those at their `rebooting`, and until they are Ready
/// those that have booted; for a `rebootTimeout` in each.
pub fn wanted<'a>(
    nodes: impl IntoIterator<Item = (&'a NodeName, &'a Arc<NodeSeen>)>,
    watched: &RebootsWatched,
    policies: &Policies,
    flags: &Config,
    now: Now,
) -> BTreeMap<NodeName, Rebooting> {
    let until = |node: &NodeSeen| {
        let until = allowed(node, watched, policies, flags)?.saturating_add(BETWEEN_ATTEMPTS);
        (until > now.mono).then_some(until)
    };
    let told = |(name, node): (&NodeName, &Arc<NodeSeen>)| {
        let uid = node.uid.clone();
        let until = until(node)?;
        Some((name.clone(), Rebooting { uid, until }))
    };
    nodes.into_iter().filter_map(told).collect()
}

fn allowed(
    node: &NodeSeen,
    watched: &RebootsWatched,
    policies: &Policies,
    flags: &Config,
) -> Option<Duration> {
    let record = node.record.get()?;
    match record.phase {
        Phase::Waiting | Phase::Draining => None,
        Phase::Rebooting => watched.until(node, policies, flags),
        Phase::Returning if node.ready => None,
        Phase::Returning => {
            let rule = crate::policy::rule(policies, &node.labels, flags);
            watched.ends(&node.name, rule.config.reboot_timeout)
        }
    }
}

/// What is to be written so that exactly the nodes of `wanted` are marked. `leases` is `None` where
/// medik8s does not listen. Others' marks are left alone: an annotation of somebody else does the same,
/// and a Lease that somebody else holds is his until it is over.
pub fn decide(
    wanted: &BTreeMap<NodeName, Rebooting>,
    machines: &[MachineMark],
    leases: Option<&[NodeLease]>,
    now: Now,
) -> Vec<Action> {
    let mut actions: Vec<Action> = machines
        .iter()
        .filter_map(|machine| on_machine(wanted, machines, machine))
        .collect();
    if let Some(leases) = leases {
        let takes = wanted.iter();
        actions.extend(takes.filter_map(|(node, told)| on_lease(node, told, leases, now)));
        actions.extend(left_over(wanted, leases));
    }
    actions
}

fn on_machine(
    wanted: &BTreeMap<NodeName, Rebooting>,
    machines: &[MachineMark],
    machine: &MachineMark,
) -> Option<Action> {
    let node = wanted
        .iter()
        .find(|(node, told)| is_of(machine, node, told));
    let of_node = |(node, told)| machines.iter().filter(move |one| is_of(one, node, told));
    match (machine.skip.as_deref(), node) {
        // Two that name one Node: at least one of them is another cluster's.
        (None, Some(node)) if of_node(node).count() == 1 => {
            Some(Action::MarkMachine(machine.clone()))
        }
        (Some(MARK), None) => Some(Action::UnmarkMachine(machine.clone())),
        (None, Some(_) | None) | (Some(_), _) => None,
    }
}

fn is_of(machine: &MachineMark, node: &NodeName, told: &Rebooting) -> bool {
    let uid = machine.node_uid.as_ref();
    machine.node.as_deref() == Some(node.as_str()) && uid.is_none_or(|uid| *uid == told.uid)
}

fn on_lease(node: &NodeName, told: &Rebooting, leases: &[NodeLease], now: Now) -> Option<Action> {
    let name = lease_name(node);
    let ends = now.plus(told.until.saturating_sub(now.mono));
    let lease = leases.iter().find(|lease| lease.name == name);
    let needed = lease.is_none_or(|lease| match lease.holder.as_deref() {
        Some(MARK) => lease.ends.is_none_or(|at| {
            let early = ends.duration_since(at);
            Duration::try_from(early).is_ok_and(|early| early > EXACT_ENOUGH)
        }),
        Some(_) | None => lease.ends.is_none_or(|at| at < now.wall),
    });
    needed.then(|| Action::TakeLease {
        node: node.clone(),
        node_uid: told.uid.clone(),
        lease: lease.cloned(),
        ends,
    })
}

fn left_over<'a>(
    wanted: &'a BTreeMap<NodeName, Rebooting>,
    leases: &'a [NodeLease],
) -> impl Iterator<Item = Action> + 'a {
    let is_wanted = |lease: &NodeLease| wanted.keys().any(|node| lease_name(node) == lease.name);
    let ours = |lease: &&NodeLease| lease.holder.as_deref() == Some(MARK);
    let left = leases.iter().filter(ours);
    left.filter(move |lease| !is_wanted(lease))
        .map(|lease| Action::DeleteLease(lease.clone()))
}
