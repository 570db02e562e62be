//! What all requests of one process share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::{WaitingHost, is_answered, request_process, request_run};
use dogwatch_core::name::{GroupName, RunId};
use dogwatch_core::policy::Policies;
use dogwatch_k8s::lock::{LockClient, Presence};
use dogwatch_process::jitter::{fraction, seed_of};
use tokio::sync::{Notify, watch};

use super::Setup;
use super::queue::Queue;

/// Pauses after a call that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Shared {
    pub(super) setup: Setup,
    pub(super) presence: Presence,
    /// Whether this replica's Lease stands: before it does no id of ours may be written.
    pub(super) present: watch::Sender<bool>,
    /// Who waits has changed.
    pub(super) waiters_changed: Notify,
    /// Whom this replica's Lease names, or did until a moment ago.
    pub(super) advertised: Mutex<BTreeSet<HolderId>>,
    pub(super) policies: watch::Sender<Policies>,
    /// Why each request waits, by its number: for people.
    pub(super) reasons: Mutex<BTreeMap<u64, WaitingHost>>,
    pub(super) queues: Mutex<BTreeMap<GroupName, Arc<Queue>>>,
    pub(super) stop: watch::Sender<bool>,
    /// Whoever writes this replica's Lease, or takes it away.
    pub(super) presence_writer: tokio::sync::Mutex<()>,
    locks: LockClient,
    numbers: AtomicU64,
    /// Requests that were not answered, and what is cleaned up after them.
    under_way: Mutex<BTreeSet<u64>>,
    under_way_count: watch::Sender<usize>,
}

impl Shared {
    pub(super) fn new(setup: Setup) -> Arc<Self> {
        let nobody = HolderId::api("nobody");
        let locks = LockClient::new(setup.client.clone(), &setup.namespace, nobody);
        let presence = Presence::new(setup.client.clone(), &setup.namespace, &setup.process);
        Arc::new(Self {
            setup,
            presence,
            present: watch::Sender::new(false),
            waiters_changed: Notify::new(),
            advertised: Mutex::default(),
            policies: watch::Sender::new(Policies::NotYet),
            reasons: Mutex::default(),
            queues: Mutex::default(),
            stop: watch::Sender::new(false),
            presence_writer: tokio::sync::Mutex::default(),
            locks,
            numbers: AtomicU64::new(0),
            under_way: Mutex::default(),
            under_way_count: watch::Sender::new(0),
        })
    }

    pub(super) fn now(&self) -> Now {
        self.setup.clock.now()
    }

    /// The hand of this holder.
    pub(super) fn hand(&self, holder: &HolderId) -> LockClient {
        self.locks.of(holder.clone())
    }

    pub(super) fn locks(&self) -> &LockClient {
        &self.locks
    }

    /// A new request: its number and its run id.
    pub(super) fn begin(&self) -> (u64, RunId) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut under_way = guard(&self.under_way);
        under_way.insert(number);
        self.under_way_count.send_replace(under_way.len());
        (number, request_run(&self.setup.process, number))
    }

    /// Nothing of this request is under way any more.
    pub(super) fn end(&self, number: u64) {
        let mut under_way = guard(&self.under_way);
        under_way.remove(&number);
        self.under_way_count.send_replace(under_way.len());
    }

    pub(super) fn waiting(&self) -> usize {
        guard(&self.under_way).len()
    }

    /// Waits until nothing is under way.
    pub(super) async fn idle(&self) {
        let mut count = self.under_way_count.subscribe();
        // Its sender is here.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// Whether this is an answered request of this very process, and its answer was handed over.
    pub(super) fn returned(&self, run: &RunId) -> bool {
        let number = || run.as_str().rsplit_once('/')?.1.parse::<u64>().ok();
        is_answered(run)
            && request_process(run) == Some(&self.setup.process)
            && number().is_some_and(|number| !guard(&self.under_way).contains(&number))
    }

    /// Why this request waits, for people to see.
    pub(super) fn waits(&self, number: u64, host: WaitingHost) {
        let mut reasons = guard(&self.reasons);
        if reasons.get(&number) != Some(&host) {
            reasons.insert(number, host);
            self.waiters_changed.notify_one();
        }
    }

    /// It does not wait any more.
    pub(super) fn waits_no_more(&self, number: u64) {
        if guard(&self.reasons).remove(&number).is_some() {
            self.waiters_changed.notify_one();
        }
    }

    /// The policies are so now.
    pub(super) fn saw_policies(&self, now: Policies) {
        self.policies.send_if_modified(|policies| {
            let changed = *policies != now;
            *policies = now;
            changed
        });
    }

    /// Ends when the process is to end.
    pub(super) async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // Its sender is here.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

/// A lock that nothing here holds while it panics.
pub(super) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pauses between tries, each twice as long as the one before.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}

/// A number between 0 and 1 that differs between processes and requests, to spread waits: the end of
/// SplitMix64 over FNV-1a of the text.
pub(super) fn jitter(text: &str) -> f64 {
    let fnv = seed_of(text);
    fraction((fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}
