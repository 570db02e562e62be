//! The Lease `dogwatch-remedy-NODE`. Source: specification §2.2.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lock::{HeldSeen, HolderId};
use crate::name::{GroupName, NodeName};

/// Annotation `dogwatch.dev/holder` on a remediation's Lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemedyRecord {
    /// The Node that is being remedied: the Lease's own name may be a hash.
    pub node: NodeName,
    /// Whose remediation it is: `machine/NS/NAME`, `request/NS/NAME` or `node/NAME`.
    pub subject: String,
    /// It is a control-plane node.
    pub control_plane: bool,
    /// The group that the node belonged to when the Lease was taken: its budget counts this node until
    /// the Lease is freed, also while its Node is deleted. `None` in records of an older version, and
    /// where the Node or the policies could not be seen: every group counts it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// Since when it is held, by the remediator's clock. For people.
    pub since: Timestamp,
    /// A control-plane node's: after the Lease was taken, no other control-plane node was out on
    /// Dogwatch's account. Once that is so it stays so, for whoever comes later gives way to this Lease.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// Who keeps a control-plane node's remediation from beginning: another control-plane node that holds
/// a slot of whatever group, whoever else holds one of the control plane's own, and another
/// control-plane node's remediation. `held` are all held Leases, counted for the group of the control
/// plane, `control_plane` its nodes; both were read after our own Lease was taken.
///
/// Why at most one goes ahead: the remediator writes its Lease and then reads the slots; a coordinator
/// writes its slot and then reads the remediations (its count). Each read is a quorum read that was sent
/// after the write was answered. So of two whose writes were both done, the later one sees the other's
/// and gives way; where both reads came after both writes, both give way, and holding nothing neither
/// keeps the other waiting.
pub fn control_plane_taken(
    held: &[HeldSeen],
    control_plane: &BTreeSet<NodeName>,
    me: &NodeName,
) -> Option<String> {
    let members: BTreeSet<HolderId> = control_plane.iter().map(HolderId::node).collect();
    let me = HolderId::node(me);
    let mut others = held.iter().filter(|held| held.subject() != me);
    let in_the_way = others.find(|held| {
        held.slot.is_some() || held.fences_control_plane() || members.contains(&held.subject())
    })?;
    let by = in_the_way.node.as_ref().map(ToString::to_string);
    let by = by.unwrap_or_else(|| in_the_way.holder.to_string());
    Some(format!("{by} holds Lease {}", in_the_way.lease))
}
