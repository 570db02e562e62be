//! State that all lock requests of one process share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::backoff::BackoffRange;
use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::{
    WaitingHost, is_run_answered, process_of_request, request_run_id,
};
use dogwatch_core::name::{GroupName, RunId};
use dogwatch_k8s::lock::{LockClient, PresenceLease};
use dogwatch_runtime::jitter::{fraction_of_bits, seed_of};
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::sync::{Notify, watch};

use super::LockEngineSetup;
use super::queue::GroupQueue;
use super::shared_policies::SharedPolicies;

pub(super) const LOCK_RETRY_PAUSES: BackoffRange =
    BackoffRange::new(Duration::from_millis(200), Duration::from_secs(10));

pub(super) struct LockState {
    pub(super) setup: LockEngineSetup,
    pub(super) presence: PresenceLease,
    /// Whether this replica's Lease exists: before it does, no id of this process may be written.
    pub(super) present: watch::Sender<bool>,
    pub(super) waiters_changed: Notify,
    /// The holders that this replica's Lease names, or named until a moment ago.
    pub(super) advertised: Mutex<BTreeSet<HolderId>>,
    pub(super) policies: SharedPolicies,
    /// Why each request waits, by its number; shown to people.
    pub(super) reasons: Mutex<BTreeMap<u64, WaitingHost>>,
    pub(super) queues: Mutex<BTreeMap<GroupName, Arc<GroupQueue>>>,
    pub(super) stop: watch::Sender<bool>,
    /// Held while this replica's Lease is written or deleted.
    pub(super) presence_writer: tokio::sync::Mutex<()>,
    locks: LockClient,
    numbers: AtomicU64,
    /// Requests without an answer, and those whose leftovers are being removed.
    under_way: Mutex<BTreeSet<u64>>,
    under_way_count: watch::Sender<usize>,
}

impl LockState {
    pub(super) fn new(setup: LockEngineSetup) -> Arc<Self> {
        let nobody = HolderId::for_api_host("nobody");
        let locks = LockClient::new(setup.client.clone(), &setup.namespace, nobody);
        let presence = PresenceLease::new(setup.client.clone(), &setup.namespace, &setup.process);
        Arc::new(Self {
            setup,
            presence,
            present: watch::Sender::new(false),
            waiters_changed: Notify::new(),
            advertised: Mutex::default(),
            policies: SharedPolicies::new(),
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

    pub(super) fn client_for_holder(&self, holder: &HolderId) -> LockClient {
        self.locks.for_holder(holder.clone())
    }

    pub(super) fn lock_client(&self) -> &LockClient {
        &self.locks
    }

    /// Begins a request; returns its number and its run id.
    pub(super) fn begin_request(&self) -> (u64, RunId) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut under_way = lock_ignoring_poison(&self.under_way);
        under_way.insert(number);
        self.under_way_count.send_replace(under_way.len());
        (number, request_run_id(&self.setup.process, number))
    }

    pub(super) fn end_request(&self, number: u64) {
        let mut under_way = lock_ignoring_poison(&self.under_way);
        under_way.remove(&number);
        self.under_way_count.send_replace(under_way.len());
    }

    pub(super) fn count_waiting(&self) -> usize {
        lock_ignoring_poison(&self.under_way).len()
    }

    /// Waits until no request is under way.
    pub(super) async fn wait_until_idle(&self) {
        let mut count = self.under_way_count.subscribe();
        // `self` holds the sender.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// Whether this is an answered request of this very process, and its answer was handed over.
    pub(super) fn was_answer_delivered(&self, run: &RunId) -> bool {
        let number = || run.as_str().rsplit_once('/')?.1.parse::<u64>().ok();
        is_run_answered(run)
            && process_of_request(run) == Some(&self.setup.process)
            && number()
                .is_some_and(|number| !lock_ignoring_poison(&self.under_way).contains(&number))
    }

    pub(super) fn record_waiting_reason(&self, number: u64, host: WaitingHost) {
        let mut reasons = lock_ignoring_poison(&self.reasons);
        if reasons.get(&number) != Some(&host) {
            reasons.insert(number, host);
            self.waiters_changed.notify_one();
        }
    }

    pub(super) fn remove_waiting_reason(&self, number: u64) {
        if lock_ignoring_poison(&self.reasons)
            .remove(&number)
            .is_some()
        {
            self.waiters_changed.notify_one();
        }
    }

    pub(super) async fn wait_for_stop(&self) {
        let mut stop = self.stop.subscribe();
        // `self` holds the sender.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

/// A number between 0 and 1 that differs between processes and requests, to spread waits: the end
/// of SplitMix64 over FNV-1a of the text.
pub(super) fn jitter_of(text: &str) -> f64 {
    let fnv = seed_of(text);
    fraction_of_bits((fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}
