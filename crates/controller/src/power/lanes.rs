//! Who may speak to BMCs now: a limit for each BMC and one over all, and a lane that polls cannot fill.
//!
//! **Promises:**
//! - A command, and a reading that a power-off waits for, waits for no poll and no check.
//! - A BMC that did not answer its last call waits in a queue of its own: a hundred of them delay one
//!   another, and nobody else. One that falls silent holds a place of the others for one call at most.
//! - Nobody waits for ever: whoever has a place has a deadline, and places are taken in one order
//!   (BMCs by name, then the lane).
//!
//! The lane of commands has ten times the places of the lane of polls: what waits there is a socket and
//! a few KiB each. Child processes cost 60 to 400 ms of processor time (facts: `docs/numbers.md`), so
//! that they have places of their own, fewer.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use dogwatch_core::power::Cost;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls of each lane one BMC has at a time. Hosts may share a BMC (the systems of a chassis,
/// the outlets of a PDU); the host itself sends one command, one poll and one urgent reading at a time.
const PER_BMC: usize = 4;

/// How many Secrets are read at a time for nothing that presses: a leader that begins with 10,000 hosts
/// reads 10,000, and whoever is held off must not wait for them.
const SECRETS: usize = 16;

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// A command, or a reading that a power-off waits for.
    Urgent,
    /// A poll or a check.
    Routine,
}

/// All lanes of the process. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Lanes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    urgent: Lane,
    routine: Lane,
    bmcs: Mutex<BTreeMap<String, Weak<Bmc>>>,
    secrets: Arc<Semaphore>,
}

/// One BMC as others may share it.
#[derive(Debug)]
pub(super) struct Bmc {
    name: String,
    urgent: Arc<Semaphore>,
    routine: Arc<Semaphore>,
    is_silent: AtomicBool,
}

/// A place; given up when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _bmcs: Vec<OwnedSemaphorePermit>,
    _lane: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Lane {
    requests: Queues,
    processes: Queues,
}

#[derive(Debug)]
struct Queues {
    answering: Arc<Semaphore>,
    silent: Arc<Semaphore>,
}

impl Lanes {
    /// With so many polls and checks at a time (`--bmc-max-concurrent`).
    pub(super) fn new(max: NonZeroUsize) -> Self {
        let max = max.get();
        Self(Arc::new(Shared {
            urgent: Lane {
                requests: Queues::new(max.saturating_mul(10), max.saturating_mul(10)),
                processes: Queues::new(max, max.div_ceil(4)),
            },
            routine: Lane {
                requests: Queues::new(max, max.div_ceil(4)),
                processes: Queues::new(max.div_ceil(4), max.div_ceil(16)),
            },
            bmcs: Mutex::default(),
            secrets: Arc::new(Semaphore::new(SECRETS)),
        }))
    }

    /// The BMC of this name, whoever else speaks to it.
    pub(super) fn bmc(&self, name: &str) -> Arc<Bmc> {
        let mut bmcs = self.0.bmcs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bmc) = bmcs.get(name).and_then(Weak::upgrade) {
            return bmc;
        }
        if bmcs.len().is_power_of_two() {
            bmcs.retain(|_, bmc| bmc.strong_count() > 0);
        }
        let bmc = Arc::new(Bmc::new(name));
        bmcs.insert(name.to_owned(), Arc::downgrade(&bmc));
        bmc
    }

    /// Waits for its turn to read Secrets; what presses needs none.
    pub(super) async fn secrets(&self, errand: Errand) -> Option<OwnedSemaphorePermit> {
        match errand {
            Errand::Urgent => None,
            Errand::Routine => Some(take(&self.0.secrets).await),
        }
    }

    /// Waits for a place to speak to these BMCs together.
    pub(super) async fn enter(&self, bmcs: &[Arc<Bmc>], errand: Errand, cost: Cost) -> Place {
        let mut in_order: Vec<&Arc<Bmc>> = bmcs.iter().collect();
        in_order.sort_by(|a, b| a.name.cmp(&b.name));
        in_order.dedup_by(|a, b| a.name == b.name);
        let mut places = Vec::with_capacity(in_order.len());
        for bmc in in_order {
            places.push(take(bmc.lane(errand)).await);
        }
        let is_silent = bmcs.iter().any(|bmc| bmc.is_silent());
        let lane = match errand {
            Errand::Urgent => &self.0.urgent,
            Errand::Routine => &self.0.routine,
        };
        Place {
            _bmcs: places,
            _lane: take(lane.queue(cost, is_silent)).await,
        }
    }
}

impl Bmc {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            urgent: Arc::new(Semaphore::new(PER_BMC)),
            routine: Arc::new(Semaphore::new(PER_BMC)),
            is_silent: AtomicBool::new(false),
        }
    }

    /// How the last call ended: whether there was an answer at all.
    pub(super) fn answered(&self, there_was_an_answer: bool) {
        self.is_silent
            .store(!there_was_an_answer, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    fn lane(&self, errand: Errand) -> &Arc<Semaphore> {
        match errand {
            Errand::Urgent => &self.urgent,
            Errand::Routine => &self.routine,
        }
    }
}

impl Lane {
    fn queue(&self, cost: Cost, is_silent: bool) -> &Arc<Semaphore> {
        let queues = match cost {
            Cost::Request => &self.requests,
            Cost::Process => &self.processes,
        };
        if is_silent {
            &queues.silent
        } else {
            &queues.answering
        }
    }
}

impl Queues {
    fn new(answering: usize, silent: usize) -> Self {
        let places = |places: usize| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self {
            answering: places(answering),
            silent: places(silent),
        }
    }
}

async fn take(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(semaphore).acquire_owned().await;
    permit.expect("lanes are never closed")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn lanes(max: usize) -> Lanes {
        Lanes::new(NonZeroUsize::new(max).unwrap())
    }

    fn now(lanes: &Lanes, bmcs: &[Arc<Bmc>], errand: Errand) -> Option<Place> {
        lanes.enter(bmcs, errand, Cost::Request).now_or_never()
    }

    #[test]
    fn a_power_off_waits_for_no_poll() {
        let lanes = lanes(2);
        let polls: Vec<_> = (0..3)
            .map(|n| now(&lanes, &[lanes.bmc(&n.to_string())], Errand::Routine))
            .collect();
        assert!(polls[1].is_some() && polls[2].is_none());
        let busy = lanes.bmc("0");
        assert!(now(&lanes, &[busy], Errand::Urgent).is_some());
    }

    #[test]
    fn silent_bmcs_hold_no_place_of_those_that_answer() {
        let lanes = lanes(8);
        let silent: Vec<_> = (0..40).map(|n| lanes.bmc(&format!("silent-{n}"))).collect();
        for bmc in &silent {
            bmc.answered(false);
        }
        for (errand, places) in [(Errand::Urgent, 40), (Errand::Routine, 2)] {
            let hung = silent.iter();
            let hung: Vec<_> = hung
                .filter_map(|bmc| now(&lanes, &[Arc::clone(bmc)], errand))
                .collect();
            assert_eq!(hung.len(), places);
            let healthy: Vec<_> = (0..8)
                .map(|n| now(&lanes, &[lanes.bmc(&n.to_string())], errand))
                .collect();
            assert!(healthy.iter().all(Option::is_some), "{errand:?}");
        }
    }

    #[test]
    fn a_bmc_that_answers_again_is_out_of_the_queue_of_the_silent() {
        let lanes = lanes(1);
        let (a, b) = (lanes.bmc("a"), lanes.bmc("b"));
        a.answered(false);
        b.answered(false);
        let _a = now(&lanes, &[a], Errand::Routine).unwrap();
        assert!(now(&lanes, &[Arc::clone(&b)], Errand::Routine).is_none());
        b.answered(true);
        assert!(now(&lanes, &[b], Errand::Routine).is_some());
    }

    #[test]
    fn one_bmc_has_a_limit_whoever_speaks_to_it_and_gets_its_places_back() {
        let lanes = lanes(100);
        let pdu = lanes.bmc("pdu");
        assert!(Arc::ptr_eq(&pdu, &lanes.bmc("pdu")));
        let mut places: Vec<_> = (0..PER_BMC)
            .map(|_| now(&lanes, &[lanes.bmc("pdu")], Errand::Urgent).unwrap())
            .collect();
        assert!(now(&lanes, &[Arc::clone(&pdu)], Errand::Urgent).is_none());
        places.pop();
        assert!(now(&lanes, &[pdu], Errand::Urgent).is_some());
    }

    #[test]
    fn secrets_of_hosts_at_rest_are_read_in_turn_and_those_of_others_at_once() {
        let lanes = lanes(1);
        let turn = |errand| lanes.secrets(errand).now_or_never();
        let turns: Vec<_> = (0..=SECRETS).map(|_| turn(Errand::Routine)).collect();
        assert!(turns[SECRETS - 1].is_some() && turns[SECRETS].is_none());
        assert!(turn(Errand::Urgent).is_some());
    }

    #[test]
    fn a_device_that_is_named_twice_takes_one_place() {
        let lanes = lanes(100);
        let twice = [lanes.bmc("pdu"), lanes.bmc("pdu")];
        let places: Vec<_> = (0..PER_BMC)
            .map(|_| now(&lanes, &twice, Errand::Urgent))
            .collect();
        assert!(places.iter().all(Option::is_some));
    }

    #[test]
    fn bmcs_that_nobody_speaks_to_are_forgotten() {
        let lanes = lanes(1);
        for n in 0..1000 {
            lanes.bmc(&n.to_string());
        }
        let kept = lanes.0.bmcs.lock().unwrap().len();
        assert!(kept <= 2, "{kept}");
    }

    #[tokio::test]
    async fn two_hosts_with_the_same_two_pdus_never_wait_for_each_other_for_ever() {
        let lanes = lanes(1);
        let (a, b) = (lanes.bmc("a"), lanes.bmc("b"));
        let there = [Arc::clone(&a), Arc::clone(&b)];
        let back = [b, a];
        let turns = (0..100).map(|n| {
            let (lanes, bmcs) = (lanes.clone(), if n % 2 == 0 { &there } else { &back });
            async move {
                let place = lanes.enter(bmcs, Errand::Urgent, Cost::Process).await;
                tokio::task::yield_now().await;
                drop(place);
            }
        });
        futures::future::join_all(turns).await;
    }
}
