//! What was read of the cluster, and what follows from it for one node.

use std::collections::{BTreeMap, BTreeSet};

use crate::condition::Condition;
use crate::lock::api_lock::WaitingHost;
use crate::lock::{self, HeldSeen, HolderId, LeaseSeen, Waiter};
use crate::name::{GroupName, NodeName};
use crate::policy::{self, Policies, Rule};
use crate::reboot::{Config, NodeSeen, Phase, WAITS_FOR_LOCK, reason};

use super::healer::HealerSeen;
use super::pods::OnNode;

/// The leading conditions, the one that says most first. Names of KEP-5683.
const LEADING: [&str; 3] = [
    "MaintenanceInProgress",
    "DrainInProgress",
    "MaintenancePlanned",
];

/// Every node and every slot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fleet {
    /// All Nodes.
    pub nodes: Vec<NodeSeen>,
    /// All RebootPolicies.
    pub policies: Policies,
    /// All Leases of Dogwatch's in its namespace that are a group's slot.
    pub leases: Vec<LeaseRow>,
    /// The Leases that remediations hold: their nodes are out, whatever else is seen of them.
    pub remedies: Vec<HeldSeen>,
    /// The first of those who wait at a lock API, by group.
    pub hosts: Vec<(GroupName, Waiter)>,
    /// Those who wait longest at a lock API, each with the reason, whether or not they are in a queue.
    pub waiting_hosts: Vec<WaitingHost>,
}

/// One who waits for the lock: a node that is here, or a host at a lock API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queued<'a> {
    /// Who would bid.
    pub(super) holder: HolderId,
    /// Its Node, if its coordinator waits.
    pub(super) node: Option<&'a NodeSeen>,
}

impl Queued<'_> {
    /// The Node's name; a host as it would hold the lock.
    pub(super) fn name(&self) -> String {
        match self.node {
            Some(node) => node.name.to_string(),
            None => self.holder.to_string(),
        }
    }
}

/// One slot, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// The group it belongs to.
    pub group: GroupName,
    /// The Lease.
    pub lease: LeaseSeen,
}

/// Everything that an explanation is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The node in question.
    pub node: NodeName,
    /// The cluster.
    pub fleet: Fleet,
    /// What is on the node; `None`: it could not be, or need not be, looked at.
    pub on_node: Option<OnNode>,
    /// The node's coordinator.
    pub coordinator: CoordinatorSeen,
    /// Who heals; `None`: it could not be, or need not be, looked at.
    pub healer: Option<HealerSeen>,
}

/// What the API shows of the coordinator that should run on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoordinatorSeen {
    /// It could not be looked at.
    Unknown,
    /// There is no DaemonSet of coordinators in Dogwatch's namespace: none is installed there, or
    /// they run some other way.
    NoDaemonSet,
    /// There is a DaemonSet, and no pod of it on this node.
    NoPod,
    /// Its pod.
    Pod {
        /// `namespace/name`.
        name: String,
        /// Whether it is Ready.
        ready: bool,
        /// Its phase, or what its container waits for.
        state: String,
    },
}

impl Fleet {
    fn waiter(&self, node: &NodeSeen) -> Waiter {
        Waiter {
            holder: HolderId::node(&node.name),
            control_plane: policy::is_control_plane(&node.labels),
            zone: policy::zone(&self.policies, &node.labels),
            since: node.record.get().map(|record| record.since),
        }
    }

    /// What holds for this node. The coordinator's flags do not stand on the cluster: where no policy
    /// speaks, their defaults are taken.
    pub fn rule(&self, node: &NodeSeen) -> Rule<'_> {
        policy::rule(&self.policies, &node.labels, &Config::default())
    }

    /// The group of this node.
    pub fn group(&self, node: &NodeSeen) -> GroupName {
        policy::group(&self.policies, &node.labels)
    }

    /// The node of this name.
    pub fn node(&self, name: &NodeName) -> Option<&NodeSeen> {
        self.nodes.iter().find(|node| node.name == *name)
    }

    /// The slot that this node holds, in whatever group.
    pub(super) fn held_by(&self, node: &NodeName) -> Option<&LeaseRow> {
        let holder = HolderId::node(node);
        self.leases
            .iter()
            .find(|row| row.lease.holder.as_ref() == Some(&holder))
    }

    /// The slot that is held for this node through the lock API.
    pub(super) fn locked_by_api(&self, node: &NodeName) -> Option<&LeaseRow> {
        self.leases.iter().find(|row| {
            let holder = row.lease.holder.as_ref();
            let record = row.lease.record.as_ref();
            holder.is_some_and(|holder| !holder.is_node())
                && record.is_some_and(|record| record.node.as_ref() == Some(node))
        })
    }

    /// Who asks for this node at a lock API and was not answered yet.
    pub(super) fn asks_for(&self, node: &NodeName) -> Option<&WaitingHost> {
        let mut hosts = self.unanswered_hosts();
        hosts.find(|host| host.node.as_ref() == Some(node))
    }

    /// Everybody who asked at a lock API and was not answered yet. What the API tells of them may be older than
    /// a Lease that one of them holds by now; who drains holds one and waits.
    pub(super) fn unanswered_hosts(&self) -> impl Iterator<Item = &WaitingHost> {
        let holds = |host: &WaitingHost| {
            let mut leases = self.leases.iter();
            leases.any(|row| row.lease.holder.as_ref() == Some(&host.holder))
        };
        let hosts = self.waiting_hosts.iter();
        hosts.filter(move |host| host.reason == reason::DRAINING || !holds(host))
    }

    /// The group's slots, the lowest first.
    pub(super) fn slots(&self, group: &GroupName) -> Vec<&LeaseRow> {
        let mut slots: Vec<&LeaseRow> = self
            .leases
            .iter()
            .filter(|row| row.group == *group)
            .collect();
        slots.sort_by_key(|row| row.lease.slot);
        slots
    }

    /// The Node that this Lease is held for, if its holder is a node.
    pub fn holder(&self, lease: &LeaseSeen) -> Option<Result<&NodeSeen, NodeName>> {
        let name = lock::holder_node_name(lease)?;
        Some(self.node(&name).ok_or(name))
    }

    /// Who waits for the group's lock, in the order in which a leaver calls them.
    pub(super) fn queue(&self, group: &GroupName) -> Vec<Queued<'_>> {
        let waiting: BTreeMap<HolderId, &NodeSeen> = self
            .nodes
            .iter()
            .filter(|node| in_queue(node) && self.group(node) == *group)
            .map(|node| (HolderId::node(&node.name), node))
            .collect();
        let hosts = self.hosts.iter().filter(|(of, _)| of == group);
        let hosts = hosts.map(|(_, waiter)| waiter.clone());
        let nodes = waiting.values().map(|node| self.waiter(node));
        let waiters: Vec<Waiter> = nodes.chain(hosts).collect();
        // The hint leaves its writer out; nobody here is one.
        let nobody = HolderId::new("explain").expect("seven bytes");
        lock::hint(&waiters, &nobody, None, waiters.len())
            .into_iter()
            .map(|holder| Queued {
                node: waiting.get(&holder).copied(),
                holder,
            })
            .collect()
    }

    /// The place of each waiting node in its group's queue, from 1.
    pub(super) fn places(&self) -> BTreeMap<&NodeName, usize> {
        let groups: BTreeSet<GroupName> = self.nodes.iter().map(|node| self.group(node)).collect();
        let queues = groups.iter().map(|group| self.queue(group));
        queues
            .flat_map(|queue| queue.into_iter().zip(1..))
            .filter_map(|(queued, place)| Some((&queued.node?.name, place)))
            .collect()
    }
}

/// Waiting for the lock, and not pausing after a failure.
pub(super) fn in_queue(node: &NodeSeen) -> bool {
    node.record
        .get()
        .is_some_and(|record| record.phase == Phase::Waiting && record.retry_after.is_none())
}

/// A condition of this type that is `True`.
pub(super) fn is_true<'a>(node: &'a NodeSeen, kind: &str) -> Option<&'a Condition> {
    node.conditions
        .iter()
        .find(|condition| condition.kind == kind && condition.status == "True")
}

/// What the node's own decision says: the reason and message of its leading condition.
///
/// The record is written before the conditions. Until the phase's own condition is there, an earlier phase's
/// would pair this phase with a reason that is past.
pub fn said(node: &NodeSeen) -> Option<&Condition> {
    let Some(record) = node.record.get() else {
        return LEADING.iter().find_map(|kind| is_true(node, kind));
    };
    let kind = match record.phase {
        Phase::Waiting => "MaintenancePlanned",
        Phase::Draining => "DrainInProgress",
        Phase::Rebooting | Phase::Returning => "MaintenanceInProgress",
    };
    is_true(node, kind)
}

/// The condition's sentence, for a reader who sees the holder of the lock beside it.
pub(super) fn message_of(condition: &Condition) -> &str {
    if condition.message == WAITS_FOR_LOCK {
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
            .queue(&GroupName::default_group())
            .iter()
            .filter_map(|queued| Some(queued.node?.name.as_str()))
            .collect();
        assert_eq!(names, ["early", "late", "tie"]);
    }

    #[test]
    fn hosts_at_a_lock_api_have_their_place_among_the_nodes() {
        let mut fleet = fleet(vec![waiting("late", 50), waiting("early", 10)], vec![]);
        let host = |name: &str, second| Waiter {
            holder: HolderId::new(format!("api/{name}")).unwrap(),
            control_plane: false,
            zone: None,
            since: jiff::Timestamp::from_second(second).ok(),
        };
        let elsewhere = GroupName::new("other").unwrap();
        fleet.hosts = vec![
            (GroupName::default_group(), host("h", 30)),
            (elsewhere, host("x", 1)),
        ];
        let queue = fleet.queue(&GroupName::default_group());
        let names: Vec<String> = queue.iter().map(Queued::name).collect();
        assert_eq!(names, ["early", "api/h", "late"]);
        let late = NodeName::new("late").unwrap();
        assert_eq!(fleet.places().get(&late), Some(&3));
    }

    #[test]
    fn who_pauses_after_a_failure_is_not_in_the_queue() {
        let mut paused = waiting("paused", 10);
        if let crate::reboot::Parsed::Is(record) = &mut paused.record {
            record.retry_after = jiff::Timestamp::from_second(99).ok();
        }
        assert!(
            fleet(vec![paused], vec![])
                .queue(&GroupName::default_group())
                .is_empty()
        );
    }

    #[test]
    fn a_condition_of_the_phase_before_says_nothing_about_this_one() {
        let mut begun = waiting("n1", 10);
        assert_eq!(said(&begun).unwrap().reason, "LockHeldByOther");
        for phase in [Phase::Draining, Phase::Rebooting, Phase::Returning] {
            if let crate::reboot::Parsed::Is(record) = &mut begun.record {
                record.phase = phase;
            }
            assert_eq!(said(&begun), None, "{phase:?}");
        }
    }

    #[test]
    fn a_lease_is_found_by_its_holder() {
        let fleet = fleet(vec![node("n1")], vec![held(0, "n1", 5)]);
        let n1 = NodeName::new("n1").unwrap();
        assert_eq!(fleet.held_by(&n1).unwrap().lease.name, "dogwatch-default-0");
        assert!(fleet.held_by(&NodeName::new("n2").unwrap()).is_none());
    }

    #[test]
    fn a_holder_whose_node_is_not_there_is_named() {
        let fleet = fleet(vec![], vec![held(0, "gone", 5)]);
        let row = &fleet.leases[0];
        assert_eq!(
            fleet.holder(&row.lease),
            Some(Err(NodeName::new("gone").unwrap()))
        );
    }
}
