//! Whose lock: a Node may be moved to another group while it holds, and its Lease stays where it
//! is. Source: specification §2.2.

use super::Context;
use super::seen::{NodeFact, NodeSeen, Seen};
use crate::lock;
use crate::name::GroupName;
use crate::policy;

/// The group whose Leases concern this node now: that of the Lease it holds, or may hold, else its
/// own. `None` while the Node was not seen.
pub fn lock_group(seen: &Seen) -> Option<GroupName> {
    match &seen.node {
        NodeFact::There(node) => {
            let own = || policy::group(&seen.policies, &node.labels);
            Some(held_group(seen, node).unwrap_or_else(own))
        }
        NodeFact::NotYet | NodeFact::Gone => None,
    }
}

/// The group of a slot's Lease, by its name `dogwatch-GROUP-SLOT`. A remediation's Lease is none, though
/// its node's name may end in a number.
pub fn group_of_lease(name: &str) -> Option<GroupName> {
    let (group, slot) = name.strip_prefix("dogwatch-")?.rsplit_once('-')?;
    let number = lock::slot_number(slot).is_some();
    let remedy = group == "remedy" || group.starts_with("remedy-");
    GroupName::new(group).ok().filter(|_| number && !remedy)
}

pub(super) fn group(ctx: &Context<'_>) -> GroupName {
    held_group(ctx.seen, ctx.node).unwrap_or_else(|| ctx.rule.group.clone())
}

/// The group of the Lease that this node holds, or may hold.
fn held_group(seen: &Seen, node: &NodeSeen) -> Option<GroupName> {
    let held = seen
        .lock
        .leases
        .as_deref()
        .and_then(|leases| lock::held_by(leases, &seen.run.holder));
    let record = node.record.get().and_then(|record| record.lease.as_deref());
    record
        .or(held.map(|lease| lease.name.as_str()))
        .or(seen.lock.unsettled.as_deref())
        .and_then(group_of_lease)
}
