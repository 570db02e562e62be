//! Shows what the power controller knows of each host: to the remediator, to other parts, and to
//! tests.
//!
//! **Promises:** it shows exactly what the host's reconciler decides from at that moment. It shows
//! nothing of hosts that this process does not manage (it does not lead, or they are gone).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_core::Now;
use dogwatch_core::power::{
    HostName, HostSeniority, HostSnapshot, PowerConfig, PowerDecision, PowerOffProof,
    PowerSnapshot, SharedSystemIds, find_off_proof,
};
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::sync::watch;

use super::host_summary::HostSummary;

/// One host as its reconciler sees it.
#[derive(Debug, Clone)]
pub struct RegisteredHost {
    /// The current observations and memory.
    pub seen: PowerSnapshot,
    /// The last decision; `None` before the first.
    pub decision: Option<Arc<PowerDecision>>,
}

/// All hosts that this process manages.
#[derive(Debug, Clone, Default)]
pub struct HostRegistry(Arc<HostRegistryState>);

#[derive(Debug, Default)]
struct HostRegistryState {
    spots: Mutex<BTreeMap<HostName, HostEntry>>,
    is_in_sync: AtomicBool,
    /// Which machine each BMC says it belongs to.
    systems: Arc<Mutex<SharedSystemIds>>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct HostEntry {
    place: Arc<Mutex<HostEntryState>>,
    systems: Arc<Mutex<SharedSystemIds>>,
    seniority: Arc<HostSeniority>,
    changes: watch::Sender<u64>,
}

/// What the reconciler knows, and the summary that was last published.
#[derive(Debug)]
pub(super) struct HostEntryState {
    pub(super) seen: PowerSnapshot,
    pub(super) decision: Option<Arc<PowerDecision>>,
    /// The object as last handed out to others.
    host: Arc<HostSnapshot>,
    gist: Option<HostSummary>,
}

impl HostRegistry {
    /// A copy of one host's current state.
    pub fn find_host(&self, name: &HostName) -> Option<RegisteredHost> {
        self.inspect_host(name, |seen, decision| RegisteredHost {
            seen: seen.clone(),
            decision: decision.cloned(),
        })
    }

    /// Reads one host's current state without a copy. Keep `question` short: the host's reconciler
    /// waits meanwhile.
    pub fn inspect_host<T>(
        &self,
        name: &HostName,
        question: impl FnOnce(&PowerSnapshot, Option<&Arc<PowerDecision>>) -> T,
    ) -> Option<T> {
        let spot = self.lock_entries().get(name).cloned()?;
        let mut place = spot.lock_state();
        // Another host's BMC may have reported the same machine a moment ago.
        place.seen.same_system = spot.hosts_of_same_system(name);
        Some(question(&place.seen, place.decision.as_ref()))
    }

    /// The proof that this host is off now, if there is one: two readings that this process made
    /// itself, or a person's confirmation. Ask right before the action that relies on it, because a
    /// proof holds only for its moment.
    pub fn off_proof_of(
        &self,
        name: &HostName,
        config: &PowerConfig,
        now: Now,
    ) -> Option<PowerOffProof> {
        self.inspect_host(name, |seen, _| find_off_proof(seen, config, now))?
    }

    pub fn host_names(&self) -> Vec<HostName> {
        self.lock_entries().keys().cloned().collect()
    }

    /// All host objects, sorted by name.
    pub fn list_hosts(&self) -> Vec<Arc<HostSnapshot>> {
        let spots: Vec<HostEntry> = self.lock_entries().values().cloned().collect();
        spots
            .iter()
            .map(|spot| Arc::clone(&spot.lock_state().host))
            .collect()
    }

    /// The host objects for which `is_wanted` is true. Nothing else is copied.
    pub fn select_hosts(
        &self,
        is_wanted: impl Fn(&HostSnapshot) -> bool,
    ) -> Vec<Arc<HostSnapshot>> {
        let entries = self.lock_entries();
        let states = entries.values().map(HostEntry::lock_state);
        let hosts = states.map(|state| Arc::clone(&state.host));
        hosts.filter(|host| is_wanted(host)).collect()
    }

    /// Whether the registry holds all hosts that exist: this process leads, and has listed them.
    pub fn is_in_sync(&self) -> bool {
        self.0.is_in_sync.load(Ordering::Acquire)
    }

    /// A number that changes when a host changes in a way that matters: its object (more than the
    /// time of its last reading), its owner, its power state, its proof, or the reason of its
    /// decision; and when hosts are added, removed or in sync.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub(super) fn add_host(&self, seen: PowerSnapshot, seniority: HostSeniority) -> HostEntry {
        let name = seen.host.name.clone();
        let place = HostEntryState {
            host: Arc::clone(&seen.host),
            seen,
            decision: None,
            gist: None,
        };
        let spot = HostEntry {
            place: Arc::new(Mutex::new(place)),
            systems: Arc::clone(&self.0.systems),
            seniority: Arc::new(seniority),
            changes: self.0.changes.clone(),
        };
        self.lock_entries().insert(name, spot.clone());
        notify_change(&self.0.changes);
        spot
    }

    pub(super) fn remove_host(&self, name: &HostName) {
        self.lock_entries().remove(name);
        lock_ignoring_poison(&self.0.systems).remove_host(name);
        notify_change(&self.0.changes);
    }

    pub(super) fn clear(&self) {
        self.0.is_in_sync.store(false, Ordering::Release);
        self.lock_entries().clear();
        *lock_ignoring_poison(&self.0.systems) = SharedSystemIds::default();
        notify_change(&self.0.changes);
    }

    /// Call this after all hosts were added.
    pub(super) fn mark_in_sync(&self) {
        if !self.0.is_in_sync.swap(true, Ordering::AcqRel) {
            notify_change(&self.0.changes);
        }
    }

    fn lock_entries(&self) -> MutexGuard<'_, BTreeMap<HostName, HostEntry>> {
        lock_ignoring_poison(&self.0.spots)
    }
}

impl HostEntry {
    pub(super) fn lock_state(&self) -> MutexGuard<'_, HostEntryState> {
        lock_ignoring_poison(&self.place)
    }

    /// Which machine the host's BMC says it belongs to. `None`: not known any more, because the
    /// BMC's address changed.
    pub(super) fn record_system_uuid(&self, name: &HostName, system_uuid: Option<&str>) {
        lock_ignoring_poison(&self.systems).put_host(name, &self.seniority, system_uuid);
    }

    /// The other hosts whose BMCs report the same machine as this host's, and that have seniority
    /// over it.
    pub(super) fn hosts_of_same_system(&self, name: &HostName) -> Vec<HostName> {
        lock_ignoring_poison(&self.systems).senior_hosts(name)
    }

    /// Publishes a change after a decision, if the host changed in a way that matters.
    pub(super) fn notify_if_changed(&self, config: &PowerConfig, now: Now) {
        if self.lock_state().refresh_summary(config, now) {
            notify_change(&self.changes);
        }
    }
}

impl HostEntryState {
    fn refresh_summary(&mut self, config: &PowerConfig, now: Now) -> bool {
        let is_other = self.host.resource_version != self.seen.host.resource_version
            && differs_beyond_age(&self.host, &self.seen.host);
        if self.host.resource_version != self.seen.host.resource_version {
            self.host = Arc::clone(&self.seen.host);
        }
        let gist = Some(HostSummary::summarize(
            &self.seen,
            self.decision.as_deref(),
            config,
            now,
        ));
        let is_told = self.gist == gist;
        self.gist = gist;
        is_other || !is_told
    }
}

/// Whether two versions of a host differ in more than the time of the last reading.
fn differs_beyond_age(old: &HostSnapshot, new: &HostSnapshot) -> bool {
    let mut old = old.clone();
    old.resource_version.clone_from(&new.resource_version);
    old.status.power.observed_at = new.status.power.observed_at;
    old != *new
}

fn notify_change(changes: &watch::Sender<u64>) {
    changes.send_modify(|version| *version = version.wrapping_add(1));
}
