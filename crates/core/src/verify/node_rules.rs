//! S3, S4 and S5 on a Node.

use std::collections::BTreeMap;

use super::beginning_rules;
use super::history::{
    ClusterState, ClusterWrite, CordonChange, KnownNode, NodeState, StateKnowledge, WriteSource,
};
use crate::reboot::{LastReboot, RebootOutcome, RebootPhase, RebootRecord};

pub(super) fn judge_node(
    state: &mut ClusterState,
    name: &str,
    after: Option<&NodeState>,
    write: &ClusterWrite,
) {
    let Some(after) = after else {
        state.step += 1;
        state.nodes.remove(name);
        return;
    };
    let before = find_same_node(state, name, after);
    let is_followed = before.is_some_and(|before| before.is_followed_by(write));
    let known = KnownNode {
        version: write.version,
        knowledge: StateKnowledge::Current,
        state: after.clone(),
        source: write.source.clone(),
        served: BTreeMap::new(),
        out: None,
    };
    judge_known_node(state, name, known, is_followed, write);
}

/// A Node of which the answer had the metadata alone: its cordon is the one of the request, or the
/// one that was there.
pub(super) fn judge_metadata(
    state: &mut ClusterState,
    name: &str,
    (after, cordon): (&NodeState, CordonChange),
    write: &ClusterWrite,
) {
    let before = find_same_node(state, name, after);
    let followed = before
        .filter(|before| before.is_followed_by(write) && !has_missed_write(before, after, write));
    let unschedulable = match cordon {
        CordonChange::Set(unschedulable) => Some(unschedulable),
        CordonChange::Unchanged => followed.map(|before| before.state.unschedulable),
        CordonChange::Unknown => None,
    };
    let knowledge = match unschedulable {
        Some(_) => StateKnowledge::Current,
        None => StateKnowledge::Incomplete,
    };
    let known = KnownNode {
        version: write.version,
        knowledge,
        state: NodeState {
            unschedulable: unschedulable.unwrap_or(false),
            boot_id: followed.and_then(|before| before.state.boot_id.clone()),
            ..after.clone()
        },
        source: write.source.clone(),
        served: BTreeMap::new(),
        out: None,
    };
    let is_followed = followed.is_some() && unschedulable.is_some();
    judge_known_node(state, name, known, is_followed, write);
}

fn find_same_node<'a>(
    state: &'a ClusterState,
    name: &str,
    after: &NodeState,
) -> Option<&'a KnownNode> {
    let before = state.nodes.get(name);
    before.filter(|before| before.state.uid == after.uid)
}

/// Whether Dogwatch has written the Node between, unseen: an unconditional write of metadata, such
/// as of an estimate, changes neither the record nor the lock API's annotation.
fn has_missed_write(before: &KnownNode, after: &NodeState, write: &ClusterWrite) -> bool {
    let old = &before.state;
    let differs = old.record != after.record || old.api_lock != after.api_lock;
    write.relies_on.is_none() && differs
}

/// `is_followed`: nothing was written between the state before and this write.
fn judge_known_node(
    state: &mut ClusterState,
    name: &str,
    mut known: KnownNode,
    is_followed: bool,
    write: &ClusterWrite,
) {
    state.step += 1;
    let source = &write.source;
    let before = state.nodes.remove(name);
    let before = before.filter(|before| before.state.uid == known.state.uid);
    if let Some(before) = &before {
        let is_incomplete = known.knowledge == StateKnowledge::Incomplete;
        let stays_out = known.state.is_out() || is_incomplete;
        known.served.clone_from(&before.served);
        known.out = before.out.clone().filter(|_| stays_out);
        if is_followed {
            judge_cordon(state, name, before, &known.state, source);
        }
        judge_return(state, name, before, &known.state, source);
        beginning_rules::judge_beginning(state, name, before, &mut known, (write, is_followed));
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
