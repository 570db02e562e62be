//! Observers: each reads one thing for as long as the decision asks for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::lock::{HolderNode, HolderReads, MIN_HOLDER_READ_INTERVAL, ObservedLease};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::{PolicyGate, ReturnGate};
use dogwatch_core::reboot::{
    self, ObservedBudgetCount, ObservedHolderNode, ObservedStartGates, RebootObserve,
    RebootSnapshot,
};
use dogwatch_core::selector::LabelSelector;
use dogwatch_k8s::lock::{GroupSlots, LockClient};
use dogwatch_k8s::{Error, drain, node};
use dogwatch_prometheus::GateChecker;
use dogwatch_runtime::jitter;
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, OptionFuture};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use super::drain_observer::DrainObserver;
use super::facts::{ObservedFact, forget_unobserved};
use super::policy_sender::PolicySender;
use crate::clock::ProcessClock;

/// Interval of reading the return gates while they are shut, which may take minutes.
const RETURN_GATES_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of checking the policy's gates while they prevent a reboot. Prometheus itself evaluates
/// an alert every 15 s to 1 min.
const START_GATES_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of counting the group again while `maxUnavailable` is a percentage. A thousand waiting
/// nodes make some 33 such lists a minute.
const GROUP_SIZE_INTERVAL: Duration = Duration::from_mins(30);
/// First and longest pause after a failed read.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(30);

const CREATING_LEASES: &str = "creating the group's Leases";

/// A task that is aborted when this is dropped.
pub(super) struct ObserverTask(AbortHandle);

impl ObserverTask {
    pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for ObserverTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Clone)]
pub(super) struct ObserverContext {
    pub(super) locks: LockClient,
    pub(super) client: dogwatch_k8s::Client,
    pub(super) node_client: dogwatch_k8s::Client,
    pub(super) node: String,
    pub(super) clock: ProcessClock,
    pub(super) facts: UnboundedSender<ObservedFact>,
    pub(super) policies: PolicySender,
    pub(super) jitter_seed: u64,
    pub(super) gatekeeper: Arc<dyn GateChecker>,
}

/// The running observers, each with the request of the decision that it serves.
#[derive(Default)]
pub(super) struct ObserverSet {
    running: Vec<(RebootObserve, ObserverTask)>,
    /// One observer for the whole drain, whatever its settings: it must not forget what it has
    /// seen.
    pub(super) drain: Option<DrainObserver>,
}

impl ObserverSet {
    /// Starts the requested observers and stops the others; facts of stopped observers are removed.
    pub(super) fn ensure_observers(
        &mut self,
        looks: &[RebootObserve],
        eyes: &ObserverContext,
        seen: &mut RebootSnapshot,
    ) {
        let moved = has_group_changed(self.running.iter().map(|(look, _)| look), looks);
        self.running.retain(|(look, _)| looks.contains(look));
        forget_unobserved(seen, looks, moved);
        self.ensure_drain_observer(looks, eyes, seen);
        for look in looks {
            if !self.running.iter().any(|(running, _)| running == look) {
                self.running
                    .extend(start_observer(look, eyes).map(|running| (look.clone(), running)));
            }
        }
    }
}

/// Whether the Leases of another group are requested than before.
fn has_group_changed<'a>(
    mut before: impl Iterator<Item = &'a RebootObserve>,
    now: &[RebootObserve],
) -> bool {
    match (
        before.find_map(observed_group),
        now.iter().find_map(observed_group),
    ) {
        (Some(before), Some(now)) => before != now,
        (Some(_) | None, None) | (None, Some(_)) => false,
    }
}

fn observed_group(look: &RebootObserve) -> Option<&GroupName> {
    match look {
        RebootObserve::Locks { group, .. } | RebootObserve::GroupSize { group } => Some(group),
        RebootObserve::Count { .. }
        | RebootObserve::StartGates { .. }
        | RebootObserve::Holder { .. }
        | RebootObserve::Drain { .. }
        | RebootObserve::Attachments { .. }
        | RebootObserve::Gates { .. } => None,
    }
}

fn start_observer(look: &RebootObserve, eyes: &ObserverContext) -> Option<ObserverTask> {
    let eyes = eyes.clone();
    Some(match look {
        RebootObserve::Locks { group, slots } => {
            ObserverTask::spawn(observe_lock_leases(eyes, group.clone(), *slots))
        }
        RebootObserve::GroupSize { group } => {
            ObserverTask::spawn(observe_group_size(eyes, group.clone()))
        }
        RebootObserve::Count { lease, .. } => {
            ObserverTask::spawn(observe_budget_count(eyes, lease.as_ref().clone()))
        }
        RebootObserve::Holder { lease } => {
            ObserverTask::spawn(observe_holder_node(eyes, lease.as_ref().clone()))
        }
        RebootObserve::Drain { .. } => return None,
        RebootObserve::Attachments { claims } => {
            ObserverTask::spawn(observe_attachments(eyes, claims.clone()))
        }
        RebootObserve::StartGates { gates } => {
            ObserverTask::spawn(observe_start_gates(eyes, gates.clone()))
        }
        RebootObserve::Gates { gates, budgets } => {
            ObserverTask::spawn(observe_return_gates(eyes, gates.clone(), budgets.clone()))
        }
    })
}

impl ObserverContext {
    pub(super) fn send_fact(&self, fact: ObservedFact) {
        // Fails only when the process ends.
        let _ = self.facts.send(fact);
    }

    /// Reads until it succeeds; reports the first failure and the recovery.
    async fn read_with_retry<T, F>(
        &self,
        what: &'static str,
        mut read: impl FnMut() -> F,
    ) -> (T, Now)
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut pause = FIRST_RETRY_PAUSE;
        loop {
            let sent = self.clock.now();
            if let Some(value) = self.read_once(what, read()).await {
                return (value, sent);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY_PAUSE);
        }
    }

    /// Reports the failure, or the recovery.
    async fn read_once<T>(
        &self,
        what: &'static str,
        read: impl Future<Output = Result<T, Error>>,
    ) -> Option<T> {
        let (value, trouble) = match read.await {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error.error_chain())),
        };
        self.send_fact(ObservedFact::ObserverError(what, trouble));
        value
    }
}

async fn observe_lock_leases(eyes: ObserverContext, group: GroupName, slots: u32) {
    let mut known = GroupSlots::new(group.clone());
    let (seed, mut pauses) = (eyes.jitter_seed, 0);
    let jitter = move || {
        pauses += 1;
        jitter::nth_fraction(seed, pauses)
    };
    let mut events = std::pin::pin!(eyes.locks.watch_slots(&group, jitter));
    let latest = Mutex::new(Vec::new());
    // A creation that was refused must not keep the events of the existing Leases from the agent.
    let mut retries: Option<BoxFuture<'_, ()>> = None;
    let mut is_missing = false;
    loop {
        // At the start, and whenever somebody has deleted a Lease.
        if retries.is_none() && std::mem::take(&mut is_missing) {
            let create = create_missing_leases(&eyes, &group, slots, &latest);
            if eyes.read_once(CREATING_LEASES, create).await.is_none() {
                retries = Some(retry_creation(&eyes, &group, slots, &latest).boxed());
            }
        }
        let event = tokio::select! {
            biased;
            event = events.next() => event,
            Some(()) = OptionFuture::from(retries.as_mut()) => {
                retries = None;
                continue;
            }
        };
        let Some(event) = event else { return };
        let trouble = known.observe_event(event, eyes.clock.now());
        let trouble = trouble.map(|error| error.error_chain());
        eyes.send_fact(ObservedFact::ObserverError(
            "watching the group's Leases",
            trouble,
        ));
        let Some(leases) = known.current_leases() else {
            continue;
        };
        // Of another group, whose Leases are not made here, an empty list is all there is.
        if slots == 0 || !leases.is_empty() {
            eyes.send_fact(ObservedFact::Leases(leases.clone()));
        }
        is_missing = (0..slots).any(|slot| leases.iter().all(|lease| lease.slot != slot));
        *lock_leases(&latest) = leases;
    }
}

/// Each retry goes by the latest Leases.
async fn retry_creation(
    eyes: &ObserverContext,
    group: &GroupName,
    slots: u32,
    latest: &Mutex<Vec<ObservedLease>>,
) {
    tokio::time::sleep(FIRST_RETRY_PAUSE).await;
    let create = || create_missing_leases(eyes, group, slots, latest);
    eyes.read_with_retry(CREATING_LEASES, create).await;
}

async fn create_missing_leases(
    eyes: &ObserverContext,
    group: &GroupName,
    slots: u32,
    latest: &Mutex<Vec<ObservedLease>>,
) -> Result<(), Error> {
    let leases = lock_leases(latest).clone();
    eyes.locks.ensure_leases(group, slots, &leases).await
}

fn lock_leases(latest: &Mutex<Vec<ObservedLease>>) -> MutexGuard<'_, Vec<ObservedLease>> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The group may grow or shrink while the node waits, for days perhaps: a bid by an old size holds up
/// the whole group.
async fn observe_group_size(eyes: ObserverContext, group: GroupName) {
    for reads in 0.. {
        let (size, sent) = eyes
            .read_with_retry("counting the group", || async {
                let policies = eyes.policies.list_policies(&eyes.client).await?;
                eyes.locks.read_group_size(&group, &policies).await
            })
            .await;
        eyes.send_fact(ObservedFact::GroupSize(size));
        let spread = 0.75 + jitter::nth_fraction(eyes.jitter_seed, reads) / 2.0;
        let next = sent.mono + GROUP_SIZE_INTERVAL.mul_f64(spread);
        eyes.clock.sleep_until(next).await;
    }
}

async fn observe_budget_count(eyes: ObserverContext, lease: ObservedLease) {
    let group = reboot::group_of_lease(&lease.name).unwrap_or_else(GroupName::default_group);
    // Policies are read too, so that membership and maximum are as fresh as the count.
    let read = || async {
        let policies = eyes.policies.list_policies(&eyes.client).await?;
        let reads = eyes
            .locks
            .read_budget_inputs(&lease, &group, &policies)
            .await?;
        Ok((policies, reads))
    };
    loop {
        let changes = eyes.policies.count_changes();
        let ((policies, reads), sent) = eyes
            .read_with_retry("counting the unavailable nodes", read)
            .await;
        let count = ObservedBudgetCount {
            count: dogwatch_core::lock::count_unavailable(&reads, eyes.locks.holder_id()),
            taken: sent.mono,
            arrived: eyes.clock.now().mono,
        };
        if eyes.policies.send_counted(changes, policies, count) {
            return;
        }
        // The policies have changed since they were read, so the members may be others now.
        tokio::time::sleep(FIRST_RETRY_PAUSE).await;
    }
}

async fn observe_holder_node(eyes: ObserverContext, lease: ObservedLease) {
    let Some(name) = dogwatch_core::lock::holder_node_name(&lease) else {
        return;
    };
    let read = || eyes.locks.read_holder_node(&name);
    let what = "reading the holder's Node";
    let first: HolderNode = eyes.read_with_retry(what, read).await.0;
    let answered = eyes.clock.now().mono;
    eyes.clock
        .sleep_until(answered + MIN_HOLDER_READ_INTERVAL)
        .await;
    let (second, sent) = eyes.read_with_retry(what, read).await;
    eyes.send_fact(ObservedFact::Holder(ObservedHolderNode {
        lease: lease.name,
        resource_version: lease.resource_version,
        reads: HolderReads {
            nodes: [first, second],
            apart: sent.mono.saturating_sub(answered),
        },
        taken: sent.mono,
    }));
}

async fn observe_attachments(eyes: ObserverContext, claims: Vec<String>) {
    let mut handle =
        drain::AttachmentWatch::start_watching(eyes.client.clone(), &eyes.node, claims);
    loop {
        let left = handle.left.borrow_and_update().clone();
        if let Some(left) = left {
            eyes.send_fact(ObservedFact::Attachments(left));
        }
        if handle.left.changed().await.is_err() {
            return;
        }
    }
}

/// Checks the policy's gates. A gate that cannot be checked counts as shut, with the error as its
/// reason: retries do not hide it.
async fn observe_start_gates(eyes: ObserverContext, gates: Vec<PolicyGate>) {
    loop {
        let taken = eyes.clock.now().mono;
        // Concurrently: the result is as old as its first query, and each query may take seconds.
        let asked = gates.iter().map(|gate| list_gate_blockers(&eyes, gate));
        let shut = futures::future::join_all(asked).await.concat();
        let gates = gates.clone();
        eyes.send_fact(ObservedFact::StartGates(ObservedStartGates {
            gates,
            shut,
            taken,
        }));
        tokio::time::sleep(START_GATES_INTERVAL).await;
    }
}

async fn list_gate_blockers(eyes: &ObserverContext, gate: &PolicyGate) -> Vec<String> {
    match gate {
        PolicyGate::Pods { selector } => list_blocking_pods(eyes, selector).await,
        PolicyGate::Prometheus(gate) => eyes.gatekeeper.list_shut_reasons(gate).await,
    }
}

async fn list_blocking_pods(eyes: &ObserverContext, selector: &LabelSelector) -> Vec<String> {
    match node::list_blocking_pods(&eyes.client, &eyes.node, selector).await {
        Ok(pods) => pods,
        Err(error) => vec![format!(
            "the pods of this node cannot be read: {}",
            error.error_chain()
        )],
    }
}

async fn observe_return_gates(eyes: ObserverContext, gates: Vec<ReturnGate>, budgets: Vec<String>) {
    loop {
        let read = || node::list_shut_gates(&eyes.client, &eyes.node, &gates, &budgets);
        let (shut, _) = eyes
            .read_with_retry("checking the return gates", read)
            .await;
        eyes.send_fact(ObservedFact::Gates(shut));
        tokio::time::sleep(RETURN_GATES_INTERVAL).await;
    }
}
