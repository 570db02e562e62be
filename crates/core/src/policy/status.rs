//! Computes the status of each policy: which nodes it rules, which are unavailable, and which wait
//! and why.
//!
//! The reason why a node waits is copied from the node's condition, never computed again. Serves
//! S7. Source: specification §2.6.

use std::collections::BTreeMap;

use dogwatch_api::reboot_policy::condition::HALTED;
use jiff::Timestamp;

use super::effective_policy::{losing_policies, ruling_policy};
use super::reason::PolicyReason;
use super::rollout::{PolicyRolloutState, describe_halt};
use super::types::Policy;
use crate::condition::{ConditionStatus, DesiredCondition};
use crate::lock::{HeldLockLease, HolderId};
use crate::name::NodeName;
use crate::reboot::{
    HeldBackBy, ObservedNode, RebootPhase, RebootReason, RebootRecord, find_waiting_condition,
};

#[derive(Debug, Clone, PartialEq)]
pub struct PolicyStatus {
    pub nodes: u32,
    /// How many of its nodes are Ready and schedulable.
    pub ready: u32,
    /// How many of its nodes wait because of this policy and not only because of the lock.
    pub blocked: u32,
    /// Nodes that Dogwatch has taken out of service, the longest first.
    pub out: Vec<OutOfServiceNode>,
    /// Waiting nodes, the longest first.
    pub waiting: Vec<QueuedNode>,
    /// The policies that apply to nodes which this one matches too, those with most nodes first.
    pub conflicts: Vec<PolicyConflict>,
    /// Why the policy's nodes are stuck: the reason of the node that has been stuck longest.
    /// Waiting for a window, the end of a pause or `minInterval` does not count.
    pub stuck: Option<String>,
    /// How far the policy's rollout is; `None`: it has no `rollout`.
    pub rollout: Option<PolicyRolloutState>,
    /// `Accepted`, `Progressing` and `Blocked`; with a rollout also `Halted`.
    pub conditions: Vec<DesiredCondition>,
}

impl PolicyStatus {
    /// The status with this state of the rollout, and its condition.
    #[must_use]
    pub fn with_rollout(mut self, policy: &Policy, state: Option<PolicyRolloutState>) -> Self {
        if let Some(state) = &state {
            self.conditions.push(halted_condition(policy, state));
        }
        self.rollout = state;
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfServiceNode {
    pub node: NodeName,
    /// `draining`, `rebooting` or `returning`; `locked` through the lock API; `remediation` while
    /// its machine is being remediated, whether or not its Node exists.
    pub phase: &'static str,
    /// By the node's clock.
    pub since: Option<Timestamp>,
    /// The reason of its trigger.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedNode {
    pub node: NodeName,
    /// By the node's clock.
    pub since: Timestamp,
    /// One CamelCase word.
    pub reason: String,
    pub message: String,
}

impl QueuedNode {
    fn held_back_by(&self) -> HeldBackBy {
        RebootReason::parse(&self.reason).map_or(HeldBackBy::Nothing, RebootReason::held_back_by)
    }
}

/// Nodes that this policy matches and another policy rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyConflict {
    /// Index of the other policy.
    pub winner: usize,
    pub nodes: u32,
    /// One of the nodes; stays the same as long as it is one of them.
    pub example: NodeName,
}

/// The status of each policy, in their order. `remediations` are the Leases that are held for nodes
/// whose machines are being remediated.
pub fn policy_statuses<'a>(
    policies: &[Policy],
    nodes: impl IntoIterator<Item = &'a ObservedNode>,
    remediations: &[HeldLockLease],
) -> Vec<PolicyStatus> {
    let mut tallies: Vec<PolicyTally> = policies.iter().map(|_| PolicyTally::default()).collect();
    let remediations: BTreeMap<HolderId, HeldLockLease> = remediations
        .iter()
        .map(|held| held.clone().without_vanished_group(policies))
        .map(|held| (held.effective_holder(), held))
        .collect();
    for node in nodes {
        let remediation = remediations.get(&HolderId::for_node(&node.name));
        let Some(ruler) = ruling_policy(policies, &node.labels) else {
            continue;
        };
        let place = policy_index(policies, ruler);
        for loser in losing_policies(policies, &node.labels) {
            tallies[self::policy_index(policies, loser)].record_conflict(place, &node.name);
        }
        tallies[place].count_node(node, remediation);
    }
    for (policy, tally) in policies.iter().zip(&mut tallies) {
        let held = remediations.values();
        let of_group = held.filter(|held| held.is_remediated_in_group(&policy.name));
        of_group.for_each(|held| tally.count_remediated(held));
    }
    let finished = policies.iter().zip(tallies);
    finished
        .map(|(policy, tally)| tally.into_status(policy))
        .collect()
}

fn policy_index(policies: &[Policy], policy: &Policy) -> usize {
    let same = |other: &Policy| std::ptr::eq(other, policy);
    policies
        .iter()
        .position(same)
        .expect("this node is one of them")
}

#[derive(Default)]
struct PolicyTally {
    nodes: u32,
    ready: u32,
    out: Vec<OutOfServiceNode>,
    waiting: Vec<QueuedNode>,
    lost: BTreeMap<usize, (u32, NodeName)>,
}

impl PolicyTally {
    fn count_node(&mut self, node: &ObservedNode, remediation: Option<&HeldLockLease>) {
        self.nodes += 1;
        self.ready += u32::from(node.ready && !node.unschedulable);
        if let Some(held) = remediation {
            return self.count_remediated(held);
        }
        match node.record.get() {
            Some(record) if record.phase == RebootPhase::Waiting && !node.api_lock => {
                self.waiting.push(queued_node(node, record));
            }
            Some(record) if record.phase != RebootPhase::Waiting => {
                self.out.push(out_by_record(node, record));
            }
            Some(_) | None if node.api_lock => self.out.push(out_by_api_lock(node)),
            Some(_) | None => {}
        }
    }

    fn count_remediated(&mut self, held: &HeldLockLease) {
        let known = |name: &NodeName| self.out.iter().any(|out| out.node == *name);
        let new = out_by_remediation(held).filter(|out| !known(&out.node));
        self.out.extend(new);
    }

    fn record_conflict(&mut self, to: usize, node: &NodeName) {
        let (nodes, example) = self.lost.entry(to).or_insert_with(|| (0, node.clone()));
        *nodes += 1;
        if node < example {
            *example = node.clone();
        }
    }

    fn into_status(mut self, policy: &Policy) -> PolicyStatus {
        self.out
            .sort_by(|a, b| (a.since, &a.node).cmp(&(b.since, &b.node)));
        self.waiting
            .sort_by(|a, b| (a.since, &a.node).cmp(&(b.since, &b.node)));
        let held = |waiting: &&QueuedNode| waiting.held_back_by().is_by_policy();
        let blocked = self.waiting.iter().filter(held).count();
        let conditions = vec![
            accepted_condition(policy),
            self.progressing_condition(),
            self.blocked_condition(),
        ];
        let stuck = self.stuck_reason();
        let lost = self.lost.into_iter();
        let mut conflicts: Vec<PolicyConflict> = lost
            .map(|(to, (nodes, example))| PolicyConflict {
                winner: to,
                nodes,
                example,
            })
            .collect();
        conflicts.sort_by_key(|lost| (std::cmp::Reverse(lost.nodes), lost.winner));
        PolicyStatus {
            nodes: self.nodes,
            ready: self.ready,
            blocked: u32::try_from(blocked).unwrap_or(u32::MAX),
            out: self.out,
            waiting: self.waiting,
            conflicts,
            stuck,
            rollout: None,
            conditions,
        }
    }

    fn progressing_condition(&self) -> DesiredCondition {
        let out = self.out.len();
        let (status, reason) = if out == 0 {
            (ConditionStatus::False, PolicyReason::Idle.as_str())
        } else {
            (ConditionStatus::True, PolicyReason::NodesOut.as_str())
        };
        policy_observation(
            "Progressing",
            status,
            reason,
            format!("{out} of {} unavailable", format_node_count(self.nodes)),
        )
    }

    /// Whether one of the waiting nodes may begin in its turn.
    fn may_any_begin(&self) -> bool {
        let is_held = |waiting: &QueuedNode| {
            let by = waiting.held_back_by();
            // While no node of the group is unavailable, no release of a lock will help.
            by.is_by_policy() || (self.out.is_empty() && by == HeldBackBy::Cluster)
        };
        !self.waiting.iter().all(is_held)
    }

    fn stuck_reason(&self) -> Option<String> {
        if self.may_any_begin() {
            return None;
        }
        let mut waiting = self.waiting.iter();
        let stuck = waiting.find(|waiting| !waiting.held_back_by().is_scheduled());
        stuck.map(|waiting| waiting.reason.clone())
    }

    /// Whether nodes wait and none of them may begin: because of the policy, or for another reason
    /// while no node of the group is unavailable, so that no release of a lock will help.
    fn blocked_condition(&self) -> DesiredCondition {
        let Some(longest) = self.waiting.first() else {
            return policy_observation(
                "Blocked",
                ConditionStatus::False,
                PolicyReason::Idle.as_str(),
                "no node waits".into(),
            );
        };
        let waiting = self.waiting.len();
        if self.may_any_begin() {
            let text = format!("{waiting} waiting, each for its turn");
            return policy_observation(
                "Blocked",
                ConditionStatus::False,
                PolicyReason::InTurn.as_str(),
                text,
            );
        }
        let text = format!(
            "{waiting} waiting, none may begin; {}: {}",
            longest.node, longest.message
        );
        policy_observation("Blocked", ConditionStatus::True, &longest.reason, text)
    }
}

fn accepted_condition(policy: &Policy) -> DesiredCondition {
    if policy.problems.is_empty() {
        return policy_observation(
            "Accepted",
            ConditionStatus::True,
            PolicyReason::Valid.as_str(),
            String::new(),
        );
    }
    let text = format!(
        "no reboot under this policy begins until the policy is corrected: {}",
        policy.problems.join("; ")
    );
    policy_observation(
        "Accepted",
        ConditionStatus::False,
        PolicyReason::Invalid.as_str(),
        text,
    )
}

fn halted_condition(policy: &Policy, state: &PolicyRolloutState) -> DesiredCondition {
    let (status, reason, text) = match &state.halted {
        Some(halt) => (
            ConditionStatus::True,
            PolicyReason::TooManyFailures,
            describe_halt(policy, halt),
        ),
        None => (
            ConditionStatus::False,
            PolicyReason::NotHalted,
            String::new(),
        ),
    };
    policy_observation(HALTED, status, reason.as_str(), text)
}

fn policy_observation(
    kind: &'static str,
    status: ConditionStatus,
    reason: &str,
    message: String,
) -> DesiredCondition {
    DesiredCondition {
        kind,
        status,
        reason: reason.to_owned(),
        message,
        heartbeat: false,
        shows_reason: false,
    }
}

fn format_node_count(count: u32) -> String {
    if count == 1 {
        return "1 node".to_owned();
    }
    format!("{count} nodes")
}

fn out_by_record(node: &ObservedNode, record: &RebootRecord) -> OutOfServiceNode {
    OutOfServiceNode {
        node: node.name.clone(),
        phase: record.phase.as_str(),
        since: Some(record.since),
        reason: record.trigger.reason.clone(),
    }
}

fn out_by_api_lock(node: &ObservedNode) -> OutOfServiceNode {
    OutOfServiceNode {
        node: node.name.clone(),
        phase: "locked",
        since: None,
        reason: "taken out of service by the lock API".to_owned(),
    }
}

fn out_by_remediation(held: &HeldLockLease) -> Option<OutOfServiceNode> {
    Some(OutOfServiceNode {
        node: held.node.clone()?,
        phase: "remediation",
        since: held.remediation.as_ref()?.since,
        reason: format!(
            "its machine is being remediated; the remediation holds Lease {}",
            held.lease
        ),
    })
}

fn queued_node(node: &ObservedNode, record: &RebootRecord) -> QueuedNode {
    let (reason, message) = match find_waiting_condition(node) {
        Some(condition) => (condition.reason.clone(), condition.message.clone()),
        None => (
            RebootReason::RebootPlanned.to_string(),
            record.message.clone(),
        ),
    };
    QueuedNode {
        node: node.name.clone(),
        since: record.since,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests;
