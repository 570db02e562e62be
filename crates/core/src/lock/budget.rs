//! Who is out, and whether one more may go. Serves S1.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::{Budget, Count, HolderId, LeaseSeen, Unavailable};
use crate::name::{GroupName, NodeName};
use crate::policy::{self, Policy};

/// How soon to count again while a higher slot is expected to give back.
pub const RECOUNT_PAUSE: Duration = Duration::from_millis(500);
/// How long a lower slot waits for a higher one to give back before it gives back itself. Its
/// holder may have cordoned and uncordoned already (it waits at its return gates), and then never
/// gives back in time.
pub const WAIT_FOR_HIGHER_SLOT: Duration = Duration::from_secs(5);

/// One member of the group, as a fresh read shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a Node's own yes-or-no facts"
)]
pub struct NodeRow {
    /// Its name.
    pub name: NodeName,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Label `dogwatch.dev/ignore=true`: it counts for nothing.
    pub ignored: bool,
    /// It is of the control plane, whatever its group.
    pub control_plane: bool,
}

/// One held Lease of Dogwatch's, of whatever group or kind, as a fresh read shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSeen {
    /// Its name.
    pub lease: String,
    /// Its version.
    pub resource_version: String,
    /// The slot's number, if it is one of the counted group's slots.
    pub slot: Option<u32>,
    /// Who holds it.
    pub holder: HolderId,
    /// The Node it is held for, from the record, the holder's name or the Lease's.
    pub node: Option<NodeName>,
    /// The holder's maximum; `None` if the record cannot be read.
    pub max: Option<u32>,
    /// What a remediation's Lease says of its node; `None`: it is no remediation's.
    pub remediation: Option<RemediationHeld>,
}

/// What counts of a node whose machine is being remediated, also while its Node is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationHeld {
    /// The group that the node belonged to when its Lease was taken. `None`: that cannot be read, or the
    /// record is of an older version. It counts in every group then.
    pub group: Option<GroupName>,
    /// It is a control-plane node, or may be one: no other control-plane node goes beside it.
    pub control_plane: bool,
    /// Since when its Lease is held, by the remediator's clock. For people.
    pub since: Option<Timestamp>,
}

impl HeldSeen {
    /// Whom it keeps out, as the identity of its Node where it has one.
    pub fn subject(&self) -> HolderId {
        self.node
            .as_ref()
            .map_or_else(|| self.holder.clone(), HolderId::node)
    }

    /// Whether it is the Lease of a control-plane node's remediation.
    pub fn fences_control_plane(&self) -> bool {
        let remediation = self.remediation.as_ref();
        remediation.is_some_and(|remediation| remediation.control_plane)
    }

    /// Whether its node is out of this group even if it is no member, or no Node at all: whoever holds
    /// one of the group's slots, and a remediation.
    fn counts_in(&self, group: &GroupName) -> bool {
        self.slot.is_some() || self.is_remediated_in(group)
    }

    /// Whether it is a remediation's whose node belonged to this group, or may have: it is out of it from
    /// the taking of the Lease to its freeing, whether or not its Node exists. Source: specification §2.2.
    pub fn is_remediated_in(&self, group: &GroupName) -> bool {
        let remediation = self.remediation.as_ref();
        remediation.is_some_and(|it| it.group.as_ref().is_none_or(|of| of == group))
    }

    /// The same, but counted in every group if no policy makes the recorded one any more: its nodes are in
    /// others now, and a deleted Node cannot tell in which.
    #[must_use]
    pub fn without_vanished_group(mut self, policies: &[Policy]) -> Self {
        if let Some(remediation) = &mut self.remediation {
            let group = &mut remediation.group;
            group.take_if(|group| !policy::has_group(policies, group));
        }
        self
    }

    /// The name to show.
    fn shown(&self) -> String {
        match (&self.node, &self.remediation) {
            (Some(node), _) => node.to_string(),
            (None, Some(_)) => self.lease.clone(),
            (None, None) => self.holder.to_string(),
        }
    }
}

/// What one count is made from: reads that were all sent after our Lease was won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// Our Lease's name.
    pub lease: String,
    /// The group that is counted.
    pub group: GroupName,
    /// Every member of the group, ourselves and ignored ones among them.
    pub nodes: Vec<NodeRow>,
    /// Every held Lease of Dogwatch's in its namespace.
    pub held: Vec<HeldSeen>,
}

/// Whether the winner of a Lease may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Go,
    /// It gives the Lease back.
    GiveBack {
        /// Who is out and how many may be, in words.
        why: String,
    },
    /// Over budget, but a higher slot that has not cordoned yet gives back first: count again
    /// after [`RECOUNT_PAUSE`].
    WaitForHigherSlot {
        /// Who is out and how many may be, in words.
        why: String,
    },
    /// The count is of another win (or the Lease is not ours any more): count again.
    StaleCount,
}

/// Counts who else of the group is out: not Ready, unschedulable, or named by any held Lease. Who
/// holds a slot of this group counts even if it is no member (a host, or a Node that was moved
/// since), and so does a node of the group whose machine is being remediated, though its Node was
/// deleted for that. Each once. Ignored ones not. For a control-plane node the remediation of another one
/// leaves no room, whatever their groups and labels and however many may be out.
pub fn count(reads: &Reads, me: &HolderId) -> Count {
    count_for(reads, me, None)
}

/// The same for a holder that has another name than its own Node: that one is no other member,
/// nor is whoever else holds for it.
pub fn count_for(reads: &Reads, me: &HolderId, node: Option<&NodeName>) -> Count {
    let own = reads
        .held
        .iter()
        .find(|held| held.lease == reads.lease && held.holder == *me);
    let others = Others::of(reads, me, node);
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
    for (name, held) in others.holding(reads) {
        out.entry(name)
            .or_default()
            .push(format!("holds {}", held.lease));
    }
    let fenced = others.fenced_beside_us(reads);
    for held in &fenced {
        let known = out.entry(held.shown()).or_default();
        let why = format!("holds {}", held.lease);
        if !known.contains(&why) {
            known.push(why);
        }
    }
    let in_group = || {
        reads
            .held
            .iter()
            .filter(|held| !others.is_us(held) && held.slot.is_some())
    };
    Count {
        for_resource_version: own
            .map(|own| own.resource_version.clone())
            .unwrap_or_default(),
        unavailable: out
            .into_iter()
            .map(|(name, why)| Unavailable {
                name,
                why: why.join(", "),
            })
            .collect(),
        members: u32::try_from(reads.nodes.iter().filter(|row| !row.ignored).count())
            .unwrap_or(u32::MAX),
        maxima: in_group()
            .map(|held| held.max.unwrap_or(1))
            .chain(fenced.iter().map(|_| 1))
            .collect(),
        higher_slot_undecided: in_group()
            .filter(|held| held.slot > own.and_then(|own| own.slot))
            .any(|held| others.member(held).is_some_and(|row| !row.unschedulable)),
    }
}

/// Whether the holder of `lease` may go ahead.
///
/// The smallest maximum among bidder and holders rules, so that a change of configuration under
/// way is safe. `held_for` is how long this process has seen the Lease as its own, by its own
/// monotonic clock: so long it has waited for a higher slot.
pub fn verdict(budget: Budget, count: &Count, lease: &LeaseSeen, held_for: Duration) -> Verdict {
    if count.for_resource_version != lease.resource_version {
        return Verdict::StaleCount;
    }
    let max = count
        .maxima
        .iter()
        .copied()
        .fold(budget.max, u32::min)
        .max(1);
    let room = usize::try_from(max).unwrap_or(usize::MAX);
    if count.unavailable.len() < room {
        return Verdict::Go;
    }
    let why = over_budget(&count.unavailable, max);
    if count.higher_slot_undecided && held_for < WAIT_FOR_HIGHER_SLOT {
        return Verdict::WaitForHigherSlot { why };
    }
    Verdict::GiveBack { why }
}

/// The most names that a message lists.
const NAMED: usize = 5;

fn over_budget(unavailable: &[Unavailable], max: u32) -> String {
    let mut names: Vec<String> = unavailable
        .iter()
        .take(NAMED)
        .map(|node| format!("{} ({})", node.name, node.why))
        .collect();
    if unavailable.len() > NAMED {
        names.push(format!("and {} more", unavailable.len() - NAMED));
    }
    format!(
        "{} of the group out already, at most {max} may be: {}",
        unavailable.len(),
        names.join(", ")
    )
}

/// The other members, by the identity that each would hold a Lease as: a hashed holder is found
/// that way even where its record cannot be read.
struct Others<'a> {
    us: Vec<HolderId>,
    members: BTreeMap<HolderId, &'a NodeRow>,
    ignored: BTreeSet<HolderId>,
}

impl<'a> Others<'a> {
    fn of(reads: &'a Reads, me: &HolderId, node: Option<&NodeName>) -> Self {
        let us: Vec<HolderId> = [me.clone()]
            .into_iter()
            .chain(node.map(HolderId::node))
            .collect();
        let rows = || {
            reads
                .nodes
                .iter()
                .map(|row| (HolderId::node(&row.name), row))
        };
        Self {
            members: rows()
                .filter(|(id, row)| !row.ignored && !us.contains(id))
                .collect(),
            ignored: rows()
                .filter(|(_, row)| row.ignored)
                .map(|(id, _)| id)
                .collect(),
            us,
        }
    }

    /// Whether the Lease is ours, or of another holder that stands for our own Node.
    fn is_us(&self, held: &HeldSeen) -> bool {
        self.us.contains(&held.holder) || self.us.contains(&held.subject())
    }

    fn member(&self, held: &HeldSeen) -> Option<&'a NodeRow> {
        self.members.get(&held.subject()).copied()
    }

    /// Remediations of control-plane nodes, if we are one: they and we exclude each other.
    /// Source: specification §2.2. The remediator reads the slots after it took its Lease, as we read
    /// its Lease after we took ours: whoever came last sees the other.
    fn fenced_beside_us<'b>(&self, reads: &'b Reads) -> Vec<&'b HeldSeen> {
        let us = |row: &&NodeRow| self.us.contains(&HolderId::node(&row.name));
        let control_plane = reads.nodes.iter().find(us);
        if !control_plane.is_some_and(|row| row.control_plane) {
            return Vec::new();
        }
        let held = reads.held.iter();
        held.filter(|held| held.fences_control_plane() && !self.is_us(held))
            .collect()
    }

    /// Held Leases that keep somebody else out, with the name to show.
    fn holding<'b>(&'b self, reads: &'b Reads) -> impl Iterator<Item = (String, &'b HeldSeen)> {
        reads.held.iter().filter_map(|held| {
            let subject = held.subject();
            if self.is_us(held) || self.ignored.contains(&subject) {
                return None;
            }
            match self.member(held) {
                Some(row) => Some((row.name.to_string(), held)),
                None => held.counts_in(&reads.group).then(|| (held.shown(), held)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
