//! Counts unavailable members, and decides whether one more may go. Serves S1.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{GroupBudget, HolderId, ObservedLease, UnavailableCount, UnavailableMember};
use crate::name::{GroupName, NodeName};
use crate::policy::{self, Policy};

/// How long a count may be relied on after its arrival: a node that fails or is cordoned since then
/// has no Lease that would show it.
pub const COUNT_VALIDITY: Duration = Duration::from_secs(10);
/// The pause before a new count while a higher slot is expected to give back.
pub const RECOUNT_PAUSE: Duration = Duration::from_millis(500);
/// How long a lower slot waits for a higher one to give back before it gives back itself. The
/// higher slot's holder may have cordoned and uncordoned already (it waits at its return gates),
/// and then never gives back in time.
pub const WAIT_FOR_HIGHER_SLOT: Duration = Duration::from_secs(5);

/// One member of the group, from a fresh read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a Node's own yes-or-no facts"
)]
pub struct GroupMember {
    pub name: NodeName,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Label `dogwatch.dev/ignore=true`: the member counts for nothing.
    pub ignored: bool,
    /// Whether it is a control-plane node, whatever its group.
    pub control_plane: bool,
}

/// One held Lease of Dogwatch, of any group and kind, from a fresh read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLockLease {
    pub lease: String,
    pub resource_version: String,
    /// The slot's number, if the Lease is one of the counted group's slots.
    pub slot: Option<u32>,
    pub holder: HolderId,
    /// The Node that the Lease is held for: from the record, the holder's name or the Lease's name.
    pub node: Option<NodeName>,
    /// The holder's maximum; `None` if the record cannot be read.
    pub max: Option<u32>,
    /// What the Lease of a remediation says about its node; `None`: not a remediation's Lease.
    pub remediation: Option<RemediationHold>,
}

/// A node whose machine is being remediated; it counts even while its Node is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationHold {
    /// The group of the node when its Lease was taken. `None`: unreadable, or a record of an older
    /// version; then it counts in every group.
    pub group: Option<GroupName>,
    /// It is a control-plane node, or may be one: no other control-plane node goes beside it.
    pub control_plane: bool,
    /// Since when its Lease is held, by the remediator's clock. For people.
    pub since: Option<Timestamp>,
}

impl HeldLockLease {
    /// The identity of the Lease's Node; without a Node, the holder.
    pub fn effective_holder(&self) -> HolderId {
        HolderId::of_node_or(self.node.as_ref(), &self.holder)
    }

    /// Whether it is the Lease of a control-plane node's remediation.
    pub fn is_control_plane_remediation(&self) -> bool {
        let remediation = self.remediation.as_ref();
        remediation.is_some_and(|remediation| remediation.control_plane)
    }

    /// Whether its node counts as unavailable in this group even if it is no member, or no Node at
    /// all: true for holders of the group's slots, and for remediations.
    fn counts_in_group(&self, group: &GroupName) -> bool {
        self.slot.is_some() || self.is_remediated_in_group(group)
    }

    /// Whether it is a remediation whose node belonged to this group, or may have: the node is
    /// unavailable from the taking of the Lease to its freeing, whether or not its Node exists.
    /// Source: specification §2.2.
    pub fn is_remediated_in_group(&self, group: &GroupName) -> bool {
        let remediation = self.remediation.as_ref();
        remediation.is_some_and(|it| it.group.as_ref().is_none_or(|of| of == group))
    }

    /// Makes a remediation count in every group if no policy forms its recorded group any more:
    /// that group's nodes are in other groups now, and a deleted Node cannot tell in which.
    #[must_use]
    pub fn without_vanished_group(mut self, policies: &[Policy]) -> Self {
        if let Some(remediation) = &mut self.remediation {
            let group = &mut remediation.group;
            group.take_if(|group| !policy::has_group(policies, group));
        }
        self
    }

    /// The name for messages.
    fn display_name(&self) -> String {
        match (&self.node, &self.remediation) {
            (Some(node), _) => node.to_string(),
            (None, Some(_)) => self.lease.clone(),
            (None, None) => self.holder.to_string(),
        }
    }
}

/// The reads of one count, all sent after the Lease was won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetReads {
    /// The bidder's own Lease.
    pub lease: String,
    pub group: GroupName,
    /// All members of the group, including the bidder and ignored ones.
    pub nodes: Vec<GroupMember>,
    /// All held Leases of Dogwatch in its namespace.
    pub held: Vec<HeldLockLease>,
}

/// Whether the winner of a Lease may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetVerdict {
    Go,
    /// The winner gives the Lease back.
    YieldOverBudget {
        /// A sentence: who is unavailable, and how many may be.
        why: String,
    },
    /// Over budget, but a higher slot that has not cordoned yet gives back first: count again after
    /// [`RECOUNT_PAUSE`].
    WaitForHigherSlot {
        /// A sentence: who is unavailable, and how many may be.
        why: String,
    },
    /// The count belongs to another win (or the Lease is not held any more): count again.
    StaleCount,
}

/// Counts the other unavailable members of the group: not Ready, unschedulable, or named by any
/// held Lease. A holder of a slot of this group counts even if it is no member (a host, or a Node
/// that was moved since). So does a node of the group whose machine is being remediated, although
/// its Node was deleted for that. Each node counts once, ignored ones not at all. For a
/// control-plane node, the remediation of another one leaves no room, whatever their groups and
/// labels and the maximum.
pub fn count_unavailable(reads: &BudgetReads, me: &HolderId) -> UnavailableCount {
    count_unavailable_for_node(reads, me, None)
}

/// Like [`count_unavailable`], for a holder whose name differs from its Node's: the Node does not
/// count as another member, nor does any other holder that holds for it.
pub fn count_unavailable_for_node(
    reads: &BudgetReads,
    me: &HolderId,
    node: Option<&NodeName>,
) -> UnavailableCount {
    let own = reads
        .held
        .iter()
        .find(|held| held.lease == reads.lease && held.holder == *me);
    let others = OtherMembers::from_reads(reads, me, node);
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in others.members.values() {
        let reasons = [
            (!row.ready, "not ready"),
            (row.unschedulable, "unschedulable"),
        ];
        for (_, why) in reasons.into_iter().filter(|(holds, _)| *holds) {
            out.entry(row.name.to_string())
                .or_default()
                .push(why.into());
        }
    }
    for (name, held) in others.leases_of_others(&reads.group) {
        out.entry(name)
            .or_default()
            .push(format!("holds {}", held.lease));
    }
    let fenced = others.control_plane_remediations();
    for held in &fenced {
        let known = out.entry(held.display_name()).or_default();
        let why = format!("holds {}", held.lease);
        if !known.contains(&why) {
            known.push(why);
        }
    }
    let in_group = || {
        let others = others.leases.iter();
        others.filter(|counted| !counted.is_own && counted.held.slot.is_some())
    };
    UnavailableCount {
        for_resource_version: own
            .map(|own| own.resource_version.clone())
            .unwrap_or_default(),
        unavailable: out
            .into_iter()
            .map(|(name, why)| UnavailableMember {
                name,
                why: why.join(", "),
            })
            .collect(),
        members: u32::try_from(reads.nodes.iter().filter(|row| !row.ignored).count())
            .unwrap_or(u32::MAX),
        maxima: in_group()
            .map(|counted| counted.held.max.unwrap_or(1))
            .chain(fenced.iter().map(|_| 1))
            .collect(),
        higher_slot_undecided: in_group()
            .filter(|counted| counted.held.slot > own.and_then(|own| own.slot))
            .any(|counted| {
                let member = others.members.get(&counted.subject);
                member.is_some_and(|row| !row.unschedulable)
            }),
    }
}

/// Decides whether the holder of `lease` may go ahead.
///
/// The smallest maximum among bidder and holders applies, so that a configuration change under way
/// is safe. `held_for` is how long this process has held the Lease, by its own monotonic clock: for
/// that long it has waited for a higher slot.
pub fn decide_budget(
    budget: GroupBudget,
    count: &UnavailableCount,
    lease: &ObservedLease,
    held_for: Duration,
) -> BudgetVerdict {
    if count.for_resource_version != lease.resource_version {
        return BudgetVerdict::StaleCount;
    }
    let max = count
        .maxima
        .iter()
        .copied()
        .fold(budget.max, u32::min)
        .max(1);
    let room = usize::try_from(max).unwrap_or(usize::MAX);
    if count.unavailable.len() < room {
        return BudgetVerdict::Go;
    }
    let why = describe_over_budget(&count.unavailable, max);
    if count.higher_slot_undecided && held_for < WAIT_FOR_HIGHER_SLOT {
        return BudgetVerdict::WaitForHigherSlot { why };
    }
    BudgetVerdict::YieldOverBudget { why }
}

/// The most names that a message lists.
const MAX_LISTED_NAMES: usize = 5;

fn describe_over_budget(unavailable: &[UnavailableMember], max: u32) -> String {
    let mut names: Vec<String> = unavailable
        .iter()
        .take(MAX_LISTED_NAMES)
        .map(|node| format!("{} ({})", node.name, node.why))
        .collect();
    if unavailable.len() > MAX_LISTED_NAMES {
        names.push(format!("and {} more", unavailable.len() - MAX_LISTED_NAMES));
    }
    format!(
        "{} nodes of the group are unavailable and at most {max} may be: {}",
        unavailable.len(),
        names.join(", ")
    )
}

/// The other members, by the identity under which each would hold a Lease: a hashed holder is found
/// that way even if its record cannot be read. Each identity is made once: a large group's count
/// would otherwise spend most of its time on them.
struct OtherMembers<'a> {
    /// The bidder's own Node, if it is a member.
    own: Option<&'a GroupMember>,
    members: BTreeMap<HolderId, &'a GroupMember>,
    ignored: BTreeSet<HolderId>,
    leases: Vec<CountedLease<'a>>,
}

/// A held Lease, and whom it concerns.
struct CountedLease<'a> {
    held: &'a HeldLockLease,
    /// Its [`HeldLockLease::effective_holder`].
    subject: HolderId,
    /// Whether it is the bidder's own, or of another holder for the bidder's own Node.
    is_own: bool,
}

impl<'a> OtherMembers<'a> {
    fn from_reads(reads: &'a BudgetReads, me: &HolderId, node: Option<&NodeName>) -> Self {
        let own_node = node.map(HolderId::for_node);
        let is_us = |id: &HolderId| id == me || own_node.as_ref() == Some(id);
        let mut others = Self {
            own: None,
            members: BTreeMap::new(),
            ignored: BTreeSet::new(),
            leases: Vec::with_capacity(reads.held.len()),
        };
        for row in &reads.nodes {
            let id = HolderId::for_node(&row.name);
            let is_own = is_us(&id);
            if is_own {
                others.own.get_or_insert(row);
            }
            if row.ignored {
                others.ignored.insert(id);
            } else if !is_own {
                others.members.insert(id, row);
            }
        }
        for held in &reads.held {
            let subject = held.effective_holder();
            let is_own = is_us(&held.holder) || is_us(&subject);
            others.leases.push(CountedLease {
                held,
                subject,
                is_own,
            });
        }
        others
    }

    /// Remediations of control-plane nodes, if the bidder is one: they exclude each other. Source:
    /// specification §2.2. The remediator reads the slots after it took its Lease, and the bidder
    /// reads the remediator's Lease after it took its own: whoever came last sees the other.
    fn control_plane_remediations(&self) -> Vec<&'a HeldLockLease> {
        if !self.own.is_some_and(|row| row.control_plane) {
            return Vec::new();
        }
        let others = self.leases.iter().filter(|counted| !counted.is_own);
        let held = others.map(|counted| counted.held);
        held.filter(|held| held.is_control_plane_remediation())
            .collect()
    }

    /// Held Leases that make another member unavailable, with the name for messages.
    fn leases_of_others(
        &self,
        group: &GroupName,
    ) -> impl Iterator<Item = (String, &'a HeldLockLease)> {
        self.leases.iter().filter_map(|counted| {
            if counted.is_own || self.ignored.contains(&counted.subject) {
                return None;
            }
            let held = counted.held;
            match self.members.get(&counted.subject) {
                Some(row) => Some((row.name.to_string(), held)),
                None => held
                    .counts_in_group(group)
                    .then(|| (held.display_name(), held)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
