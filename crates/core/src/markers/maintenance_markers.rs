//! Markers that tell other health checkers that we are rebooting a node: medik8s' Lease of the
//! node, and Cluster API's annotation on its Machine. Source: specification §4.4.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::Now;
use crate::name::NodeName;
use crate::policy::ClusterPolicies;
use crate::reboot::{
    ObservedNode, RebootConfig, RebootPhase, WatchedReboots, flags_of_coordinator,
};

/// Identifies our markers: the holder of the Lease, and the value of the annotation. Only markers
/// with this value are ever removed.
pub const MARKER_VALUE: &str = "dogwatch.dev";

/// How much longer than `rebootTimeout` a marker lasts. At the end of `rebootTimeout` the
/// coordinator may begin the next attempt, and the node must not be without a marker in between.
const REBOOT_ATTEMPT_MARGIN: Duration = Duration::from_secs(30);

/// A Lease that ends at most this much too early is not rewritten.
const LEASE_END_TOLERANCE: Duration = Duration::from_secs(10);

/// How often the markers are checked while a node should have some: another holder may have been in
/// the way, or somebody may have removed a marker.
pub const MARKER_REFRESH_INTERVAL: Duration = Duration::from_mins(1);

/// A node that should have markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootingNode {
    pub uid: String,
    /// When the markers may end, in monotonic time.
    pub until: Duration,
}

/// A Machine of Cluster API that carries our marker, or whose Node reboots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineMarker {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The precondition of a write.
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
pub struct MaintenanceLease {
    /// `node-NODE`.
    pub name: String,
    pub uid: String,
    /// The precondition of a write.
    pub resource_version: String,
    /// `spec.holderIdentity`.
    pub holder: Option<String>,
    /// `spec.renewTime` plus `spec.leaseDurationSeconds`; `None` if one of them is missing.
    pub ends: Option<Timestamp>,
    /// `spec.leaseTransitions`.
    pub transitions: u32,
}

/// One write, conditional on the version last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkerAction {
    /// Add the annotation to a Machine that has none.
    MarkMachine(MachineMarker),
    /// Remove our annotation.
    UnmarkMachine(MachineMarker),
    /// Create the Lease, or renew it if it has expired or is ours.
    TakeLease {
        node: NodeName,
        /// The Node's UID, which becomes the owner of the Lease: both are deleted together.
        node_uid: String,
        /// The existing Lease; `None` if there is none.
        lease: Option<MaintenanceLease>,
        /// When the Lease is to expire.
        ends: Timestamp,
    },
    /// Delete our Lease: that is how medik8s gives one back.
    DeleteLease(MaintenanceLease),
}

pub fn maintenance_lease_name(node: &NodeName) -> String {
    format!("node-{node}")
}

/// The nodes that should have markers, and until when: those in phase `rebooting`, and those that
/// have booted, until they are Ready; at most one `rebootTimeout` in each phase.
pub fn wanted_markers<'a>(
    nodes: impl IntoIterator<Item = (&'a NodeName, &'a Arc<ObservedNode>)>,
    watched: &WatchedReboots,
    policies: &ClusterPolicies,
    flags: &RebootConfig,
    now: Now,
) -> BTreeMap<NodeName, RebootingNode> {
    let until = |node: &ObservedNode| {
        let until =
            marker_deadline(node, watched, policies, flags)?.saturating_add(REBOOT_ATTEMPT_MARGIN);
        (until > now.mono).then_some(until)
    };
    let told = |(name, node): (&NodeName, &Arc<ObservedNode>)| {
        let uid = node.uid.clone();
        let until = until(node)?;
        Some((name.clone(), RebootingNode { uid, until }))
    };
    nodes.into_iter().filter_map(told).collect()
}

fn marker_deadline(
    node: &ObservedNode,
    watched: &WatchedReboots,
    policies: &ClusterPolicies,
    flags: &RebootConfig,
) -> Option<Duration> {
    let record = node.record.get()?;
    match record.phase {
        RebootPhase::Waiting | RebootPhase::Draining | RebootPhase::Holding => None,
        RebootPhase::Rebooting => watched.rebooting_deadline(node, policies, flags),
        RebootPhase::Returning if node.ready => None,
        RebootPhase::Returning => {
            let flags = flags_of_coordinator(node, flags);
            let rule = crate::policy::resolve_policy(policies, &node.labels, &flags);
            watched.phase_ends_at(&node.name, rule.config.reboot_timeout)
        }
    }
}

/// The writes after which exactly the nodes of `wanted` have our markers. `leases` is `None` if
/// medik8s is not installed. Markers of others are never changed: another value of the annotation
/// has the same effect, and a Lease of another holder is theirs until it expires.
pub fn decide(
    wanted: &BTreeMap<NodeName, RebootingNode>,
    machines: &[MachineMarker],
    leases: Option<&[MaintenanceLease]>,
    now: Now,
) -> Vec<MarkerAction> {
    let mut actions: Vec<MarkerAction> = machines
        .iter()
        .filter_map(|machine| decide_machine_marker(wanted, machines, machine))
        .collect();
    if let Some(leases) = leases {
        let takes = wanted.iter();
        actions
            .extend(takes.filter_map(|(node, told)| decide_lease_marker(node, told, leases, now)));
        actions.extend(delete_leftover_leases(wanted, leases));
    }
    actions
}

fn decide_machine_marker(
    wanted: &BTreeMap<NodeName, RebootingNode>,
    machines: &[MachineMarker],
    machine: &MachineMarker,
) -> Option<MarkerAction> {
    let node = wanted
        .iter()
        .find(|(node, told)| is_machine_of_node(machine, node, told));
    let of_node = |(node, told)| {
        machines
            .iter()
            .filter(move |one| is_machine_of_node(one, node, told))
    };
    match (machine.skip.as_deref(), node) {
        // If two Machines name one Node, at least one of them belongs to another cluster.
        (None, Some(node)) if of_node(node).count() == 1 => {
            Some(MarkerAction::MarkMachine(machine.clone()))
        }
        (Some(MARKER_VALUE), None) => Some(MarkerAction::UnmarkMachine(machine.clone())),
        (None, Some(_) | None) | (Some(_), _) => None,
    }
}

fn is_machine_of_node(machine: &MachineMarker, node: &NodeName, told: &RebootingNode) -> bool {
    let uid = machine.node_uid.as_ref();
    machine.node.as_deref() == Some(node.as_str()) && uid.is_none_or(|uid| *uid == told.uid)
}

fn decide_lease_marker(
    node: &NodeName,
    told: &RebootingNode,
    leases: &[MaintenanceLease],
    now: Now,
) -> Option<MarkerAction> {
    let name = maintenance_lease_name(node);
    let ends = now.wall_after(told.until.saturating_sub(now.mono));
    let lease = leases.iter().find(|lease| lease.name == name);
    let needed = lease.is_none_or(|lease| match lease.holder.as_deref() {
        Some(MARKER_VALUE) => lease.ends.is_none_or(|at| {
            let early = ends.duration_since(at);
            Duration::try_from(early).is_ok_and(|early| early > LEASE_END_TOLERANCE)
        }),
        Some(_) | None => lease.ends.is_none_or(|at| at < now.wall),
    });
    needed.then(|| MarkerAction::TakeLease {
        node: node.clone(),
        node_uid: told.uid.clone(),
        lease: lease.cloned(),
        ends,
    })
}

fn delete_leftover_leases<'a>(
    wanted: &'a BTreeMap<NodeName, RebootingNode>,
    leases: &'a [MaintenanceLease],
) -> impl Iterator<Item = MarkerAction> + 'a {
    let is_wanted = |lease: &MaintenanceLease| {
        wanted
            .keys()
            .any(|node| maintenance_lease_name(node) == lease.name)
    };
    let ours = |lease: &&MaintenanceLease| lease.holder.as_deref() == Some(MARKER_VALUE);
    let left = leases.iter().filter(ours);
    left.filter(move |lease| !is_wanted(lease))
        .map(|lease| MarkerAction::DeleteLease(lease.clone()))
}
