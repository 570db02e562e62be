//! A group of the real cluster, as the planner begins with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::Now;
use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::policy::{ClusterPolicies, Policy, PolicyGate};
use dogwatch_core::reboot::{
    LastReboot, ObservedNode, ParsedAnnotation, RebootConfig, RebootPhase, RebootReason,
};
use dogwatch_core::report::{FleetView, GroupView, OutNodeRow, PhaseBar};
use jiff::Timestamp;

use super::queue::{LiveWaiter, duration_until};

/// A remediation, or a lock that a host holds, is taken to last this long in all.
const ASSUMED_FOREIGN_HOLD: Duration = Duration::from_mins(10);

pub(super) struct LiveGroup {
    pub(super) name: String,
    /// The policies of the cluster; only the group's own is used.
    pub(super) policies: ClusterPolicies,
    pub(super) policy: Option<Policy>,
    pub(super) config: RebootConfig,
    pub(super) members: usize,
    /// Nodes that wait or are out, and those that the state of the rollout names.
    pub(super) nodes: Vec<ObservedNode>,
    pub(super) out: Vec<LiveReboot>,
    pub(super) waiting: Vec<LiveWaiter>,
    /// Members that are unavailable for another reason, each with the time at which it is taken to
    /// be back.
    pub(super) taken: BTreeMap<String, Option<Timestamp>>,
}

/// A reboot under way.
pub(super) struct LiveReboot {
    pub(super) node: usize,
    pub(super) phase: RebootPhase,
    pub(super) elapsed: Duration,
    /// Since when the node is out.
    pub(super) began: Timestamp,
    /// A hold, or a failure that waits for a person.
    pub(super) is_endless: bool,
}

impl LiveGroup {
    /// The groups in which somebody waits or is out.
    pub(super) fn list_groups(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> Vec<Self> {
        let busy = view.groups.iter();
        let busy = busy.filter(|group| group.out + group.waiting > 0);
        let mut nodes: BTreeMap<&str, Vec<&ObservedNode>> = busy
            .clone()
            .map(|group| (group.name.as_str(), Vec::new()))
            .collect();
        for node in fleet.iter_nodes() {
            let group = fleet.group_of_node(node);
            if let Some(members) = nodes.get_mut(group.as_str()) {
                members.push(node);
            }
        }
        busy.map(|group| Self::of_view(fleet, view, group, &nodes[group.name.as_str()], now))
            .collect()
    }

    fn of_view(
        fleet: &FleetSnapshot,
        view: &FleetView,
        group: &GroupView,
        members: &[&ObservedNode],
        now: Now,
    ) -> Self {
        let rule = members.first().map(|node| fleet.rule_of_node(node));
        let policy = rule.as_ref().and_then(|rule| rule.policy);
        let named = policy.map(named_in_rollout).unwrap_or_default();
        let is_busy = |node: &&&ObservedNode| {
            node.record.get().is_some() || named.contains(node.uid.as_str())
        };
        let nodes: Vec<&ObservedNode> = members.iter().filter(is_busy).copied().collect();
        let mut live = Self {
            name: group.name.clone(),
            policies: one_policy(fleet, policy),
            policy: policy.cloned(),
            config: rule
                .as_ref()
                .map(|rule| rule.config.clone())
                .unwrap_or_default(),
            members: usize::try_from(group.members).unwrap_or(usize::MAX),
            out: Vec::new(),
            waiting: Vec::new(),
            taken: taken_until(fleet, group, now),
            nodes: nodes.into_iter().map(slim_node).collect(),
        };
        live.add_out(view, now);
        live.add_waiting(fleet, view);
        live
    }

    fn add_out(&mut self, view: &FleetView, now: Now) {
        let out: BTreeMap<&str, &OutNodeRow> = view
            .out
            .iter()
            .map(|out| (out.name.as_str(), out))
            .collect();
        for (index, node) in self.nodes.iter().enumerate() {
            let (Some(record), Some(out)) = (node.record.get(), out.get(node.name.as_str())) else {
                continue;
            };
            self.out.push(LiveReboot {
                node: index,
                phase: record.phase,
                elapsed: now.elapsed_since(record.since),
                began: out
                    .bars
                    .iter()
                    .find(|bar| is_work(bar))
                    .map_or(record.since, |bar| bar.from),
                is_endless: record.trigger.method == RebootMethod::Hold || needs_person(out),
            });
        }
    }

    fn add_waiting(&mut self, fleet: &FleetSnapshot, view: &FleetView) {
        let stuck = self.find_stuck(view);
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(record) = node.record.get() else {
                continue;
            };
            if record.phase != RebootPhase::Waiting || stuck.contains(node.name.as_str()) {
                continue;
            }
            let interval = self.policy.as_ref().and_then(|policy| policy.min_interval);
            let last = node
                .last_reboot
                .get()
                .and_then(LastReboot::last_rebooted_at);
            let interval_ends = interval
                .zip(last)
                .and_then(|(least, last)| last.checked_add(least).ok());
            self.waiting.push(LiveWaiter {
                node: Some(index),
                waiter: fleet.waiter_of_node(node),
                ready_at: [interval_ends, record.retry_after]
                    .into_iter()
                    .flatten()
                    .max(),
                is_hold: record.trigger.method == RebootMethod::Hold,
            });
        }
        let hosts = fleet.lock_api_waiters.iter();
        let hosts = hosts.filter(|(group, _)| group.as_str() == self.name);
        self.waiting.extend(hosts.map(|(_, waiter)| LiveWaiter {
            node: None,
            waiter: waiter.clone(),
            ready_at: None,
            is_hold: false,
        }));
    }

    /// Nodes that do not begin as things stand: a gate is shut. A Prometheus gate answers for all
    /// nodes of the policy.
    fn find_stuck(&self, view: &FleetView) -> BTreeSet<String> {
        let here = view.waiting.iter().filter(|it| it.group == self.name);
        let is_shut =
            |reason: &Option<String>| reason.as_deref() == Some(RebootReason::GateShut.as_str());
        let shut: BTreeSet<String> = here
            .clone()
            .filter(|it| is_shut(&it.reason))
            .map(|it| it.name.clone())
            .collect();
        let mut gates = self.policy.iter().flat_map(|policy| &policy.gates);
        let is_common = gates.any(|gate| match gate {
            PolicyGate::Prometheus(_) => true,
            PolicyGate::Pods { .. } => false,
        });
        if !shut.is_empty() && is_common {
            return here.map(|it| it.name.clone()).collect();
        }
        shut
    }

    /// How many may be out at once, by the policy with this state of its rollout.
    pub(super) fn allowed_nodes(&self, policy: Option<&Policy>) -> usize {
        let control_plane = self.nodes.first().is_some_and(|node| {
            dogwatch_core::policy::is_control_plane(&node.labels)
                && self.name == dogwatch_core::name::GroupName::control_plane_group().as_str()
        });
        let flags = UnavailabilityLimit::default();
        let limit = match policy {
            Some(policy) if !control_plane => policy.limit_nodes_over(flags),
            Some(_) | None => self.config.max_unavailable,
        };
        let most = usize::try_from(dogwatch_core::lock::MAX_SLOTS).unwrap_or(usize::MAX);
        limit.allowed_nodes(self.members).min(most)
    }
}

/// UIDs of the nodes that the state of the policy's rollout names.
fn named_in_rollout(policy: &Policy) -> BTreeSet<&str> {
    let state = policy.rollout.state.iter();
    state
        .flat_map(|state| {
            let canaries = state.canaries.iter().map(|it| it.uid.as_str());
            let under_way = state.under_way.iter().map(|it| it.uid.as_str());
            let failed = state.failed.iter().map(|it| it.uid.as_str());
            canaries.chain(under_way).chain(failed)
        })
        .collect()
}

/// Only the policy of the group: a run changes its rollout's state.
fn one_policy(fleet: &FleetSnapshot, policy: Option<&Policy>) -> ClusterPolicies {
    match &fleet.policies {
        ClusterPolicies::Known(_) => ClusterPolicies::Known(policy.cloned().into_iter().collect()),
        ClusterPolicies::NotYetRead => ClusterPolicies::NotYetRead,
        ClusterPolicies::Unreadable { why } => ClusterPolicies::Unreadable { why: why.clone() },
    }
}

/// A copy without what no run reads.
fn slim_node(node: &ObservedNode) -> ObservedNode {
    let kept = dogwatch_api::condition::MAINTENANCE_IN_PROGRESS;
    let conditions = node.conditions.iter().filter(|it| it.kind == kept);
    ObservedNode {
        conditions: conditions.cloned().collect(),
        request: ParsedAnnotation::Absent,
        taint_keys: Vec::new(),
        extended_resources: Vec::new(),
        ..node.clone()
    }
}

fn is_work(bar: &PhaseBar) -> bool {
    bar.phase != RebootPhase::Waiting.as_str()
}

fn needs_person(out: &OutNodeRow) -> bool {
    let reason = out.reason.as_deref().and_then(RebootReason::parse);
    reason.is_some_and(RebootReason::needs_person)
}

/// The members that others have taken, each with the time at which it is taken to be back. A
/// remediation, and a host that holds a lock, end by themselves: they are taken to last ten
/// minutes, or as long again as they have lasted. A cordon, or a node that is not Ready, stays.
fn taken_until(
    fleet: &FleetSnapshot,
    group: &GroupView,
    now: Now,
) -> BTreeMap<String, Option<Timestamp>> {
    let mut since: BTreeMap<String, Timestamp> = BTreeMap::new();
    for held in &fleet.remediation_leases {
        let began = held.remediation.as_ref().and_then(|it| it.since);
        let name = held
            .node
            .as_ref()
            .map_or(held.lease.clone(), ToString::to_string);
        since.extend(began.map(|began| (name, began)));
    }
    for row in &fleet.leases {
        let Some(holder) = row.lease.holder.as_ref().filter(|holder| !holder.is_node()) else {
            continue;
        };
        let Some(record) = &row.lease.record else {
            continue;
        };
        let name = record
            .node
            .as_ref()
            .map_or(holder.to_string(), ToString::to_string);
        since.insert(name, record.since);
    }
    let taken = group.taken_by_others.iter();
    taken
        .map(|slot| {
            let ends = since.get(&slot.node).map(|began| {
                let lasted = now.elapsed_since(*began);
                let rest = ASSUMED_FOREIGN_HOLD.checked_sub(lasted);
                now.wall_after(rest.unwrap_or_default().max(lasted))
            });
            (slot.node.clone(), ends)
        })
        .collect()
}

/// How long until then, for people who measure from the start of a run.
pub(super) fn offset_of(at: Timestamp, start: Now) -> Duration {
    duration_until(at, start.wall)
}
