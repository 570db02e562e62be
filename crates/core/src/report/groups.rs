//! The groups and their budgets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{GroupView, OpenWindowSpan, TakenSlot};
use crate::Now;
use crate::explain::{BudgetLine, FleetSnapshot};
use crate::name::GroupName;
use crate::policy::Policy;
use crate::policy::window::list_open_spans;
use crate::reboot::{ObservedNode, RebootPhase};

/// How far back windows are listed.
const WINDOWS_BEFORE: Duration = Duration::from_hours(2 * 24);
/// How far ahead windows are listed.
const WINDOWS_AFTER: Duration = Duration::from_hours(7 * 24);

/// The nodes of each group. A group without nodes is here while a Lease of it is held.
pub(super) struct GroupMembers<'a>(BTreeMap<GroupName, Vec<&'a ObservedNode>>);

impl<'a> GroupMembers<'a> {
    pub(super) fn of_fleet(fleet: &'a FleetSnapshot) -> Self {
        let mut groups: BTreeMap<GroupName, Vec<&ObservedNode>> = BTreeMap::new();
        for node in fleet.iter_nodes() {
            groups
                .entry(fleet.group_of_node(node))
                .or_default()
                .push(node);
        }
        let held = fleet.leases.iter().filter(|row| row.lease.holder.is_some());
        for row in held {
            groups.entry(row.group.clone()).or_default();
        }
        Self(groups)
    }
}

/// By name.
pub(super) fn group_views(
    fleet: &FleetSnapshot,
    members: &GroupMembers<'_>,
    now: Now,
) -> Vec<GroupView> {
    let groups = members.0.iter();
    groups
        .map(|(name, members)| group_view(fleet, name, members, now))
        .collect()
}

fn group_view(
    fleet: &FleetSnapshot,
    name: &GroupName,
    members: &[&ObservedNode],
    now: Now,
) -> GroupView {
    let budget = fleet.budget_of_group(name, members);
    let policy = match members.first() {
        Some(member) => fleet.rule_of_node(member).policy,
        None => find_policy(fleet, name),
    };
    let phases = || members.iter().filter_map(|node| node.record.get());
    let waiting = phases().filter(|record| record.phase == RebootPhase::Waiting);
    let waiting = waiting.count();
    GroupView {
        name: name.to_string(),
        members: budget.members,
        allowed: budget.max,
        used: budget.out.len(),
        out: phases().count() - waiting,
        waiting,
        taken_by_others: taken_by_others(fleet, &budget, members),
        allowed_source: budget.max_source,
        paused: policy.and_then(|policy| pause_reason(policy, now)),
        windows: policy.map_or_else(Vec::new, |policy| window_spans(policy, now)),
    }
}

fn find_policy<'a>(fleet: &'a FleetSnapshot, name: &GroupName) -> Option<&'a Policy> {
    let mut policies = fleet.policies.known_policies().iter();
    policies.find(|policy| policy.name == *name)
}

fn pause_reason(policy: &Policy, now: Now) -> Option<String> {
    Some(policy.active_pause(now.wall)?.reason.clone())
}

/// Unavailable members that no reboot of Dogwatch has taken out of service.
fn taken_by_others(
    fleet: &FleetSnapshot,
    budget: &BudgetLine,
    members: &[&ObservedNode],
) -> Vec<TakenSlot> {
    let ours = members.iter().filter(|node| is_ours(fleet, node));
    let ours: BTreeSet<&str> = ours.map(|node| node.name.as_str()).collect();
    let others = budget.out.iter();
    others
        .filter(|out| !ours.contains(out.name.as_str()))
        .map(|out| TakenSlot {
            node: out.name.clone(),
            why: out.why.clone(),
        })
        .collect()
}

/// Whether a reboot of Dogwatch has begun on the node: it is out, or has just won the lock.
fn is_ours(fleet: &FleetSnapshot, node: &ObservedNode) -> bool {
    let has_won = || {
        let in_service = node.ready && !node.unschedulable;
        in_service && fleet.lease_held_by(&node.name).is_some()
    };
    let record = node.record.get();
    record.is_some_and(|record| record.phase != RebootPhase::Waiting || has_won())
}

fn window_spans(policy: &Policy, now: Now) -> Vec<OpenWindowSpan> {
    let before = jiff::SignedDuration::try_from(WINDOWS_BEFORE).expect("two days");
    let from = now.wall.checked_sub(before).unwrap_or(Timestamp::MIN);
    let spans = list_open_spans(&policy.windows, from, now.wall_after(WINDOWS_AFTER));
    let spans = spans.into_iter();
    spans
        .map(|(from, until)| OpenWindowSpan { from, until })
        .collect()
}
