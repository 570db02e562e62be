//! Facts from the observers, and how they update the snapshot.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::drain::DrainProgress;
use dogwatch_core::lock::{self, HolderId, ObservedLease};
use dogwatch_core::name::{BootId, RunId};
use dogwatch_core::policy::{self, ClusterPolicies};
use dogwatch_core::reboot::{
    CommandEnd, HeldBackTime, ObservedBudgetCount, ObservedDrain, ObservedHolderNode, ObservedLock,
    ObservedNode, ObservedOwnHost, ObservedStartGates, ObservedTrigger, OwnNodeState,
    RebootCommandState, RebootObserve, RebootSnapshot, RunMemory,
};
use dogwatch_runtime::jitter;

#[derive(Debug)]
pub enum ObservedFact {
    Node(OwnNodeState),
    /// A read that began after all that is known of the Node. Only a store that was restored from a
    /// backup shows an older version here.
    FreshNode(OwnNodeState),
    Triggers(Vec<ObservedTrigger>),
    /// systemd's `SoftRebootsCount`.
    SoftReboots(u32),
    Leases(Vec<ObservedLease>),
    Count(ObservedBudgetCount),
    /// Two reads of a holder's Node.
    Holder(ObservedHolderNode),
    GroupSize(u32),
    Policies(ClusterPolicies),
    StartGates(ObservedStartGates),
    Drain(Box<DrainProgress>),
    Attachments(Vec<String>),
    Gates(Vec<String>),
    /// The reboot command of this attempt ended.
    CommandEnded(u32, CommandEnd),
    /// The reboot command of this attempt never began, and why.
    CommandNeverBegun(u32, String),
    /// An observer cannot do its work, or works again (`None`).
    ObserverError(&'static str, Option<String>),
}

pub fn apply_fact(seen: &mut RebootSnapshot, fact: ObservedFact, now: Now) {
    match fact {
        ObservedFact::Node(node) => observe_node(seen, node, now),
        ObservedFact::FreshNode(node) => replace_node(seen, node, now),
        ObservedFact::Triggers(triggers) => seen.host.triggers = triggers,
        ObservedFact::SoftReboots(count) => seen.host.soft_reboots = Some(count),
        ObservedFact::Leases(leases) => observe_leases(seen, leases, now),
        ObservedFact::Count(count) => seen.lock.count = Some(count),
        ObservedFact::Holder(holder) => seen.lock.holder = Some(holder),
        ObservedFact::GroupSize(size) => seen.lock.group_size = Some(size),
        ObservedFact::Policies(policies) => observe_policies(seen, policies, now.mono),
        ObservedFact::StartGates(gates) => seen.start_gates = Some(gates),
        ObservedFact::Drain(progress) => observe_drain(seen, *progress, now.mono),
        ObservedFact::Attachments(left) => seen.attachments = Some(left),
        ObservedFact::Gates(shut) => seen.gates = Some(shut),
        ObservedFact::CommandEnded(attempt, end) => record_command_end(seen, attempt, end),
        ObservedFact::CommandNeverBegun(attempt, why) => {
            record_command_not_begun(seen, attempt, why);
        }
        ObservedFact::ObserverError(what, trouble) => observe_error(seen, what, trouble),
    }
}

/// A Node from the watch that is older than the last answer to a write changes nothing.
fn observe_node(seen: &mut RebootSnapshot, node: OwnNodeState, now: Now) {
    if !node.is_older_version_of(&seen.node) {
        replace_node(seen, node, now);
    }
}

fn replace_node(seen: &mut RebootSnapshot, node: OwnNodeState, now: Now) {
    seen.node = node;
    if let OwnNodeState::There(node) = &seen.node {
        seen.run.observe_record(node.record.get(), now);
        seen.run.ready_since = ready_since(node, seen, now.mono);
    }
}

/// Since when the Node is Ready with this host's boot id. A Ready from before the boot proves
/// nothing.
fn ready_since(node: &ObservedNode, seen: &RebootSnapshot, now: Duration) -> Option<Duration> {
    let this_boot = seen
        .host
        .boot_id
        .as_ref()
        .is_ok_and(|boot| node.boot_id.as_ref() == Some(boot));
    (node.ready && this_boot).then(|| seen.run.ready_since.unwrap_or(now))
}

/// A ramp that allows more nodes than before opens Leases to all that wait, as a window does: they
/// must not all bid at the same moment.
fn observe_policies(seen: &mut RebootSnapshot, policies: ClusterPolicies, now: Duration) {
    let before = ramp_limit(&seen.policies, &seen.node);
    let after = ramp_limit(&policies, &seen.node);
    if before.is_some_and(|before| after.is_none_or(|after| after > before)) && !seen.run.refused {
        seen.run.permission_since = Some(now);
    }
    seen.policies = policies;
}

/// How many nodes the ramp of this node's policy allows now; `None` without a ramp.
fn ramp_limit(policies: &ClusterPolicies, node: &OwnNodeState) -> Option<u32> {
    let (ClusterPolicies::Known(policies), OwnNodeState::There(node)) = (policies, node) else {
        return None;
    };
    policy::ruling_policy(policies, &node.labels)?
        .rollout
        .limit_now()
}

fn observe_leases(seen: &mut RebootSnapshot, leases: Vec<ObservedLease>, now: Now) {
    let before = seen.lock.leases.take().unwrap_or_default();
    let known: BTreeMap<&str, &ObservedLease> = before
        .iter()
        .map(|lease| (lease.uid.as_str(), lease))
        .collect();
    let leases = leases.into_iter().map(|lease| {
        let known = known.get(lease.uid.as_str()).copied();
        lock::merge_observed_lease(known, lease, now)
    });
    seen.lock.leases = Some(leases.collect());
    update_lock_state(seen, now);
}

/// Applies one Lease from the answer to a write.
pub fn observe_lease(seen: &mut RebootSnapshot, lease: ObservedLease, now: Now) {
    let leases = seen.lock.leases.get_or_insert_default();
    match leases.iter_mut().find(|known| known.name == lease.name) {
        Some(known) => *known = lock::merge_observed_lease(Some(known), lease, now),
        None => leases.push(lease),
    }
    update_lock_state(seen, now);
}

fn update_lock_state(seen: &mut RebootSnapshot, now: Now) {
    let leases = seen.lock.leases.as_deref().unwrap_or_default();
    let mine = lock::find_held_lease(leases, &seen.run.holder);
    seen.run.leftover_lock_released |= mine.is_none();
    seen.lock.won_at = mine.map(|_| seen.lock.won_at.unwrap_or(now.mono));
    // Slots above our own maximum may be free, but we cannot use them.
    let held = leases.iter().any(|lease| lease.holder.is_some());
    seen.run.waiting_since =
        (mine.is_none() && held).then(|| seen.run.waiting_since.unwrap_or(now.mono));
    let settled = seen.lock.unsettled_bid.as_ref().is_some_and(|name| {
        leases
            .iter()
            .any(|lease| lease.name == *name && lease.holder.is_some())
    });
    if settled {
        seen.lock.unsettled_bid = None;
    }
}

fn observe_drain(seen: &mut RebootSnapshot, progress: DrainProgress, now: Duration) {
    let before = seen.drain.as_ref().and_then(|drain| drain.drained_since);
    let drained_since = progress.is_drained().then(|| before.unwrap_or(now));
    seen.drain = Some(ObservedDrain {
        progress,
        drained_since,
    });
}

fn record_command_end(seen: &mut RebootSnapshot, attempt: u32, end: CommandEnd) {
    if let RebootCommandState::Started {
        attempt: started,
        ended,
    } = &mut seen.run.command
        && *started == attempt
    {
        *ended = Some(end);
    }
}

/// News of an older attempt must not hide that a newer one was started.
fn record_command_not_begun(seen: &mut RebootSnapshot, attempt: u32, why: String) {
    if let RebootCommandState::Started {
        attempt: started, ..
    } = &seen.run.command
        && *started == attempt
    {
        seen.run.command = RebootCommandState::FailedToStart { attempt, why };
    }
}

/// Logs each change: if the conditions cannot be written, the log is the only report.
fn observe_error(seen: &mut RebootSnapshot, what: &'static str, trouble: Option<String>) {
    let before = match &trouble {
        Some(why) => seen.observation_errors.insert(what, why.clone()),
        None => seen.observation_errors.remove(what),
    };
    match (before, trouble) {
        (Some(before), Some(why)) if before == why => {}
        (_, Some(error)) => tracing::warn!(error, "{what} failed; retrying"),
        (Some(_), None) => tracing::info!("{what} works again"),
        (None, None) => {}
    }
}

/// Removes facts that no observer updates any more: a stale fact is worse than none.
pub fn forget_unobserved(seen: &mut RebootSnapshot, looks: &[RebootObserve], moved: bool) {
    let has = |wanted: fn(&RebootObserve) -> bool| looks.iter().any(wanted);
    if moved || !has(|look| matches!(look, RebootObserve::Locks { .. })) {
        seen.lock.leases = None;
        seen.lock.count = None;
        seen.lock.holder = None;
        seen.lock.won_at = None;
        seen.run.waiting_since = None;
    }
    if !has(|look| matches!(look, RebootObserve::Drain { .. })) {
        seen.drain = None;
    }
    if !has(|look| matches!(look, RebootObserve::StartGates { .. })) {
        seen.start_gates = None;
    }
    if !has(|look| matches!(look, RebootObserve::Attachments { .. })) {
        seen.attachments = None;
    }
    if !has(|look| matches!(look, RebootObserve::Gates { .. })) {
        seen.gates = None;
    }
    if moved || looks.is_empty() {
        seen.lock.group_size = None;
        seen.observation_errors.clear();
    }
}

/// The snapshot of a process that has not read anything yet.
pub fn initial_snapshot(
    run: &RunId,
    holder: HolderId,
    boot_id: Result<BootId, String>,
) -> RebootSnapshot {
    RebootSnapshot {
        node: OwnNodeState::NotYet,
        host: ObservedOwnHost {
            boot_id,
            soft_reboots: None,
            triggers: Vec::new(),
        },
        policies: ClusterPolicies::NotYetRead,
        lock: ObservedLock::default(),
        start_gates: None,
        drain: None,
        attachments: None,
        gates: None,
        observation_errors: std::collections::BTreeMap::new(),
        run: RunMemory {
            id: run.clone(),
            holder,
            jitter: jitter::nth_fraction(jitter_seed_of(run), 0),
            owned_since: None,
            phase: None,
            usable: None,
            permit: None,
            adopted_attempt: None,
            command: RebootCommandState::None,
            ready_since: None,
            bid_pause: None,
            leftover_lock_released: false,
            refused: false,
            permission_since: None,
            held_back: HeldBackTime::default(),
            waiting_since: None,
            break_forbidden: false,
            unanswered_patch_version: None,
        },
    }
}

/// Each run has another seed, because its id is random.
pub(super) fn jitter_seed_of(run: &RunId) -> u64 {
    jitter::seed_of(run.as_str())
}

#[cfg(test)]
mod tests {
    use dogwatch_k8s::node::observed_node;
    use serde_json::json;

    use super::*;

    fn now() -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::ZERO,
        }
    }

    fn node(version: &str) -> OwnNodeState {
        let node = json!({ "metadata": { "name": "n1", "uid": "u", "resourceVersion": version } });
        let node = serde_json::from_value(node).unwrap();
        OwnNodeState::There(Box::new(observed_node(&node).unwrap()))
    }

    fn snapshot() -> RebootSnapshot {
        let run = RunId::new("coordinator/r1").unwrap();
        let holder = HolderId::new("node/n1").unwrap();
        initial_snapshot(&run, holder, Err("none".into()))
    }

    #[test]
    fn a_late_event_changes_nothing_but_the_node_of_a_restored_store_is_believed() {
        let mut seen = snapshot();
        apply_fact(&mut seen, ObservedFact::Node(node("90")), now());
        apply_fact(&mut seen, ObservedFact::Node(node("80")), now());
        assert_eq!(seen.node, node("90"));
        apply_fact(&mut seen, ObservedFact::FreshNode(node("80")), now());
        assert_eq!(seen.node, node("80"));
        apply_fact(&mut seen, ObservedFact::Node(node("81")), now());
        assert_eq!(seen.node, node("81"));
    }
}
