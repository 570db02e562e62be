//! S1, S3, S4 and S5 on a Node.

use std::collections::BTreeMap;

use super::history::{ClusterState, ClusterWrite, KnownNode, NodeState, WriteSource};
use crate::reboot::{LastReboot, RebootOutcome, RebootPhase, RebootRecord};

pub(super) fn judge_node(
    state: &mut ClusterState,
    name: &str,
    after: Option<&NodeState>,
    write: &ClusterWrite,
) {
    state.step += 1;
    let source = &write.source;
    let Some(after) = after else {
        state.nodes.remove(name);
        return;
    };
    let before = state.nodes.remove(name);
    let before = before.filter(|before| before.state.uid == after.uid);
    let mut known = KnownNode {
        version: write.version,
        state: after.clone(),
        source: source.clone(),
        served: BTreeMap::new(),
        out: None,
    };
    if let Some(before) = &before {
        known.served.clone_from(&before.served);
        known.out = before.out.clone().filter(|_| after.is_out());
    }
    if let Some(before) = &before {
        if write.follows_version(before.version) {
            judge_cordon(state, name, before, after, source);
        }
        judge_return(state, name, before, after, source);
        judge_beginning(state, name, before, &mut known, write);
    }
    judge_attempt(state, name, before.as_ref(), &known, source);
    remember_served_triggers(&mut known, source);
    state.nodes.insert(name.to_owned(), known);
}

/// Whether the write changed the record: then it is Dogwatch's. Its cordons and uncordons come with
/// a change of the record, in one patch.
fn is_ours(before: &NodeState, after: &NodeState) -> bool {
    before.record != after.record
}

/// S3: a cordon that somebody else set is neither removed nor claimed.
fn judge_cordon(
    state: &mut ClusterState,
    name: &str,
    before: &KnownNode,
    after: &NodeState,
    source: &WriteSource,
) {
    if !is_ours(&before.state, after) || before.state.api_lock {
        return;
    }
    let claims = |node: &NodeState| {
        node.record
            .as_ref()
            .is_some_and(|record| record.cordoned_by_us)
    };
    let (old, lines) = (&before.state, [before.source.clone(), source.clone()]);
    if old.unschedulable && !after.unschedulable && !claims(old) {
        let what = format!("the cordon of Node {name} was removed, which Dogwatch had not set");
        state.accuse("S3", what, lines);
    } else if old.unschedulable && after.unschedulable && !claims(old) && claims(after) {
        let what = format!("the record of Node {name} claims a cordon that was there before");
        state.accuse("S3", what, lines);
    }
}

/// S4: a reboot ends with a new boot id.
fn judge_return(
    state: &mut ClusterState,
    name: &str,
    before: &KnownNode,
    after: &NodeState,
    source: &WriteSource,
) {
    let Some(last) = ended_reboot(&before.state, after) else {
        return;
    };
    if last.outcome != RebootOutcome::Rebooted {
        return;
    }
    state.recount.rebooted += 1;
    if !last.soft && last.old_boot_id == last.new_boot_id {
        let what = format!("the reboot of Node {name} ended without a new boot id");
        state.accuse("S4", what, [before.source.clone(), source.clone()]);
    }
}

/// The reboot that this write ended.
fn ended_reboot<'a>(before: &NodeState, after: &'a NodeState) -> Option<&'a LastReboot> {
    let ended = before.record.is_some() && after.record.is_none();
    after
        .last_reboot
        .as_ref()
        .filter(|_| ended && before.last_reboot != after.last_reboot)
}

/// S1: a node goes out of service only with the lock, and beside fewer than the smallest maximum of
/// its group. A remediation counts if its Lease was taken before the lock.
fn judge_beginning(
    state: &mut ClusterState,
    name: &str,
    before: &KnownNode,
    known: &mut KnownNode,
    write: &ClusterWrite,
) {
    let source = &write.source;
    let begins = before.state.phase() == Some(RebootPhase::Waiting)
        && known.state.phase() == Some(RebootPhase::Draining);
    if !begins {
        return;
    }
    state.recount.begun += 1;
    if write.relies_on.is_some() {
        // What the others did in a gap of this history is not known.
        return;
    }
    let holder =
        crate::name::NodeName::new(name).map(|name| crate::lock::HolderId::for_node(&name));
    let holder = holder.map(|holder| holder.to_string()).unwrap_or_default();
    let Some((lease, own)) = state.find_lease_of(&holder) else {
        return accuse_of_missing_lock(state, name, known, source);
    };
    let (lease, own) = (lease.clone(), own.clone());
    let Some(record) = &own.state.record else {
        return;
    };
    let group = record.group.to_string();
    let (others, lines, least) = others_out(state, name, &group, own.taken);
    known.out = Some((group.clone(), source.clone()));
    let most = state.recount.most_out.entry(group.clone()).or_default();
    *most = (*most).max(others.len() + 1);
    let max = least.map_or(record.max, |least| least.min(record.max));
    if others.len() >= usize::try_from(max).unwrap_or(usize::MAX) {
        let what = format!(
            "Node {name} went out of service with Lease {lease} although {} of group {group} {} out, \
             and at most {max} may be",
            others.join(", "),
            if others.len() == 1 { "was" } else { "were" },
        );
        let lines = lines
            .into_iter()
            .chain([own.source.clone(), source.clone()]);
        state.accuse("S1", what, lines);
    }
}

/// The record names a Lease that is known not to be held for this node. A Lease that the history has
/// not shown may have been taken before its first line.
fn accuse_of_missing_lock(
    state: &mut ClusterState,
    name: &str,
    known: &KnownNode,
    source: &WriteSource,
) {
    let record = known.state.record.as_ref();
    let lease = record.and_then(|record| record.lease.as_ref());
    let found = lease.and_then(|lease| Some((lease.clone(), state.leases.get(lease)?.clone())));
    if let Some((lease, shown)) = found {
        let what = format!(
            "Node {name} was cordoned for a reboot while Lease {lease} was not held for it"
        );
        state.accuse("S1", what, [shown.source, source.clone()]);
    }
}

/// The group's other members that are out on Dogwatch's account, the writes that show it, and the
/// smallest maximum of their Leases.
fn others_out(
    state: &ClusterState,
    name: &str,
    group: &str,
    taken: usize,
) -> (Vec<String>, Vec<WriteSource>, Option<u32>) {
    let mut out = BTreeMap::new();
    let mut least: Option<u32> = None;
    for (other, node) in &state.nodes {
        let of_group = node.out.as_ref().filter(|(of, _)| of == group);
        let counts = other != name && node.state.is_out() && !node.state.ignored;
        if let Some((_, since)) = of_group.filter(|_| counts) {
            out.insert(other.clone(), since.clone());
        }
    }
    for lease in state.leases.values().filter(|lease| lease.taken < taken) {
        let (Some(_), Some(remediation)) = (&lease.state.holder, &lease.state.remediation) else {
            continue;
        };
        let counts = remediation
            .group
            .as_ref()
            .is_none_or(|of| of.as_str() == group);
        let node = state.nodes.get(remediation.node.as_str());
        let ignored = node.is_some_and(|node| node.state.ignored);
        if counts && !ignored && remediation.node.as_str() != name {
            out.insert(remediation.node.to_string(), lease.source.clone());
        }
    }
    for lease in state.leases.values() {
        let record = lease
            .state
            .record
            .as_ref()
            .filter(|_| lease.state.holder.is_some());
        let of_other = |record: &&crate::lock::LockRecord| {
            let node = record.node.as_ref().map(ToString::to_string);
            record.group.as_str() == group && node.is_some_and(|node| out.contains_key(&node))
        };
        if let Some(record) = record.filter(of_other) {
            least = Some(least.map_or(record.max, |least| least.min(record.max)));
        }
    }
    let (names, lines) = out.into_iter().unzip();
    (names, lines, least)
}

/// S5: no sentinel that was served causes another reboot.
fn judge_attempt(
    state: &mut ClusterState,
    name: &str,
    before: Option<&KnownNode>,
    known: &KnownNode,
    source: &WriteSource,
) {
    let Some(record) = known.state.record.clone() else {
        return;
    };
    if record.phase != RebootPhase::Rebooting {
        return;
    }
    let announced = |before: &&KnownNode| {
        let old = before.state.record.as_ref();
        old.is_some_and(|old| old.phase == record.phase && old.attempts == record.attempts)
    };
    if before.is_some_and(|before| announced(&before)) {
        return;
    }
    let served = served_by(known, &record);
    if let Some(by) = served {
        let what = format!("a sentinel of Node {name} that was served caused a second reboot");
        state.accuse("S5", what, [by, source.clone()]);
    }
}

/// The write that served every trigger of this record, if all were served before.
fn served_by(known: &KnownNode, record: &RebootRecord) -> Option<WriteSource> {
    let keys = record
        .serves
        .iter()
        .map(|(of, print)| (of.clone(), print.clone()));
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() {
        return None;
    }
    let by: Option<Vec<&WriteSource>> = keys.iter().map(|key| known.served.get(key)).collect();
    by?.into_iter().max().cloned()
}

fn remember_served_triggers(known: &mut KnownNode, source: &WriteSource) {
    let Some(last) = known
        .state
        .last_reboot
        .as_ref()
        .filter(|last| last.was_served())
    else {
        return;
    };
    // A file's print is never the print of another file. The same request, or the same output of a
    // command, may ask again later.
    let files = last
        .fingerprints
        .iter()
        .filter(|(of, _)| of.starts_with("sentinel:"));
    for (of, print) in files {
        let key = (of.clone(), print.clone());
        known.served.entry(key).or_insert_with(|| source.clone());
    }
}
