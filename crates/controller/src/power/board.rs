//! What is known of each host, for whoever asks: people, the remediator, tests.
//!
//! **Promises:** what is shown is what the keeper itself decides from, at that moment; nothing is shown
//! of hosts that this process does not keep (it does not lead, or they are gone).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dogwatch_core::Now;
use dogwatch_core::power::{Config, Decision, HostName, OffProof, Seen, proof};

/// One host as its keeper sees it.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What was seen and is remembered.
    pub seen: Seen,
    /// What was last decided of it; `None`: nothing yet.
    pub decision: Option<Arc<Decision>>,
}

/// All hosts that this process keeps. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct PowerBoard(Arc<Mutex<BTreeMap<HostName, Spot>>>);

/// One host's place on it. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Spot(Arc<Mutex<Shown>>);

impl PowerBoard {
    /// One host, as it is known now.
    pub fn host(&self, name: &HostName) -> Option<Shown> {
        let spot = lock(&self.0).get(name).cloned();
        spot.map(|spot| spot.lock().clone())
    }

    /// The proof that this host is off now, if it is: by two readings that this process made itself. To be
    /// asked right before what relies on it, for a proof is of its moment.
    pub fn proof(&self, name: &HostName, config: &Config, now: Now) -> Option<OffProof> {
        let spot = lock(&self.0).get(name).cloned()?;
        let shown = spot.lock();
        proof(&shown.seen, config, now)
    }

    /// All of them, by name.
    pub fn names(&self) -> Vec<HostName> {
        lock(&self.0).keys().cloned().collect()
    }

    pub(super) fn put(&self, seen: Seen) -> Spot {
        let name = seen.host.name.clone();
        let decision = None;
        let spot = Spot(Arc::new(Mutex::new(Shown { seen, decision })));
        lock(&self.0).insert(name, spot.clone());
        spot
    }

    pub(super) fn take(&self, name: &HostName) {
        lock(&self.0).remove(name);
    }

    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }
}

impl Spot {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shown> {
        lock(&self.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
