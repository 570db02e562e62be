//! The status rows of policies.

use jiff::Timestamp;
use serde::Serialize;

use super::budget::is_ignored;
use super::fleet::FleetSnapshot;
use super::policy::describe_gate;
use crate::Now;
use crate::condition::ConditionStatus as Truth;
use crate::name::GroupName;
use crate::policy::rollout::describe_rollout;
use crate::policy::window::{WindowOpening, describe_window, window_opening};
use crate::policy::{self, Policy, PolicyStatus};
use crate::reboot::RebootReason;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRow {
    /// The policy's name, which is also its group's.
    pub name: String,
    /// The matching policy with the highest priority applies to a node.
    pub priority: i32,
    /// The number of nodes to which the policy applies.
    pub nodes: u32,
    /// Those of its nodes that have label `dogwatch.dev/ignore` and are not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// How many of its nodes may be unavailable; absent if the coordinator's flags decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<String>,
    /// The shape of the rollout and how far it is; absent if the policy has no `rollout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<String>,
    /// Unavailable nodes, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<String>,
    /// Waiting nodes and hosts, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// Reason of the pause; absent if the policy is not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// End of the pause; absent if it does not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// Absent if the policy has no windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRow>,
    /// Why the waiting nodes wait, in one CamelCase word, if no release of a lock would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Policies of higher precedence that apply to nodes which this one matches too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_to: Vec<String>,
    /// The policy's gates, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowRow {
    /// Whether a window is open.
    pub open: bool,
    /// When that changes; absent if it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// All windows, in words.
    pub windows: Vec<String>,
}

/// Sorted by precedence, the highest first.
pub(super) fn policy_rows(fleet: &FleetSnapshot, now: Now) -> Vec<PolicyRow> {
    let policies = fleet.policies.known_policies();
    let statuses = policy::policy_statuses(policies, fleet.iter_nodes(), &fleet.remediation_leases);
    let row = |(policy, status)| {
        let mut row: PolicyRow = policy_row(policy, status, policies, now);
        row.waiting.extend(waiting_at_lock_api(fleet, policy));
        row
    };
    let mut rows: Vec<PolicyRow> = policies.iter().zip(&statuses).map(row).collect();
    for node in fleet.iter_nodes().filter(|node| is_ignored(node)) {
        let name = fleet
            .rule_of_node(node)
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

/// The hosts that wait at a lock API for a lock of the policy's group.
fn waiting_at_lock_api(fleet: &FleetSnapshot, policy: &Policy) -> Vec<String> {
    let hosts = fleet.unanswered_hosts().filter(|host| {
        let group = host.group.as_ref().map(GroupName::as_str);
        group == Some(policy.name.as_str())
            && RebootReason::parse(&host.reason) != Some(RebootReason::Draining)
    });
    hosts.map(|host| host.holder.to_string()).collect()
}

/// The policy's own limit; the coordinators' flags, which apply where it names no percentage or
/// number, are not on the cluster.
fn describe_limit(policy: &Policy) -> Option<String> {
    let nodes = policy.max_unavailable_nodes;
    match policy.max_unavailable {
        Some(max) => Some(max.capped_at(nodes).to_string()),
        None => nodes.map(|nodes| format!("at most {nodes}")),
    }
}

fn policy_row(policy: &Policy, status: &PolicyStatus, all: &[Policy], now: Now) -> PolicyRow {
    let pause = policy.active_pause(now.wall);
    let (reason, message) = policy_reason(status).unzip();
    PolicyRow {
        name: policy.name.to_string(),
        priority: policy.priority,
        nodes: status.nodes,
        ignored: Vec::new(),
        max_unavailable: describe_limit(policy),
        rollout: describe_rollout(&policy.rollout),
        out: status.out.iter().map(|out| out.node.to_string()).collect(),
        waiting: status
            .waiting
            .iter()
            .map(|waiting| waiting.node.to_string())
            .collect(),
        paused: pause.map(|pause| pause.reason.clone()),
        paused_until: pause.and_then(|pause| pause.until),
        window: window_row(policy, now),
        reason,
        message,
        lost_to: status
            .conflicts
            .iter()
            .filter_map(|lost| all.get(lost.winner))
            .map(|policy| policy.name.to_string())
            .collect(),
        gates: policy.gates.iter().map(describe_gate).collect(),
    }
}

/// An invalid policy is reported before the reason for which its nodes wait.
fn policy_reason(status: &PolicyStatus) -> Option<(String, String)> {
    let [accepted, _, blocked, ..] = status.conditions.as_slice() else {
        return None;
    };
    let said = |condition: &crate::condition::DesiredCondition| {
        (condition.reason.clone(), condition.message.clone())
    };
    if accepted.status == Truth::False {
        return Some(said(accepted));
    }
    (blocked.status == Truth::True).then(|| said(blocked))
}

fn window_row(policy: &Policy, now: Now) -> Option<WindowRow> {
    if policy.windows.is_empty() {
        return None;
    }
    let opening = window_opening(&policy.windows, now.wall, std::time::Duration::ZERO);
    let (open, until) = match opening {
        WindowOpening::Open { until } => (true, Some(until)),
        WindowOpening::TooShort { opens, .. } | WindowOpening::Shut { opens } => (false, opens),
    };
    Some(WindowRow {
        open,
        until,
        windows: policy.windows.iter().map(describe_window).collect(),
    })
}
