//! What observers tell the loop, and how it becomes what the decision sees.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::drain::Progress;
use dogwatch_core::lock::{self, HolderId, LeaseSeen};
use dogwatch_core::name::{BootId, RunId};
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::{
    CommandEnd, CommandSeen, CountSeen, DrainSeen, HeldBack, HolderSeen, HostSeen, LockSeen, Look,
    NodeFact, NodeSeen, RunSeen, Seen, StartGatesSeen, TriggerSeen,
};
use dogwatch_process::jitter;

/// One thing that was observed.
#[derive(Debug)]
pub enum Fact {
    /// Our Node, by the watch.
    Node(NodeFact),
    /// What the host's sentinels say.
    Triggers(Vec<TriggerSeen>),
    /// The group's slots.
    Leases(Vec<LeaseSeen>),
    /// A count of the budget.
    Count(CountSeen),
    /// Two reads of a holder's Node.
    Holder(HolderSeen),
    /// How many members the group has.
    GroupSize(u32),
    /// The cluster's RebootPolicies.
    Policies(Policies),
    /// What the gates of the policy say.
    StartGates(StartGatesSeen),
    /// Where the drain stands.
    Drain(Progress),
    /// VolumeAttachments that are left.
    Attachments(Vec<String>),
    /// Return gates that are shut.
    Gates(Vec<String>),
    /// The reboot command of this attempt ended.
    CommandEnded(u32, CommandEnd),
    /// The reboot command of this attempt turned out never to have begun.
    CommandNeverBegun(u32, String),
    /// An observer cannot do its work, or can again (`None`).
    Trouble(&'static str, Option<String>),
}

/// Takes a fact in.
pub fn apply(seen: &mut Seen, fact: Fact, now: Now) {
    match fact {
        Fact::Node(node) => saw_node(seen, node, now),
        Fact::Triggers(triggers) => seen.host.triggers = triggers,
        Fact::Leases(leases) => saw_leases(seen, leases, now),
        Fact::Count(count) => seen.lock.count = Some(count),
        Fact::Holder(holder) => seen.lock.holder = Some(holder),
        Fact::GroupSize(size) => seen.lock.group_size = Some(size),
        Fact::Policies(policies) => seen.policies = policies,
        Fact::StartGates(gates) => seen.start_gates = Some(gates),
        Fact::Drain(progress) => saw_drain(seen, progress, now.mono),
        Fact::Attachments(left) => seen.attachments = Some(left),
        Fact::Gates(shut) => seen.gates = Some(shut),
        Fact::CommandEnded(attempt, end) => command_ended(seen, attempt, end),
        Fact::CommandNeverBegun(attempt, why) => command_never_begun(seen, attempt, why),
        Fact::Trouble(what, trouble) => saw_trouble(seen, what, trouble),
    }
}

/// A Node from the watch; an older one than what an answer has shown already changes nothing.
fn saw_node(seen: &mut Seen, node: NodeFact, now: Now) {
    if let (NodeFact::There(new), NodeFact::There(old)) = (&node, &seen.node)
        && new.uid == old.uid
        && older(&new.resource_version, &old.resource_version)
    {
        return;
    }
    seen.node = node;
    if let NodeFact::There(node) = &seen.node {
        seen.run.saw(node.record.get(), now);
        seen.run.ready_since = ready_since(node, seen, now.mono);
    }
}

/// Since when the Node is Ready with this host's boot id. A Ready from before the boot proves
/// nothing.
fn ready_since(node: &NodeSeen, seen: &Seen, now: Duration) -> Option<Duration> {
    let this_boot = seen
        .host
        .boot_id
        .as_ref()
        .is_ok_and(|boot| node.boot_id.as_ref() == Some(boot));
    (node.ready && this_boot).then(|| seen.run.ready_since.unwrap_or(now))
}

/// Resource versions of one resource can be compared as numbers (Kubernetes KEP-5504); what is no
/// number is taken as newer.
fn older(new: &str, old: &str) -> bool {
    match (new.parse::<u64>(), old.parse::<u64>()) {
        (Ok(new), Ok(old)) => new < old,
        _ => false,
    }
}

fn saw_leases(seen: &mut Seen, leases: Vec<LeaseSeen>, now: Now) {
    let leases = leases.into_iter().map(|lease| {
        let known = seen
            .lock
            .leases
            .iter()
            .flatten()
            .find(|known| known.uid == lease.uid);
        lock::seen_again(known, lease, now)
    });
    seen.lock.leases = Some(leases.collect());
    locks_changed(seen, now);
}

/// One Lease as an answer showed it.
pub fn saw_lease(seen: &mut Seen, lease: LeaseSeen, now: Now) {
    let leases = seen.lock.leases.get_or_insert_default();
    match leases.iter_mut().find(|known| known.name == lease.name) {
        Some(known) => *known = lock::seen_again(Some(known), lease, now),
        None => leases.push(lease),
    }
    locks_changed(seen, now);
}

fn locks_changed(seen: &mut Seen, now: Now) {
    let leases = seen.lock.leases.as_deref().unwrap_or_default();
    let mine = lock::held_by(leases, &seen.run.holder);
    seen.run.swept |= mine.is_none();
    seen.lock.won = mine.map(|_| seen.lock.won.unwrap_or(now.mono));
    // Slots above our own maximum may be free and are of no use to us.
    let held = leases.iter().any(|lease| lease.holder.is_some());
    seen.run.waiting_since =
        (mine.is_none() && held).then(|| seen.run.waiting_since.unwrap_or(now.mono));
    let settled = seen.lock.unsettled.as_ref().is_some_and(|name| {
        leases
            .iter()
            .any(|lease| lease.name == *name && lease.holder.is_some())
    });
    if settled {
        seen.lock.unsettled = None;
    }
}

fn saw_drain(seen: &mut Seen, progress: Progress, now: Duration) {
    let before = seen.drain.as_ref().and_then(|drain| drain.drained_since);
    let drained_since = progress.drained().then(|| before.unwrap_or(now));
    seen.drain = Some(DrainSeen {
        progress,
        drained_since,
    });
}

fn command_ended(seen: &mut Seen, attempt: u32, end: CommandEnd) {
    if let CommandSeen::Started {
        attempt: started,
        ended,
    } = &mut seen.run.command
        && *started == attempt
    {
        *ended = Some(end);
    }
}

/// News of an older attempt must not hide that a newer one was started.
fn command_never_begun(seen: &mut Seen, attempt: u32, why: String) {
    if let CommandSeen::Started {
        attempt: started, ..
    } = &seen.run.command
        && *started == attempt
    {
        seen.run.command = CommandSeen::FailedToStart { attempt, why };
    }
}

/// Each change of it is logged, for the log is all there is where the conditions cannot be written.
fn saw_trouble(seen: &mut Seen, what: &'static str, trouble: Option<String>) {
    let before = match &trouble {
        Some(why) => seen.trouble.insert(what, why.clone()),
        None => seen.trouble.remove(what),
    };
    match (before, trouble) {
        (Some(before), Some(why)) if before == why => {}
        (_, Some(error)) => tracing::warn!(error, "trouble while {what}"),
        (Some(_), None) => tracing::info!("no trouble any more while {what}"),
        (None, None) => {}
    }
}

/// A stale fact is worse than none: the next look begins with nothing known.
pub fn forget(seen: &mut Seen, looks: &[Look], moved: bool) {
    let has = |wanted: fn(&Look) -> bool| looks.iter().any(wanted);
    if moved || !has(|look| matches!(look, Look::Locks { .. })) {
        seen.lock.leases = None;
        seen.lock.count = None;
        seen.lock.holder = None;
        seen.lock.won = None;
        seen.run.waiting_since = None;
    }
    if !has(|look| matches!(look, Look::Drain { .. })) {
        seen.drain = None;
    }
    if !has(|look| matches!(look, Look::StartGates { .. })) {
        seen.start_gates = None;
    }
    if !has(|look| matches!(look, Look::Attachments { .. })) {
        seen.attachments = None;
    }
    if !has(|look| matches!(look, Look::Gates { .. })) {
        seen.gates = None;
    }
    if moved || looks.is_empty() {
        seen.lock.group_size = None;
        seen.trouble.clear();
    }
}

/// What a process knows that has seen nothing yet.
pub fn first_sight(run: &RunId, holder: HolderId, boot_id: Result<BootId, String>) -> Seen {
    Seen {
        node: NodeFact::NotYet,
        host: HostSeen {
            boot_id,
            triggers: Vec::new(),
        },
        policies: Policies::NotYet,
        lock: LockSeen::default(),
        start_gates: None,
        drain: None,
        attachments: None,
        gates: None,
        trouble: std::collections::BTreeMap::new(),
        run: RunSeen {
            id: run.clone(),
            holder,
            jitter: jitter::nth(seed_of(run), 0),
            owned: None,
            phase: None,
            permit: None,
            adopted_attempt: None,
            command: CommandSeen::None,
            ready_since: None,
            bid_after: None,
            swept: false,
            refused: false,
            leave_since: None,
            held_back: HeldBack::default(),
            waiting_since: None,
            may_not_break: false,
            unanswered: None,
        },
    }
}

/// What spreads this run's waits: its id is random.
pub(super) fn seed_of(run: &RunId) -> u64 {
    jitter::seed_of(run.as_str())
}
