//! The group of the lock that concerns a node. A Node may be moved to another group while it holds
//! a Lease, and the Lease stays in the old group. Source: specification §2.2.

use super::RebootContext;
use super::snapshot::{ObservedNode, OwnNodeState, RebootSnapshot};
use crate::lock;
use crate::name::GroupName;
use crate::policy;

/// The group of the Lease that this node holds or may hold, else the Node's own group. `None` while
/// the Node has not been seen.
pub fn lock_group(seen: &RebootSnapshot) -> Option<GroupName> {
    match &seen.node {
        OwnNodeState::There(node) => {
            let own = || policy::group_of_labels(&seen.policies, &node.labels);
            Some(held_group(seen, node).unwrap_or_else(own))
        }
        OwnNodeState::NotYet | OwnNodeState::Gone => None,
    }
}

/// The group of a slot's Lease, from its name `dogwatch-GROUP-SLOT`. `None` for a remediation's
/// Lease, even if its node's name ends in a number.
pub fn group_of_lease(name: &str) -> Option<GroupName> {
    let (group, slot) = name.strip_prefix("dogwatch-")?.rsplit_once('-')?;
    let number = lock::parse_slot_number(slot).is_some();
    let remedy = group == "remedy" || group.starts_with("remedy-");
    GroupName::new(group).ok().filter(|_| number && !remedy)
}

pub(super) fn current_group(ctx: &RebootContext<'_>) -> GroupName {
    held_group(ctx.seen, ctx.node).unwrap_or_else(|| ctx.rule.group.clone())
}

fn held_group(seen: &RebootSnapshot, node: &ObservedNode) -> Option<GroupName> {
    let held = seen
        .lock
        .leases
        .as_deref()
        .and_then(|leases| lock::find_held_lease(leases, &seen.run.holder));
    let record = node.record.get().and_then(|record| record.lease.as_deref());
    record
        .or(held.map(|lease| lease.name.as_str()))
        .or(seen.lock.unsettled_bid.as_deref())
        .and_then(group_of_lease)
}
