//! Who is out, and whether one more may go. Serves S1.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Budget, Count, HolderId, LeaseSeen, Unavailable};
use crate::Now;
use crate::name::NodeName;

/// How soon to count again while a higher slot is expected to give back.
pub const RECOUNT_PAUSE: Duration = Duration::from_millis(500);
/// How long a lower slot waits for a higher one to give back before it gives back itself. Its
/// holder may have cordoned and uncordoned already (it waits at its return gates), and then never
/// gives back in time.
pub const WAIT_FOR_HIGHER_SLOT: Duration = Duration::from_secs(5);

/// One member of the group, as a fresh read shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub name: NodeName,
    /// Condition `Ready` is `True`.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Label `dogwatch.dev/ignore=true`: it counts for nothing.
    pub ignored: bool,
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
}

/// What one count is made from: reads that were all sent after our Lease was won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reads {
    /// Our Lease's name.
    pub lease: String,
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
/// since). Each once. Ignored ones not.
pub fn count(reads: &Reads, me: &HolderId) -> Count {
    let own = reads
        .held
        .iter()
        .find(|held| held.lease == reads.lease && held.holder == *me);
    let others = Others::of(reads, me);
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
    let in_group = || {
        reads
            .held
            .iter()
            .filter(|held| held.holder != *me && held.slot.is_some())
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
        maxima: in_group().map(|held| held.max.unwrap_or(1)).collect(),
        higher_slot_undecided: in_group()
            .filter(|held| held.slot > own.and_then(|own| own.slot))
            .any(|held| others.member(held).is_some_and(|row| !row.unschedulable)),
    }
}

/// Whether the holder of `lease` may go ahead.
///
/// The smallest maximum among bidder and holders rules, so that a change of configuration under
/// way is safe. How long it has waited for a higher slot is read from the record that it wrote
/// itself.
pub fn verdict(budget: Budget, count: &Count, lease: &LeaseSeen, now: Now) -> Verdict {
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
    let waited = lease
        .record
        .as_ref()
        .map_or(Duration::MAX, |record| now.since(record.since));
    if count.higher_slot_undecided && waited < WAIT_FOR_HIGHER_SLOT {
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
    me: &'a HolderId,
    members: BTreeMap<HolderId, &'a NodeRow>,
    ignored: BTreeSet<HolderId>,
}

impl<'a> Others<'a> {
    fn of(reads: &'a Reads, me: &'a HolderId) -> Self {
        let rows = || {
            reads
                .nodes
                .iter()
                .map(|row| (HolderId::node(&row.name), row))
        };
        Self {
            me,
            members: rows()
                .filter(|(id, row)| !row.ignored && id != me)
                .collect(),
            ignored: rows()
                .filter(|(_, row)| row.ignored)
                .map(|(id, _)| id)
                .collect(),
        }
    }

    /// Whom the Lease keeps out, as the identity of its Node where it has one.
    fn subject(held: &HeldSeen) -> HolderId {
        held.node
            .as_ref()
            .map_or_else(|| held.holder.clone(), HolderId::node)
    }

    fn member(&self, held: &HeldSeen) -> Option<&'a NodeRow> {
        self.members.get(&Self::subject(held)).copied()
    }

    /// Held Leases that keep somebody else out, with the name to show.
    fn holding<'b>(&'b self, reads: &'b Reads) -> impl Iterator<Item = (String, &'b HeldSeen)> {
        reads.held.iter().filter_map(|held| {
            let subject = Self::subject(held);
            if held.holder == *self.me || subject == *self.me || self.ignored.contains(&subject) {
                return None;
            }
            match self.member(held) {
                Some(row) => Some((row.name.to_string(), held)),
                None if held.slot.is_some() => {
                    let node = held.node.as_ref().map(ToString::to_string);
                    Some((node.unwrap_or_else(|| held.holder.to_string()), held))
                }
                None => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{held, node};
    use super::*;

    fn row(name: &str) -> NodeRow {
        NodeRow {
            name: NodeName::new(name).unwrap(),
            ready: true,
            unschedulable: false,
            ignored: false,
        }
    }

    fn slot(number: u32, name: &str) -> HeldSeen {
        HeldSeen {
            lease: format!("dogwatch-default-{number}"),
            resource_version: format!("rv-{name}"),
            slot: Some(number),
            holder: node(name),
            node: NodeName::new(name).ok(),
            max: Some(9),
        }
    }

    fn reads(nodes: Vec<NodeRow>, held: Vec<HeldSeen>) -> Reads {
        Reads {
            lease: "dogwatch-default-0".into(),
            nodes,
            held,
        }
    }

    fn counted(nodes: Vec<NodeRow>, held: Vec<HeldSeen>) -> Count {
        count(&reads(nodes, held), &node("me"))
    }

    fn names(count: &Count) -> Vec<String> {
        count
            .unavailable
            .iter()
            .map(|out| format!("{}: {}", out.name, out.why))
            .collect()
    }

    #[test]
    fn others_that_are_not_ready_or_unschedulable_or_hold_any_lease_are_out_each_once() {
        let nodes = vec![
            NodeRow {
                ready: false,
                unschedulable: true,
                ..row("me")
            },
            row("fine"),
            NodeRow {
                ready: false,
                ..row("a")
            },
            NodeRow {
                unschedulable: true,
                ..row("b")
            },
            row("c"),
            NodeRow {
                ready: false,
                unschedulable: true,
                ..row("d")
            },
            NodeRow {
                ready: false,
                ignored: true,
                ..row("e")
            },
            row("f"),
        ];
        let remedy = HeldSeen {
            lease: "dogwatch-remedy-f".into(),
            slot: None,
            holder: HolderId::new("remedy").unwrap(),
            ..slot(0, "f")
        };
        let count = counted(
            nodes,
            vec![slot(0, "me"), slot(1, "c"), slot(2, "d"), remedy],
        );
        assert_eq!(
            names(&count),
            [
                "a: not ready",
                "b: unschedulable",
                "c: holds dogwatch-default-1",
                "d: not ready, unschedulable, holds dogwatch-default-2",
                "f: holds dogwatch-remedy-f",
            ]
        );
        assert_eq!(count.members, 7, "the ignored one is no member");
        assert_eq!(count.for_resource_version, "rv-me");
    }

    #[test]
    fn whoever_holds_a_slot_of_the_group_counts_though_it_is_no_member() {
        let host = HeldSeen {
            holder: HolderId::new("api/host-7").unwrap(),
            node: None,
            ..slot(1, "unused")
        };
        let elsewhere = HeldSeen {
            slot: None,
            ..slot(7, "foreign")
        };
        let count = counted(
            vec![row("me")],
            vec![slot(0, "me"), host, slot(2, "moved"), elsewhere],
        );
        assert_eq!(
            names(&count),
            [
                "api/host-7: holds dogwatch-default-1",
                "moved: holds dogwatch-default-2"
            ]
        );
    }

    #[test]
    fn an_ignored_node_does_not_count_even_while_it_holds() {
        let nodes = vec![
            row("me"),
            NodeRow {
                ignored: true,
                ..row("a")
            },
        ];
        assert_eq!(
            names(&counted(nodes, vec![slot(0, "me"), slot(1, "a")])),
            [""; 0]
        );
    }

    #[test]
    fn a_hashed_holder_without_a_record_is_still_the_member_it_is() {
        let long = format!("n{}", "x".repeat(200));
        let unread = HeldSeen {
            node: None,
            max: None,
            ..slot(1, &long)
        };
        let count = counted(vec![row("me"), row(&long)], vec![slot(0, "me"), unread]);
        assert_eq!(names(&count), [format!("{long}: holds dogwatch-default-1")]);
        assert_eq!(count.maxima, [1], "and its maximum is the safest");
    }

    fn at(second: u64) -> Now {
        let wall = jiff::Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
        Now {
            wall,
            mono: Duration::from_secs(second),
        }
    }

    /// Our Lease, as won at second 0.
    fn won(slot: u32) -> LeaseSeen {
        LeaseSeen {
            resource_version: "rv-me".into(),
            ..held(slot, "me", &[])
        }
    }

    fn judged(max: u32, count: &Count, second: u64) -> Verdict {
        verdict(Budget { max }, count, &won(0), at(second))
    }

    #[test]
    fn a_count_for_another_win_proves_nothing() {
        let mine = counted(vec![row("me")], vec![slot(0, "me")]);
        assert_eq!(judged(1, &mine, 0), Verdict::Go);
        let later = LeaseSeen {
            resource_version: "later".into(),
            ..won(0)
        };
        assert_eq!(
            verdict(Budget { max: 1 }, &mine, &later, at(0)),
            Verdict::StaleCount
        );
        let lost = counted(vec![row("me")], vec![slot(0, "other")]);
        assert_eq!(judged(9, &lost, 0), Verdict::StaleCount);
        let other_slot = counted(vec![row("me")], vec![slot(1, "me")]);
        assert_eq!(judged(9, &other_slot, 0), Verdict::StaleCount);
    }

    #[test]
    fn the_smallest_maximum_among_bidder_and_holders_rules() {
        let nodes = || vec![row("me"), row("a"), row("b")];
        let held = |max| {
            vec![
                slot(0, "me"),
                HeldSeen {
                    max: Some(max),
                    ..slot(1, "a")
                },
            ]
        };
        let cordoned = |mut nodes: Vec<NodeRow>| {
            nodes[1].unschedulable = true;
            nodes
        };
        for (mine, theirs, goes) in [(2, 2, true), (1, 2, false), (2, 1, false), (2, 0, false)] {
            let count = counted(cordoned(nodes()), held(theirs));
            let verdict = judged(mine, &count, 0);
            assert_eq!(verdict == Verdict::Go, goes, "{mine} {theirs}: {verdict:?}");
        }
    }

    #[test]
    fn over_budget_the_highest_slot_that_has_not_cordoned_gives_back() {
        let nodes = || vec![row("me"), row("a"), row("b")];
        let of = |nodes, held| judged(1, &counted(nodes, held), 0);
        let waits = of(nodes(), vec![slot(0, "me"), slot(1, "a")]);
        assert!(
            matches!(waits, Verdict::WaitForHigherSlot { .. }),
            "{waits:?}"
        );
        let mut decided = nodes();
        decided[1].unschedulable = true;
        let gives_back = of(decided, vec![slot(0, "me"), slot(1, "a")]);
        assert_eq!(
            gives_back,
            Verdict::GiveBack {
                why: "1 of the group out already, at most 1 may be: a (unschedulable, holds dogwatch-default-1)".into()
            }
        );
        let own = Reads {
            lease: "dogwatch-default-2".into(),
            ..reads(nodes(), vec![slot(2, "me"), slot(1, "a")])
        };
        let highest = judged(1, &count(&own, &node("me")), 0);
        assert!(matches!(highest, Verdict::GiveBack { .. }), "{highest:?}");
    }

    #[test]
    fn nobody_waits_for_a_higher_slot_for_ever() {
        let held = vec![slot(0, "me"), slot(1, "a")];
        let count = counted(vec![row("me"), row("a")], held);
        let patience = WAIT_FOR_HIGHER_SLOT.as_secs();
        let early = judged(1, &count, patience - 1);
        assert!(
            matches!(early, Verdict::WaitForHigherSlot { .. }),
            "{early:?}"
        );
        let late = judged(1, &count, patience);
        assert!(matches!(late, Verdict::GiveBack { .. }), "{late:?}");
    }

    #[test]
    fn a_long_list_is_cut_in_the_message() {
        let nodes = (0..9)
            .map(|n| NodeRow {
                ready: false,
                ..row(&format!("n{n}"))
            })
            .collect();
        let count = counted(nodes, vec![slot(0, "me")]);
        let Verdict::GiveBack { why } = judged(3, &count, 0) else {
            panic!("nine are out")
        };
        assert!(why.starts_with("9 of the group out already, at most 3 may be: n0 (not ready), "));
        assert!(why.ends_with("and 4 more"), "{why}");
    }
}
