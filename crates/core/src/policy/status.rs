//! What a policy can tell of itself: whom it rules, who is out, who waits and why.
//!
//! Why a node waits is never worked out anew here: it is what the node's own decision wrote as its
//! condition. Serves S7. Source: specification §2.6.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::rule::{conflicts, ruling};
use super::types::Policy;
use crate::condition::{Observation, Status};
use crate::lock::{HeldSeen, HolderId};
use crate::name::NodeName;
use crate::reboot::{NodeSeen, Phase, Record, is_scheduled, reason};

/// The condition on a Node that says what its reboot waits for.
const MAINTENANCE_PLANNED: &str = "MaintenancePlanned";

/// What a waiting node's own reason says of the policy's part in it.
const HELD_BY_POLICY: [&str; 8] = [
    reason::PAUSED,
    reason::OUTSIDE_WINDOW,
    reason::WINDOW_TOO_SHORT,
    reason::TOO_SOON,
    reason::GATE_SHUT,
    reason::POLICY_INVALID,
    reason::POLICIES_UNREADABLE,
    reason::LOOKING_AT_POLICIES,
];

/// What holds a node back although nobody of its group is out on our account.
const HELD_OTHERWISE: [&str; 5] = [
    reason::OVER_BUDGET,
    reason::BACKING_OFF,
    reason::TROUBLE,
    reason::LOCKED_THROUGH_API,
    reason::BEING_FENCED,
];

/// What one policy tells of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyStatus {
    /// How many nodes it rules.
    pub nodes: u32,
    /// How many of them are Ready and schedulable.
    pub ready: u32,
    /// How many of them wait, held back by this policy and not only by the lock.
    pub blocked: u32,
    /// Who is out of service on Dogwatch's account, the longest first.
    pub out: Vec<Out>,
    /// Who waits, the longest first.
    pub waiting: Vec<Waiting>,
    /// To whom it lost nodes that it matches too, the most first.
    pub conflicts: Vec<Lost>,
    /// Why the policy's nodes are stuck, by the one that has waited longest for it. A wait for a window, the
    /// end of a pause or `minInterval` is none of it.
    pub stuck: Option<String>,
    /// `Accepted`, `Progressing` and `Blocked`.
    pub conditions: [Observation; 3],
}

/// A node that is out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Out {
    /// Its name.
    pub node: NodeName,
    /// `draining`, `rebooting` or `returning`; `locked` through the lock API; `remediation` while its
    /// machine is being remediated, whether or not its Node exists.
    pub phase: &'static str,
    /// Since when, by the node's clock.
    pub since: Option<Timestamp>,
    /// Why it was to be rebooted.
    pub reason: String,
}

/// A node that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its name.
    pub node: NodeName,
    /// Since when, by the node's clock.
    pub since: Timestamp,
    /// For what, in one word.
    pub reason: String,
    /// For what, in a sentence.
    pub message: String,
}

/// Nodes that another policy rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Its place among the policies.
    pub to: usize,
    /// How many nodes.
    pub nodes: u32,
    /// One of them, always the same while it is one.
    pub example: NodeName,
}

/// What each of the policies can tell, in their order. `remediations` are the Leases that are held for
/// nodes whose machines are being remediated.
pub fn status<'a>(
    policies: &[Policy],
    nodes: impl IntoIterator<Item = &'a NodeSeen>,
    remediations: &[HeldSeen],
) -> Vec<PolicyStatus> {
    let mut tallies: Vec<Tally> = policies.iter().map(|_| Tally::default()).collect();
    let remediations: BTreeMap<HolderId, HeldSeen> = remediations
        .iter()
        .map(|held| held.clone().without_vanished_group(policies))
        .map(|held| (held.subject(), held))
        .collect();
    for node in nodes {
        let remediation = remediations.get(&HolderId::node(&node.name));
        let Some(ruler) = ruling(policies, &node.labels) else {
            continue;
        };
        let place = place(policies, ruler);
        for loser in conflicts(policies, &node.labels) {
            tallies[self::place(policies, loser)].lose(place, &node.name);
        }
        tallies[place].take(node, remediation);
    }
    for (policy, tally) in policies.iter().zip(&mut tallies) {
        let held = remediations.values();
        let of_group = held.filter(|held| held.is_remediated_in(&policy.name));
        of_group.for_each(|held| tally.take_remediated(held));
    }
    let finished = policies.iter().zip(tallies);
    finished
        .map(|(policy, tally)| tally.finish(policy))
        .collect()
}

fn place(policies: &[Policy], policy: &Policy) -> usize {
    let same = |other: &Policy| std::ptr::eq(other, policy);
    policies.iter().position(same).expect("it is one of them")
}

#[derive(Default)]
struct Tally {
    nodes: u32,
    ready: u32,
    out: Vec<Out>,
    waiting: Vec<Waiting>,
    lost: BTreeMap<usize, (u32, NodeName)>,
}

impl Tally {
    fn take(&mut self, node: &NodeSeen, remediation: Option<&HeldSeen>) {
        self.nodes += 1;
        self.ready += u32::from(node.ready && !node.unschedulable);
        if let Some(held) = remediation {
            return self.take_remediated(held);
        }
        match node.record.get() {
            Some(record) if record.phase == Phase::Waiting && !node.api_lock => {
                self.waiting.push(waiting(node, record));
            }
            Some(record) if record.phase != Phase::Waiting => self.out.push(out(node, record)),
            Some(_) | None if node.api_lock => self.out.push(locked(node)),
            Some(_) | None => {}
        }
    }

    fn take_remediated(&mut self, held: &HeldSeen) {
        let known = |name: &NodeName| self.out.iter().any(|out| out.node == *name);
        let new = remediated(held).filter(|out| !known(&out.node));
        self.out.extend(new);
    }

    fn lose(&mut self, to: usize, node: &NodeName) {
        let (nodes, example) = self.lost.entry(to).or_insert_with(|| (0, node.clone()));
        *nodes += 1;
        if node < example {
            *example = node.clone();
        }
    }

    fn finish(mut self, policy: &Policy) -> PolicyStatus {
        self.out
            .sort_by(|a, b| (a.since, &a.node).cmp(&(b.since, &b.node)));
        self.waiting
            .sort_by(|a, b| (a.since, &a.node).cmp(&(b.since, &b.node)));
        let held = |waiting: &&Waiting| HELD_BY_POLICY.contains(&waiting.reason.as_str());
        let blocked = self.waiting.iter().filter(held).count();
        let conditions = [accepted(policy), self.progressing(), self.blocked()];
        let stuck = self.stuck();
        let lost = self.lost.into_iter();
        let mut conflicts: Vec<Lost> = lost
            .map(|(to, (nodes, example))| Lost { to, nodes, example })
            .collect();
        conflicts.sort_by_key(|lost| (std::cmp::Reverse(lost.nodes), lost.to));
        PolicyStatus {
            nodes: self.nodes,
            ready: self.ready,
            blocked: u32::try_from(blocked).unwrap_or(u32::MAX),
            out: self.out,
            waiting: self.waiting,
            conflicts,
            stuck,
            conditions,
        }
    }

    fn progressing(&self) -> Observation {
        let out = self.out.len();
        let (status, reason) = if out == 0 {
            (Status::False, "Idle")
        } else {
            (Status::True, "NodesOut")
        };
        observation(
            "Progressing",
            status,
            reason,
            format!("{out} of {} out", nodes(self.nodes)),
        )
    }

    /// Whether one of those that wait may go in its turn.
    fn may_go(&self) -> bool {
        let is_held = |waiting: &Waiting| {
            let reason = waiting.reason.as_str();
            HELD_BY_POLICY.contains(&reason)
                || (self.out.is_empty() && HELD_OTHERWISE.contains(&reason))
        };
        !self.waiting.iter().all(is_held)
    }

    fn stuck(&self) -> Option<String> {
        if self.may_go() {
            return None;
        }
        let mut reasons = self.waiting.iter().map(|waiting| &waiting.reason);
        reasons.find(|reason| !is_scheduled(reason)).cloned()
    }

    /// Nodes wait, and none of them may go: held by the policy, whoever is out; or by something
    /// else while nobody of theirs is out, so that no release of a lock will help.
    fn blocked(&self) -> Observation {
        let Some(longest) = self.waiting.first() else {
            return observation("Blocked", Status::False, "Idle", "nobody waits".into());
        };
        let waiting = self.waiting.len();
        if self.may_go() {
            let text = format!("{waiting} waiting, each for its turn");
            return observation("Blocked", Status::False, "InTurn", text);
        }
        let text = format!(
            "{waiting} waiting, none may go; {}: {}",
            longest.node, longest.message
        );
        observation("Blocked", Status::True, &longest.reason, text)
    }
}

fn accepted(policy: &Policy) -> Observation {
    if policy.problems.is_empty() {
        return observation("Accepted", Status::True, "Valid", String::new());
    }
    let text = format!(
        "nothing that it governs begins until this is mended: {}",
        policy.problems.join("; ")
    );
    observation("Accepted", Status::False, "Invalid", text)
}

fn observation(kind: &'static str, status: Status, reason: &str, message: String) -> Observation {
    Observation {
        kind,
        status,
        reason: reason.to_owned(),
        message,
        heartbeat: false,
    }
}

fn nodes(count: u32) -> String {
    if count == 1 {
        return "1 node".to_owned();
    }
    format!("{count} nodes")
}

fn out(node: &NodeSeen, record: &Record) -> Out {
    Out {
        node: node.name.clone(),
        phase: record.phase.as_str(),
        since: Some(record.since),
        reason: record.trigger.reason.clone(),
    }
}

fn locked(node: &NodeSeen) -> Out {
    Out {
        node: node.name.clone(),
        phase: "locked",
        since: None,
        reason: "taken out of service through the lock API".to_owned(),
    }
}

fn remediated(held: &HeldSeen) -> Option<Out> {
    Some(Out {
        node: held.node.clone()?,
        phase: "remediation",
        since: held.remediation.as_ref()?.since,
        reason: format!(
            "its machine is being remediated; Lease {} is held",
            held.lease
        ),
    })
}

fn waiting(node: &NodeSeen, record: &Record) -> Waiting {
    let planned = node
        .conditions
        .iter()
        .find(|condition| condition.kind == MAINTENANCE_PLANNED && condition.status == "True");
    let (reason, message) = match planned {
        Some(condition) => (condition.reason.clone(), condition.message.clone()),
        None => (reason::PLANNED.to_owned(), record.message.clone()),
    };
    Waiting {
        node: node.name.clone(),
        since: record.since,
        reason,
        message,
    }
}

#[cfg(test)]
mod tests;
