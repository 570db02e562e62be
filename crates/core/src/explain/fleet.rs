//! What was read of the cluster, and what follows from it for one node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_api::condition;

use crate::condition::CurrentCondition;
use crate::drain::PodRules;
use crate::lock::api_lock::WaitingHost;
use crate::lock::{self, HeldLockLease, HolderId, LockWaiter, ObservedLease};
use crate::name::{GroupName, NodeName};
use crate::node_reboot::ObservedNodeReboot;
use crate::policy::{self, ClusterPolicies, EffectivePolicy};
use crate::reboot::{
    ObservedNode, RebootConfig, RebootPhase, RebootReason, WAITS_FOR_LOCK_MESSAGE,
    find_waiting_condition, flags_of_coordinator, is_condition_of_other,
};

use super::budget::outside_holder;
use super::controller::ObservedController;
use super::healer::ObservedHealer;
use super::pods::NodePods;

/// The leading conditions, the most important first. Their names come from KEP-5683.
const LEADING_CONDITIONS: [&str; 3] = [
    condition::MAINTENANCE_IN_PROGRESS,
    condition::DRAIN_IN_PROGRESS,
    condition::MAINTENANCE_PLANNED,
];

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FleetSnapshot {
    /// Shared with the watch that keeps them: a copy of 5,000 Nodes every second takes memory.
    pub nodes: Vec<Arc<ObservedNode>>,
    pub policies: ClusterPolicies,
    /// All Leases of Dogwatch's namespace that are a slot of a group.
    pub leases: Vec<LeaseRow>,
    /// Leases held by remediations: their nodes count as unavailable in any case.
    pub remediation_leases: Vec<HeldLockLease>,
    /// The first hosts that wait at a lock API, by group.
    pub lock_api_waiters: Vec<(GroupName, LockWaiter)>,
    /// The hosts that have waited longest at a lock API, each with the reason, whether or not they
    /// are in a queue.
    pub waiting_hosts: Vec<WaitingHost>,
    /// The leader of the controllers.
    pub controller: ObservedController,
}

/// A waiter for the lock: a node, or a host at a lock API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueuedHolder<'a> {
    /// The holder under whose name it would bid.
    pub(super) holder: HolderId,
    /// `None` for a host at a lock API.
    pub(super) node: Option<&'a ObservedNode>,
}

impl QueuedHolder<'_> {
    /// The Node's name, or the holder name of a host.
    pub(super) fn display_name(&self) -> String {
        match self.node {
            Some(node) => node.name.to_string(),
            None => self.holder.to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    pub group: GroupName,
    pub lease: ObservedLease,
}

/// Everything that the explanation of a node is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeReportInput {
    pub node: NodeName,
    pub fleet: FleetSnapshot,
    /// `None` if they could not be read, or are not needed.
    pub node_pods: Option<NodePods>,
    pub coordinator: ObservedCoordinator,
    /// `None` if it could not be read, or is not needed.
    pub healer: Option<ObservedHealer>,
    /// The NodeReboots of this node that have not ended; empty if they could not be read.
    pub node_reboots: Vec<ObservedNodeReboot>,
}

/// What the API shows of the coordinator that should run on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedCoordinator {
    Unknown,
    /// Dogwatch's namespace has no DaemonSet of coordinators: none are installed there, or they run
    /// some other way.
    NoDaemonSet,
    /// The DaemonSet has no pod on this node.
    NoPod,
    Pod {
        /// `namespace/name`.
        name: String,
        ready: bool,
        /// The pod's phase, or what its container waits for.
        state: String,
    },
}

impl FleetSnapshot {
    /// The node as a waiter for its group's lock.
    pub fn waiter_of_node(&self, node: &ObservedNode) -> LockWaiter {
        LockWaiter {
            holder: HolderId::for_node(&node.name),
            control_plane: policy::is_control_plane(&node.labels),
            zone: policy::zone_of_labels(&self.policies, &node.labels),
            since: node.record.get().map(|record| record.since),
        }
    }

    /// The policy that applies to this node. Of the coordinator's flags only the limits in its record
    /// are on the cluster: without a policy, the defaults of the others are used.
    pub fn rule_of_node(&self, node: &ObservedNode) -> EffectivePolicy<'_> {
        let flags = RebootConfig::default();
        let flags = flags_of_coordinator(node, &flags);
        policy::resolve_policy(&self.policies, &node.labels, &flags)
    }

    /// What a drain of this node does with which pods.
    pub fn pod_rules_of(&self, name: &NodeName) -> PodRules {
        let node = self.find_node(name);
        node.map(|node| self.rule_of_node(node).config.pod_rules)
            .unwrap_or_default()
    }

    pub fn group_of_node(&self, node: &ObservedNode) -> GroupName {
        policy::group_of_labels(&self.policies, &node.labels)
    }

    pub fn iter_nodes(&self) -> impl Iterator<Item = &ObservedNode> {
        self.nodes.iter().map(AsRef::as_ref)
    }

    pub fn find_node(&self, name: &NodeName) -> Option<&ObservedNode> {
        self.iter_nodes().find(|node| node.name == *name)
    }

    /// The slot that this node holds, in any group.
    pub(crate) fn lease_held_by(&self, node: &NodeName) -> Option<&LeaseRow> {
        let holder = HolderId::for_node(node);
        self.leases
            .iter()
            .find(|row| row.lease.holder.as_ref() == Some(&holder))
    }

    /// The slot that is held for this node through the lock API.
    pub(super) fn lease_locked_through_api(&self, node: &NodeName) -> Option<&LeaseRow> {
        self.leases.iter().find(|row| {
            let holder = row.lease.holder.as_ref();
            let record = row.lease.record.as_ref();
            holder.is_some_and(|holder| !holder.is_node())
                && record.is_some_and(|record| record.node.as_ref() == Some(node))
        })
    }

    /// The caller that waits at a lock API for this node's lock.
    pub(super) fn waiting_host_for(&self, node: &NodeName) -> Option<&WaitingHost> {
        let mut hosts = self.waiting_hosts.iter();
        hosts.find(|host| host.node.as_ref() == Some(node) && self.is_unanswered(host))
    }

    /// All callers that wait at a lock API.
    pub(super) fn unanswered_hosts(&self) -> impl Iterator<Item = &WaitingHost> {
        let hosts = self.waiting_hosts.iter();
        hosts.filter(|host| self.is_unanswered(host))
    }

    /// A host that holds a Lease no longer waits: what the API shows of its wait is older. Only a
    /// host that drains holds a Lease and still waits.
    fn is_unanswered(&self, host: &WaitingHost) -> bool {
        let mut leases = self.leases.iter();
        RebootReason::parse(&host.reason) == Some(RebootReason::Draining)
            || !leases.any(|row| row.lease.holder.as_ref() == Some(&host.holder))
    }

    /// The group's slots, the lowest first.
    pub(super) fn slots_of_group(&self, group: &GroupName) -> Vec<&LeaseRow> {
        let mut slots: Vec<&LeaseRow> = self
            .leases
            .iter()
            .filter(|row| row.group == *group)
            .collect();
        slots.sort_by_key(|row| row.lease.slot);
        slots
    }

    /// The Node of the Lease's holder, or its name if that Node does not exist; `None` if the
    /// holder is no node.
    pub fn holder_node(&self, lease: &ObservedLease) -> Option<Result<&ObservedNode, NodeName>> {
        let name = lock::holder_node_name(lease)?;
        Some(self.find_node(&name).ok_or(name))
    }

    /// The waiters for the group's lock, in the order in which a released Lease names them.
    pub(super) fn group_queue(&self, group: &GroupName) -> Vec<QueuedHolder<'_>> {
        let waiting: BTreeMap<HolderId, &ObservedNode> = self
            .iter_nodes()
            .filter(|node| is_queued(node) && self.group_of_node(node) == *group)
            .map(|node| (HolderId::for_node(&node.name), node))
            .collect();
        let hosts = self.lock_api_waiters.iter().filter(|(of, _)| of == group);
        let hosts = hosts.map(|(_, waiter)| waiter.clone());
        let nodes = waiting.values().map(|node| self.waiter_of_node(node));
        let waiters: Vec<LockWaiter> = nodes.chain(hosts).collect();
        lock::order_next_waiters(&waiters, &outside_holder(), None, waiters.len())
            .into_iter()
            .map(|holder| QueuedHolder {
                node: waiting.get(&holder).copied(),
                holder,
            })
            .collect()
    }

    /// The place of each waiting node in its group's queue, from 1.
    pub(super) fn queue_places(&self) -> BTreeMap<&NodeName, usize> {
        let groups: BTreeSet<GroupName> = self
            .iter_nodes()
            .map(|node| self.group_of_node(node))
            .collect();
        let queues = groups.iter().map(|group| self.group_queue(group));
        queues
            .flat_map(|queue| queue.into_iter().zip(1..))
            .filter_map(|(queued, place)| Some((&queued.node?.name, place)))
            .collect()
    }
}

/// Whether the node waits for the lock and is not in the pause after a failed reboot.
pub(super) fn is_queued(node: &ObservedNode) -> bool {
    node.record
        .get()
        .is_some_and(|record| record.phase == RebootPhase::Waiting && record.retry_after.is_none())
}

/// The node's condition of this type, if it is `True`.
pub(super) fn find_true_condition<'a>(
    node: &'a ObservedNode,
    kind: &str,
) -> Option<&'a CurrentCondition> {
    node.conditions
        .iter()
        .find(|condition| condition.kind == kind && condition.status == "True")
}

/// The node's own decision: the reason and message of its leading condition.
///
/// The coordinator writes its record before the conditions. Until the condition of the record's
/// phase is there, the condition of an earlier phase would give this phase an outdated reason.
pub fn leading_condition(node: &ObservedNode) -> Option<&CurrentCondition> {
    let Some(record) = node.record.get() else {
        return LEADING_CONDITIONS
            .iter()
            .find_map(|kind| find_true_condition(node, kind));
    };
    let kind = match record.phase {
        RebootPhase::Waiting => return find_waiting_condition(node),
        RebootPhase::Draining => condition::DRAIN_IN_PROGRESS,
        RebootPhase::Holding | RebootPhase::Rebooting | RebootPhase::Returning => {
            condition::MAINTENANCE_IN_PROGRESS
        }
    };
    // While another tool uses that condition, the coordinator writes its reason into this one.
    let usual = find_true_condition(node, kind);
    match find_true_condition(node, condition::MAINTENANCE_PLANNED) {
        Some(planned) if usual.is_some_and(is_condition_of_other) => Some(planned),
        Some(_) | None => usual,
    }
}

/// The reason of the leading condition. `None`: there is none, or this version does not know it.
pub(super) fn leading_reason(node: &ObservedNode) -> Option<RebootReason> {
    RebootReason::parse(&leading_condition(node)?.reason)
}

/// The condition's message, for a reader who sees the holder of the lock beside it.
pub(super) fn condition_message(condition: &CurrentCondition) -> &str {
    if condition.message == WAITS_FOR_LOCK_MESSAGE {
        return "waits for the lock";
    }
    &condition.message
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{fleet, held, node, waiting};
    use super::*;

    #[test]
    fn the_queue_is_in_the_order_in_which_a_leaver_calls() {
        let fleet = fleet(
            vec![
                waiting("late", 50),
                waiting("early", 10),
                node("idle"),
                waiting("tie", 50),
            ],
            vec![],
        );
        let names: Vec<&str> = fleet
            .group_queue(&GroupName::default_group())
            .iter()
            .filter_map(|queued| Some(queued.node?.name.as_str()))
            .collect();
        assert_eq!(names, ["early", "late", "tie"]);
    }

    #[test]
    fn hosts_at_a_lock_api_have_their_place_among_the_nodes() {
        let mut fleet = fleet(vec![waiting("late", 50), waiting("early", 10)], vec![]);
        let host = |name: &str, second| LockWaiter {
            holder: HolderId::new(format!("api/{name}")).unwrap(),
            control_plane: false,
            zone: None,
            since: jiff::Timestamp::from_second(second).ok(),
        };
        let elsewhere = GroupName::new("other").unwrap();
        fleet.lock_api_waiters = vec![
            (GroupName::default_group(), host("h", 30)),
            (elsewhere, host("x", 1)),
        ];
        let queue = fleet.group_queue(&GroupName::default_group());
        let names: Vec<String> = queue.iter().map(QueuedHolder::display_name).collect();
        assert_eq!(names, ["early", "api/h", "late"]);
        let late = NodeName::new("late").unwrap();
        assert_eq!(fleet.queue_places().get(&late), Some(&3));
    }

    #[test]
    fn who_pauses_after_a_failure_is_not_in_the_queue() {
        let mut paused = waiting("paused", 10);
        if let crate::reboot::ParsedAnnotation::Is(record) = &mut paused.record {
            record.retry_after = jiff::Timestamp::from_second(99).ok();
        }
        assert!(
            fleet(vec![paused], vec![])
                .group_queue(&GroupName::default_group())
                .is_empty()
        );
    }

    #[test]
    fn a_condition_of_the_phase_before_says_nothing_about_this_one() {
        let mut begun = waiting("n1", 10);
        assert_eq!(leading_condition(&begun).unwrap().reason, "LockHeldByOther");
        begun.conditions[0].status = "True".into();
        for phase in [
            RebootPhase::Draining,
            RebootPhase::Holding,
            RebootPhase::Rebooting,
            RebootPhase::Returning,
        ] {
            if let crate::reboot::ParsedAnnotation::Is(record) = &mut begun.record {
                record.phase = phase;
            }
            assert_eq!(leading_condition(&begun), None, "{phase:?}");
        }
    }

    #[test]
    fn a_waiting_node_says_why_whether_or_not_its_reboot_is_near() {
        let mut waits = waiting("n1", 10);
        for (status, reason, shown) in [
            ("False", "OutsideWindow", true),
            ("True", "RebootPlanned", true),
            // How the last reboot ended: the coordinator has not written the condition yet.
            ("False", "Rebooted", false),
            ("False", "KubectlDrainCompleted", false),
            ("True", "AdminRequested", false),
        ] {
            waits.conditions[0].status = status.into();
            waits.conditions[0].reason = reason.into();
            assert_eq!(
                leading_condition(&waits).is_some(),
                shown,
                "{status} {reason}"
            );
        }
    }

    #[test]
    fn while_another_tool_drains_the_reason_is_in_the_condition_that_is_ours() {
        let mut begun = waiting("n1", 10);
        begun.conditions[0].status = "True".into();
        if let crate::reboot::ParsedAnnotation::Is(record) = &mut begun.record {
            record.phase = RebootPhase::Draining;
        }
        let mut others = begun.conditions[0].clone();
        others.kind = condition::DRAIN_IN_PROGRESS.into();
        others.reason = "KubectlDrainStarted".into();
        begun.conditions.push(others);
        assert_eq!(leading_condition(&begun).unwrap().reason, "LockHeldByOther");
    }

    #[test]
    fn a_lease_is_found_by_its_holder() {
        let fleet = fleet(vec![node("n1")], vec![held(0, "n1", 5)]);
        let n1 = NodeName::new("n1").unwrap();
        assert_eq!(
            fleet.lease_held_by(&n1).unwrap().lease.name,
            "dogwatch-default-0"
        );
        assert!(fleet.lease_held_by(&NodeName::new("n2").unwrap()).is_none());
    }

    #[test]
    fn a_holder_whose_node_is_not_there_is_named() {
        let fleet = fleet(vec![], vec![held(0, "gone", 5)]);
        let row = &fleet.leases[0];
        assert_eq!(
            fleet.holder_node(&row.lease),
            Some(Err(NodeName::new("gone").unwrap()))
        );
    }
}
