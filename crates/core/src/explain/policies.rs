//! One line for each policy.

use jiff::Timestamp;
use serde::Serialize;

use super::budget::is_ignored;
use super::fleet::Fleet;
use super::policy::gate_in_words;
use crate::Now;
use crate::condition::Status as Truth;
use crate::name::GroupName;
use crate::policy::window::{Opening, describe, opening};
use crate::policy::{self, Policy, PolicyStatus};
use crate::reboot::reason;

/// One policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRow {
    /// Its name, which is also that of its group.
    pub name: String,
    /// Of several that match a node the highest rules.
    pub priority: i32,
    /// How many nodes it rules.
    pub nodes: u32,
    /// Those of them that no count takes in (label `dogwatch.dev/ignore`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// How many of them may be out, as it says; absent where the coordinator's flags rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<String>,
    /// Who is out, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<String>,
    /// Who waits, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Why it is paused; absent where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Until when; absent where it does not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// Whether one of its windows is open; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRow>,
    /// What keeps those that wait, in one word, where no release of a lock will help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Policies that rule nodes which this one matches too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_to: Vec<String>,
    /// What it wants to be so before a reboot begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

/// How its windows stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowRow {
    /// Whether one is open.
    pub open: bool,
    /// When that changes; absent where it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// All of them, as people say them.
    pub windows: Vec<String>,
}

/// A row for each policy, the one that rules first on top.
pub(super) fn policies(fleet: &Fleet, now: Now) -> Vec<PolicyRow> {
    let policies = fleet.policies.known();
    let statuses = policy::status(policies, &fleet.nodes, &fleet.remedies);
    let row = |(policy, status)| {
        let mut row: PolicyRow = row(policy, status, policies, now);
        row.waiting.extend(at_lock_api(fleet, policy));
        row
    };
    let mut rows: Vec<PolicyRow> = policies.iter().zip(&statuses).map(row).collect();
    for node in fleet.nodes.iter().filter(|node| is_ignored(node)) {
        let name = fleet
            .rule(node)
            .policy
            .map(|policy| policy.name.to_string());
        let ruling = rows.iter_mut().find(|row| Some(&row.name) == name.as_ref());
        if let Some(row) = ruling {
            row.ignored.push(node.name.to_string());
        }
    }
    rows.sort_by(|a, b| (b.priority, &a.name).cmp(&(a.priority, &b.name)));
    rows
}

/// Who waits for a lock of the policy's group over HTTP.
fn at_lock_api(fleet: &Fleet, policy: &Policy) -> Vec<String> {
    let hosts = fleet.unanswered_hosts().filter(|host| {
        let group = host.group.as_ref().map(GroupName::as_str);
        group == Some(policy.name.as_str()) && host.reason != reason::DRAINING
    });
    hosts.map(|host| host.holder.to_string()).collect()
}

fn row(policy: &Policy, status: &PolicyStatus, all: &[Policy], now: Now) -> PolicyRow {
    let pause = policy.paused.as_ref();
    let pause = pause.filter(|pause| pause.until.is_none_or(|until| until > now.wall));
    let (reason, message) = why(status).unzip();
    PolicyRow {
        name: policy.name.to_string(),
        priority: policy.priority,
        nodes: status.nodes,
        ignored: Vec::new(),
        max_unavailable: policy.max_unavailable.map(|max| max.to_string()),
        out: status.out.iter().map(|out| out.node.to_string()).collect(),
        waiting: status
            .waiting
            .iter()
            .map(|waiting| waiting.node.to_string())
            .collect(),
        paused: pause.map(|pause| pause.reason.clone()),
        paused_until: pause.and_then(|pause| pause.until),
        window: window(policy, now),
        reason,
        message,
        lost_to: status
            .conflicts
            .iter()
            .filter_map(|lost| all.get(lost.to))
            .map(|policy| policy.name.to_string())
            .collect(),
        gates: policy.gates.iter().map(gate_in_words).collect(),
    }
}

/// That it cannot be followed goes before what its nodes wait for.
fn why(status: &PolicyStatus) -> Option<(String, String)> {
    let [accepted, _, blocked] = &status.conditions;
    let said = |condition: &crate::condition::Observation| {
        (condition.reason.clone(), condition.message.clone())
    };
    if accepted.status == Truth::False {
        return Some(said(accepted));
    }
    (blocked.status == Truth::True).then(|| said(blocked))
}

fn window(policy: &Policy, now: Now) -> Option<WindowRow> {
    if policy.windows.is_empty() {
        return None;
    }
    let opening = opening(&policy.windows, now.wall, std::time::Duration::ZERO);
    let (open, until) = match opening {
        Opening::Open { until } => (true, Some(until)),
        Opening::TooShort { opens, .. } | Opening::Shut { opens } => (false, opens),
    };
    Some(WindowRow {
        open,
        until,
        windows: policy.windows.iter().map(describe).collect(),
    })
}
