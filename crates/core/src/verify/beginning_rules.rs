//! S1 on a Node: it goes out of service only with the lock, and beside fewer than the smallest maximum
//! of its group.

use std::collections::BTreeMap;

use super::history::{ClusterState, ClusterWrite, KnownLease, KnownNode, NodeState, WriteSource};
use crate::lock::{HolderId, LockRecord};
use crate::name::NodeName;
use crate::reboot::RebootPhase;

/// How a node goes out of service.
#[derive(Clone, Copy)]
enum Beginning {
    /// Its coordinator begins to drain it.
    Drain,
    /// It was drained by the time of this write, and the history does not show when that began.
    UnseenDrain,
    /// The lock API cordons it.
    ApiLock,
}

/// A remediation counts if its Lease was taken before the lock. `is_followed`: nothing was written
/// between the state before and this write.
pub(super) fn judge_beginning(
    state: &mut ClusterState,
    name: &str,
    before: &KnownNode,
    known: &mut KnownNode,
    (write, is_followed): (&ClusterWrite, bool),
) {
    let Some(beginning) = find_beginning(&before.state, &known.state, is_followed) else {
        return;
    };
    state.recount.begun += 1;
    if write.from_decision_log {
        // What the others did in a gap of this history is not known.
        return;
    }
    let Some((lease, own)) = find_own_lease(state, name, &known.state, beginning) else {
        if is_followed {
            accuse_of_missing_lock(state, name, known, beginning);
        }
        return;
    };
    let Some(record) = own.state.record.clone() else {
        return;
    };
    let others = find_others_out(state, name, &record, own.taken);
    known.out = Some((record.group.to_string(), write.source.clone()));
    let most = &mut state.recount.most_out;
    let most = most.entry(record.group.to_string()).or_default();
    *most = (*most).max(others.names.len() + 1);
    if is_followed && own.is_current() {
        accuse_over_budget(state, name, (&lease, &own, &record), others, &write.source);
    }
}

fn find_beginning(before: &NodeState, after: &NodeState, is_followed: bool) -> Option<Beginning> {
    if before.phase() == Some(RebootPhase::Waiting) {
        match after.phase() {
            Some(RebootPhase::Draining) => return Some(Beginning::Drain),
            Some(RebootPhase::Holding | RebootPhase::Rebooting | RebootPhase::Returning)
                if !is_followed =>
            {
                return Some(Beginning::UnseenDrain);
            }
            Some(
                RebootPhase::Waiting
                | RebootPhase::Holding
                | RebootPhase::Rebooting
                | RebootPhase::Returning,
            )
            | None => {}
        }
    }
    let is_cordoned = !before.unschedulable && after.unschedulable;
    (after.api_lease.is_some() && is_cordoned).then_some(Beginning::ApiLock)
}

fn find_own_lease(
    state: &ClusterState,
    name: &str,
    after: &NodeState,
    beginning: Beginning,
) -> Option<(String, KnownLease)> {
    let (lease, own) = match beginning {
        Beginning::Drain | Beginning::UnseenDrain => {
            let holder = NodeName::new(name).map(|name| HolderId::for_node(&name));
            let holder = holder.map(|holder| holder.to_string()).unwrap_or_default();
            state.find_lease_of(&holder)?
        }
        Beginning::ApiLock => {
            let lease = state.leases.get_key_value(after.api_lease.as_ref()?)?;
            Some(lease).filter(|(_, lease)| is_api_lock_of(lease, name))?
        }
    };
    Some((lease.clone(), own.clone()))
}

/// Whether a host of the lock API that is this Node holds the Lease.
fn is_api_lock_of(lease: &KnownLease, name: &str) -> bool {
    let holder = lease.state.holder.as_ref();
    let record = lease.state.record.as_ref();
    let node = record.and_then(|record| record.node.as_ref());
    holder.is_some_and(|holder| !holder.starts_with("node/"))
        && node.is_some_and(|node| node.as_str() == name)
}

/// The Node names a Lease that is known not to be held for it. A Lease that the history has not
/// shown may have been taken before its first line.
fn accuse_of_missing_lock(
    state: &mut ClusterState,
    name: &str,
    known: &KnownNode,
    beginning: Beginning,
) {
    let (lease, by) = match beginning {
        Beginning::Drain | Beginning::UnseenDrain => {
            let record = known.state.record.as_ref();
            (record.and_then(|record| record.lease.clone()), "a reboot")
        }
        Beginning::ApiLock => (known.state.api_lease.clone(), "the lock API"),
    };
    let shown = lease.and_then(|lease| Some((state.leases.get(&lease)?.clone(), lease)));
    let Some((shown, lease)) = shown.filter(|(shown, _)| shown.is_current()) else {
        return;
    };
    let what = format!("Node {name} was cordoned for {by} while Lease {lease} was not held for it");
    state.accuse("S1", what, [shown.source, known.source.clone()]);
}

fn accuse_over_budget(
    state: &mut ClusterState,
    name: &str,
    (lease, own, record): (&str, &KnownLease, &LockRecord),
    others: OthersOut,
    source: &WriteSource,
) {
    let max = others
        .least_max
        .map_or(record.max, |least| least.min(record.max));
    if others.names.len() < usize::try_from(max).unwrap_or(usize::MAX) {
        return;
    }
    let what = format!(
        "Node {name} went out of service with Lease {lease} although {} of group {} {} out, \
         and at most {max} may be",
        others.names.join(", "),
        record.group,
        if others.names.len() == 1 {
            "was"
        } else {
            "were"
        },
    );
    let lines = others.lines.into_iter();
    let lines = lines.chain([own.source.clone(), source.clone()]);
    state.accuse("S1", what, lines);
}

/// The group's other members that are known to be out on Dogwatch's account.
struct OthersOut {
    names: Vec<String>,
    /// The writes that show it.
    lines: Vec<WriteSource>,
    /// The smallest maximum of their Leases.
    least_max: Option<u32>,
}

fn find_others_out(state: &ClusterState, name: &str, own: &LockRecord, taken: usize) -> OthersOut {
    let group = own.group.as_str();
    let mut out = BTreeMap::new();
    for (other, node) in &state.nodes {
        let of_group = node.out.as_ref().filter(|(of, _)| of == group);
        let counts = other != name && node.state.is_out() && !node.state.ignored;
        if let Some((_, since)) = of_group.filter(|_| counts && node.is_current()) {
            out.insert(other.clone(), since.clone());
        }
    }
    out.extend(find_remediations(state, name, group, taken));
    let mut least_max: Option<u32> = None;
    for lease in state.leases.values().filter(|lease| lease.is_current()) {
        let record = lease.state.record.as_ref();
        let of_other = |record: &&LockRecord| {
            let node = record.node.as_ref().map(ToString::to_string);
            record.group.as_str() == group && node.is_some_and(|node| out.contains_key(&node))
        };
        let held = record.filter(|_| lease.state.holder.is_some());
        if let Some(record) = held.filter(of_other) {
            least_max = Some(least_max.map_or(record.max, |least| least.min(record.max)));
        }
    }
    let (names, lines) = out.into_iter().unzip();
    OthersOut {
        names,
        lines,
        least_max,
    }
}

/// The nodes under remediation whose Leases were taken before this write.
fn find_remediations(
    state: &ClusterState,
    name: &str,
    group: &str,
    taken: usize,
) -> BTreeMap<String, WriteSource> {
    let leases = state.leases.values();
    let before = leases.filter(|lease| lease.is_current() && lease.taken < taken);
    let out = before.filter_map(|lease| {
        let remediation = lease.state.remediation.as_ref();
        let remediation = remediation.filter(|_| lease.state.holder.is_some())?;
        let of = remediation.group.as_ref();
        let node = state.nodes.get(remediation.node.as_str());
        let ignored = node.is_some_and(|node| node.state.ignored);
        let counts = of.is_none_or(|of| of.as_str() == group)
            && !ignored
            && remediation.node.as_str() != name;
        counts.then(|| (remediation.node.to_string(), lease.source.clone()))
    });
    out.collect()
}
