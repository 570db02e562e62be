//! What is known of each host, for whoever asks: people, the remediator, tests.
//!
//! **Promises:** what is shown is what the keeper itself decides from, at that moment; nothing is shown
//! of hosts that this process does not keep (it does not lead, or they are gone).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dogwatch_core::Now;
use dogwatch_core::power::{
    Config, Decision, Host, HostName, OffProof, Seen, Seniority, Systems, proof,
};
use tokio::sync::watch;

use super::gist::Gist;

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
pub struct PowerBoard(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    spots: Mutex<BTreeMap<HostName, Spot>>,
    is_in_sync: AtomicBool,
    /// Which machines their BMCs say they are.
    systems: Arc<Mutex<Systems>>,
    changes: watch::Sender<u64>,
}

/// One host's place on it. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    place: Arc<Mutex<Place>>,
    systems: Arc<Mutex<Systems>>,
    seniority: Arc<Seniority>,
    changes: watch::Sender<u64>,
}

/// What a keeper knows, and what of it was shown last.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) seen: Seen,
    pub(super) decision: Option<Arc<Decision>>,
    /// The object, to be handed out.
    host: Arc<Host>,
    gist: Option<Gist>,
}

impl PowerBoard {
    /// One host, as it is known now.
    pub fn host(&self, name: &HostName) -> Option<Shown> {
        self.ask(name, |seen, decision| Shown {
            seen: seen.clone(),
            decision: decision.cloned(),
        })
    }

    /// Asks something of one host as it is known now, without a copy. Short: its keeper waits meanwhile.
    pub fn ask<T>(
        &self,
        name: &HostName,
        question: impl FnOnce(&Seen, Option<&Arc<Decision>>) -> T,
    ) -> Option<T> {
        let spot = self.spots().get(name).cloned()?;
        let mut place = spot.lock();
        // Another host's BMC may have told the same a moment ago.
        place.seen.same_system = spot.same_system(name);
        Some(question(&place.seen, place.decision.as_ref()))
    }

    /// The proof that this host is off now, if it is: by two readings that this process made itself, or by
    /// a person's word. To be asked right before what relies on it, for a proof is of its moment.
    pub fn proof(&self, name: &HostName, config: &Config, now: Now) -> Option<OffProof> {
        self.ask(name, |seen, _| proof(seen, config, now))?
    }

    /// All of them, by name.
    pub fn names(&self) -> Vec<HostName> {
        self.spots().keys().cloned().collect()
    }

    /// All of their objects, by name.
    pub fn hosts(&self) -> Vec<Arc<Host>> {
        let spots: Vec<Spot> = self.spots().values().cloned().collect();
        spots
            .iter()
            .map(|spot| Arc::clone(&spot.lock().host))
            .collect()
    }

    /// Whether all hosts that there are stand here: this process leads, and has seen them.
    pub fn is_in_sync(&self) -> bool {
        self.0.is_in_sync.load(Ordering::Acquire)
    }

    /// A number that moves when something of some host is another in a way that matters: its object (more
    /// than the time of its last reading), the table's bit, its proof, the reason of what was decided; and
    /// when hosts come, go, or are in sync.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub(super) fn put(&self, seen: Seen, seniority: Seniority) -> Spot {
        let name = seen.host.name.clone();
        let place = Place {
            host: Arc::clone(&seen.host),
            seen,
            decision: None,
            gist: None,
        };
        let spot = Spot {
            place: Arc::new(Mutex::new(place)),
            systems: Arc::clone(&self.0.systems),
            seniority: Arc::new(seniority),
            changes: self.0.changes.clone(),
        };
        self.spots().insert(name, spot.clone());
        bump(&self.0.changes);
        spot
    }

    pub(super) fn take(&self, name: &HostName) {
        self.spots().remove(name);
        lock(&self.0.systems).remove(name);
        bump(&self.0.changes);
    }

    pub(super) fn clear(&self) {
        self.0.is_in_sync.store(false, Ordering::Release);
        self.spots().clear();
        *lock(&self.0.systems) = Systems::default();
        bump(&self.0.changes);
    }

    /// All hosts were put on it.
    pub(super) fn in_sync(&self) {
        if !self.0.is_in_sync.swap(true, Ordering::AcqRel) {
            bump(&self.0.changes);
        }
    }

    fn spots(&self) -> MutexGuard<'_, BTreeMap<HostName, Spot>> {
        lock(&self.0.spots)
    }
}

impl Spot {
    pub(super) fn lock(&self) -> MutexGuard<'_, Place> {
        lock(&self.place)
    }

    /// Which machine the host's BMC says it is; `None`: it is not known any more, for it has another address.
    pub(super) fn tells(&self, name: &HostName, system_uuid: Option<&str>) {
        lock(&self.systems).put(name, &self.seniority, system_uuid);
    }

    /// The other hosts whose BMCs say that they are the machine that this one's says, and that go before it.
    pub(super) fn same_system(&self, name: &HostName) -> Vec<HostName> {
        lock(&self.systems).before(name)
    }

    /// A decision was made: says so to those who wait, where it is another in a way that matters.
    pub(super) fn show(&self, config: &Config, now: Now) {
        if self.lock().is_news(config, now) {
            bump(&self.changes);
        }
    }
}

impl Place {
    fn is_news(&mut self, config: &Config, now: Now) -> bool {
        let is_other = self.host.resource_version != self.seen.host.resource_version
            && is_more_than_age(&self.host, &self.seen.host);
        if self.host.resource_version != self.seen.host.resource_version {
            self.host = Arc::clone(&self.seen.host);
        }
        let gist = Some(Gist::of(&self.seen, self.decision.as_deref(), config, now));
        let is_told = self.gist == gist;
        self.gist = gist;
        is_other || !is_told
    }
}

/// Whether two versions of a host differ in more than when it was last read.
fn is_more_than_age(old: &Host, new: &Host) -> bool {
    let mut old = old.clone();
    old.resource_version.clone_from(&new.resource_version);
    old.status.power.observed_at = new.status.power.observed_at;
    old != *new
}

fn bump(changes: &watch::Sender<u64>) {
    changes.send_modify(|version| *version = version.wrapping_add(1));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
