//! Observers: each looks at one thing for as long as the decision asks for it.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::drain::DrainConfig;
use dogwatch_core::lock::{BETWEEN_HOLDER_READS, HolderNode, HolderReads, LeaseSeen};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::{Gate, ReturnGate};
use dogwatch_core::reboot::{self, CountSeen, HolderSeen, Look, Seen, StartGatesSeen};
use dogwatch_core::selector::LabelSelector;
use dogwatch_k8s::lock::{LockClient, Slots};
use dogwatch_k8s::{Error, drain, node, policy};
use dogwatch_process::jitter;
use dogwatch_prometheus::Gatekeeper;
use futures::StreamExt as _;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::facts::{Fact, forget};
use crate::clock::Clock;

/// How often the return gates are read again while they are looked at; they may take minutes.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// How often the gates of the policy are asked again while they keep a reboot from beginning. An
/// alert is evaluated every 15 s to a minute by Prometheus itself.
const ASK_GATES_AGAIN: Duration = Duration::from_secs(10);
/// Pauses after a read that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A task that ends when this is dropped.
pub(super) struct Running(AbortHandle);

impl Running {
    pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What every observer is made with.
#[derive(Clone)]
pub(super) struct Eyes {
    pub(super) locks: LockClient,
    pub(super) client: dogwatch_k8s::Client,
    pub(super) node_client: dogwatch_k8s::Client,
    pub(super) node: String,
    pub(super) clock: Clock,
    pub(super) facts: UnboundedSender<Fact>,
    pub(super) jitter_seed: u64,
    pub(super) gatekeeper: Arc<dyn Gatekeeper>,
}

/// The observers that run now, each with the look it serves.
#[derive(Default)]
pub(super) struct Observers {
    running: Vec<(Look, Running)>,
    /// The drain is one observer however it goes on: it must not forget what it has seen.
    drain: Option<Drain>,
}

/// A drain under way, and the switch from evicting to deleting.
struct Drain {
    delete: watch::Sender<bool>,
    exclude: Option<LabelSelector>,
    _running: Running,
}

impl Observers {
    /// Starts what is asked for, and ends what is not; a fact that nobody looks at is forgotten.
    pub(super) fn ensure(&mut self, looks: &[Look], eyes: &Eyes, seen: &mut Seen) {
        let moved = moved(self.running.iter().map(|(look, _)| look), looks);
        self.running.retain(|(look, _)| looks.contains(look));
        forget(seen, looks, moved);
        self.ensure_drain(looks, eyes);
        for look in looks {
            if !self.running.iter().any(|(running, _)| running == look) {
                self.running
                    .extend(start(look, eyes).map(|running| (look.clone(), running)));
            }
        }
    }

    fn ensure_drain(&mut self, looks: &[Look], eyes: &Eyes) {
        let wanted = looks.iter().find_map(|look| match look {
            Look::Drain { delete, exclude } => Some((*delete, exclude)),
            Look::Locks { .. }
            | Look::GroupSize { .. }
            | Look::StartGates { .. }
            | Look::Count { .. }
            | Look::Holder { .. }
            | Look::Attachments { .. }
            | Look::Gates { .. } => None,
        });
        let Some((delete, exclude)) = wanted else {
            self.drain = None;
            return;
        };
        // Other pods are to stay now: another drain, which looks at each of them anew.
        self.drain.take_if(|drain| drain.exclude != *exclude);
        let drain = self.drain.get_or_insert_with(|| {
            let (sender, receiver) = watch::channel(false);
            Drain {
                delete: sender,
                exclude: exclude.clone(),
                _running: Running::spawn(drained(eyes.clone(), exclude.clone(), receiver)),
            }
        });
        drain
            .delete
            .send_if_modified(|now| delete && !std::mem::replace(now, true));
    }
}

/// Whether another group's Leases are asked for than before.
fn moved<'a>(mut before: impl Iterator<Item = &'a Look>, now: &[Look]) -> bool {
    match (before.find_map(group_of), now.iter().find_map(group_of)) {
        (Some(before), Some(now)) => before != now,
        (Some(_) | None, None) | (None, Some(_)) => false,
    }
}

fn group_of(look: &Look) -> Option<&GroupName> {
    match look {
        Look::Locks { group, .. } | Look::GroupSize { group } => Some(group),
        Look::Count { .. }
        | Look::StartGates { .. }
        | Look::Holder { .. }
        | Look::Drain { .. }
        | Look::Attachments { .. }
        | Look::Gates { .. } => None,
    }
}

fn start(look: &Look, eyes: &Eyes) -> Option<Running> {
    let eyes = eyes.clone();
    Some(match look {
        Look::Locks { group, slots } => Running::spawn(locks(eyes, group.clone(), *slots)),
        Look::GroupSize { group } => Running::spawn(group_size(eyes, group.clone())),
        Look::Count { lease, .. } => Running::spawn(count(eyes, lease.as_ref().clone())),
        Look::Holder { lease } => Running::spawn(holder(eyes, lease.as_ref().clone())),
        Look::Drain { .. } => return None,
        Look::Attachments { claims } => Running::spawn(attachments(eyes, claims.clone())),
        Look::StartGates { gates } => Running::spawn(start_gates(eyes, gates.clone())),
        Look::Gates { gates, budgets } => {
            Running::spawn(return_gates(eyes, gates.clone(), budgets.clone()))
        }
    })
}

impl Eyes {
    fn tell(&self, fact: Fact) {
        // The loop is gone only when the process ends.
        let _ = self.facts.send(fact);
    }

    /// Reads until it works; trouble is told, and its end too.
    async fn read<T, F>(&self, what: &'static str, mut read: impl FnMut() -> F) -> (T, Now)
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            let sent = self.clock.now();
            match read().await {
                Ok(value) => {
                    self.tell(Fact::Trouble(what, None));
                    return (value, sent);
                }
                Err(error) => self.tell(Fact::Trouble(what, Some(error.in_words()))),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

async fn locks(eyes: Eyes, group: GroupName, slots: u32) {
    let mut known = Slots::new(group.clone());
    let mut pauses = 0;
    let jitter = move || {
        pauses += 1;
        jitter::nth(eyes.jitter_seed, pauses)
    };
    let mut events = std::pin::pin!(eyes.locks.watch(&group, jitter));
    while let Some(event) = events.next().await {
        let trouble = known
            .observe(event, eyes.clock.now())
            .map(|error| error.in_words());
        eyes.tell(Fact::Trouble("watching the group's Leases", trouble));
        let Some(leases) = known.leases() else {
            continue;
        };
        if !leases.is_empty() {
            eyes.tell(Fact::Leases(leases.clone()));
        }
        // At the first sight, and whenever somebody has deleted one.
        if (0..slots).any(|slot| leases.iter().all(|lease| lease.slot != slot)) {
            let make = || eyes.locks.ensure(&group, slots, &leases);
            eyes.read("making the group's Leases", make).await;
        }
    }
}

async fn group_size(eyes: Eyes, group: GroupName) {
    let (size, _) = eyes
        .read("counting the group", || async {
            let policies = policy::policies(&eyes.client).await?;
            eyes.locks.group_size(&group, &policies).await
        })
        .await;
    eyes.tell(Fact::GroupSize(size));
}

async fn count(eyes: Eyes, lease: LeaseSeen) {
    let group = reboot::group_of_lease(&lease.name).unwrap_or_else(GroupName::default_group);
    // The policies too: who is a member, and how many may be out, is as fresh as the count.
    let read = || async {
        let policies = policy::policies(&eyes.client).await?;
        let reads = eyes.locks.count_reads(&lease, &group, &policies).await?;
        Ok((policies, reads))
    };
    let ((policies, reads), sent) = eyes.read("counting who is out", read).await;
    eyes.tell(Fact::Policies(policies));
    let count = dogwatch_core::lock::count(&reads, eyes.locks.holder());
    eyes.tell(Fact::Count(CountSeen {
        count,
        taken: sent.mono,
    }));
}

async fn holder(eyes: Eyes, lease: LeaseSeen) {
    let Some(name) = dogwatch_core::lock::holder_node_name(&lease) else {
        return;
    };
    let read = || eyes.locks.holder_node(&name);
    let what = "reading the holder's Node";
    let first: HolderNode = eyes.read(what, read).await.0;
    let answered = eyes.clock.now().mono;
    eyes.clock
        .sleep_until(answered + BETWEEN_HOLDER_READS)
        .await;
    let (second, sent) = eyes.read(what, read).await;
    eyes.tell(Fact::Holder(HolderSeen {
        lease: lease.name,
        resource_version: lease.resource_version,
        reads: HolderReads {
            nodes: [first, second],
            apart: sent.mono.saturating_sub(answered),
        },
        taken: sent.mono,
    }));
}

async fn drained(eyes: Eyes, exclude: Option<LabelSelector>, mut delete: watch::Receiver<bool>) {
    let clock = eyes.clock.clone();
    let config = DrainConfig {
        exclude,
        ..DrainConfig::default()
    };
    let (client, evicts) = (eyes.client.clone(), eyes.node_client.clone());
    let mut handle =
        drain::Runner::start_as(client, evicts, &eyes.node, config, move || clock.now());
    loop {
        let progress = handle.progress.borrow_and_update().clone();
        eyes.tell(Fact::Drain(progress));
        tokio::select! {
            biased;
            changed = handle.progress.changed() => if changed.is_err() { return },
            Ok(()) = delete.changed() => handle.delete_rest(),
        }
    }
}

async fn attachments(eyes: Eyes, claims: Vec<String>) {
    let mut handle = drain::Attachments::start(eyes.client.clone(), &eyes.node, claims);
    loop {
        let left = handle.left.borrow_and_update().clone();
        if let Some(left) = left {
            eyes.tell(Fact::Attachments(left));
        }
        if handle.left.changed().await.is_err() {
            return;
        }
    }
}

/// The gates of the policy. What cannot be asked is shut, and says why: no retry hides it.
async fn start_gates(eyes: Eyes, gates: Vec<Gate>) {
    loop {
        let taken = eyes.clock.now().mono;
        // All at once: the answer is as old as its first question, and each may take seconds.
        let asked = gates.iter().map(|gate| shut_by(&eyes, gate));
        let shut = futures::future::join_all(asked).await.concat();
        let gates = gates.clone();
        eyes.tell(Fact::StartGates(StartGatesSeen { gates, shut, taken }));
        tokio::time::sleep(ASK_GATES_AGAIN).await;
    }
}

async fn shut_by(eyes: &Eyes, gate: &Gate) -> Vec<String> {
    match gate {
        Gate::Pods { selector } => blocking_pods(eyes, selector).await,
        Gate::Prometheus(gate) => eyes.gatekeeper.prometheus(gate).await,
    }
}

async fn blocking_pods(eyes: &Eyes, selector: &LabelSelector) -> Vec<String> {
    match node::blocking_pods(&eyes.client, &eyes.node, selector).await {
        Ok(pods) => pods,
        Err(error) => vec![format!(
            "the pods of this node cannot be read: {}",
            error.in_words()
        )],
    }
}

async fn return_gates(eyes: Eyes, gates: Vec<ReturnGate>, budgets: Vec<String>) {
    loop {
        let read = || node::shut_gates(&eyes.client, &eyes.node, &gates, &budgets);
        let (shut, _) = eyes.read("looking at the return gates", read).await;
        eyes.tell(Fact::Gates(shut));
        tokio::time::sleep(READ_AGAIN).await;
    }
}
