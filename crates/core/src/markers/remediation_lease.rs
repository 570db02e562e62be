//! The Lease `dogwatch-remedy-NODE`. Source: specification §2.2.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lock::{HeldLockLease, HolderId};
use crate::name::{GroupName, NodeName};

/// Annotation `dogwatch.dev/holder` on a remediation's Lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationLeaseRecord {
    /// The Node under remediation: the Lease's own name may be a hash.
    pub node: NodeName,
    /// What is remediated: `machine/NS/NAME`, `request/NS/NAME` or `node/NAME`.
    pub subject: String,
    pub control_plane: bool,
    /// The group of the node when the Lease was taken: its budget counts this node until the Lease
    /// is freed, also while its Node is deleted. `None` in records of an older version, and if the
    /// Node or the policies could not be read: then every group counts the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// When the Lease was taken, by the remediator's clock. For people only.
    pub since: Timestamp,
    /// For a control-plane node: after the Lease was taken, no other control-plane node was out of
    /// service because of Dogwatch. Once true this stays true, because all later ones give way to
    /// this Lease.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// Finds what keeps a control-plane node's remediation from beginning: another control-plane node
/// that holds a slot of any group, any other holder of a slot of the control plane's group, or
/// another control-plane node's remediation. `held` are all held Leases, counted for the control
/// plane's group; `control_plane` are its nodes. Both were read after our own Lease was taken.
///
/// Why at most one goes ahead: the remediator writes its Lease and then reads the slots; a
/// coordinator writes its slot and then reads the remediations (its count). Each read is a quorum
/// read that was sent after the write was answered. So if both wrote, the one that wrote later sees
/// the other's write and gives way. If both reads came after both writes, both give way: each frees
/// its Lease, so that neither keeps the other waiting. A node that is out of service already keeps
/// its Lease. If its host is held off, it does not wait at all: otherwise two of them would wait for
/// each other for ever, and waiting would keep no node in service.
pub fn find_control_plane_conflict(
    held: &[HeldLockLease],
    control_plane: &BTreeSet<NodeName>,
    me: &NodeName,
) -> Option<String> {
    let members: BTreeSet<HolderId> = control_plane.iter().map(HolderId::for_node).collect();
    let me = HolderId::for_node(me);
    let mut others = held.iter().filter(|held| held.effective_holder() != me);
    let in_the_way = others.find(|held| {
        held.slot.is_some()
            || held.is_control_plane_remediation()
            || members.contains(&held.effective_holder())
    })?;
    let by = in_the_way.node.as_ref().map(ToString::to_string);
    let by = by.unwrap_or_else(|| in_the_way.holder.to_string());
    Some(format!("{by} holds Lease {}", in_the_way.lease))
}
