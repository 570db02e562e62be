//! Limits concurrent BMC calls: per BMC and in total, with a separate share that polls cannot fill.
//!
//! **Promises:**
//! - A command, or a reading that a power-off waits for, waits for no poll and no check.
//! - A BMC that did not answer its last call waits in a queue of its own: a hundred of them delay
//!   only one another. A BMC that falls silent holds a permit of the others for one call at most.
//! - No call waits for ever: each permit's call has a deadline, and permits are taken in one order
//!   (BMCs by name, then the total).
//!
//! Urgent calls have ten times the permits of routine calls: a waiting call costs a socket and a
//! few KiB. Child processes cost 60 to 400 ms of processor time (facts: `docs/numbers.md`), so they
//! have fewer permits of their own.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use dogwatch_core::power::CallCost;
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Concurrent calls of each priority to one BMC. Hosts may share a BMC (the systems of a chassis,
/// the outlets of a PDU). One host sends at most one command, one poll and one urgent reading at a
/// time.
const MAX_CALLS_PER_BMC: usize = 4;

/// Secrets that are read at a time for routine work: a new leader with 10,000 hosts reads 10,000,
/// and hosts that have to go off must not wait for them.
const MAX_ROUTINE_SECRET_READS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// A command, or a reading that a power-off waits for.
    Urgent,
    /// A poll or a check.
    Routine,
}

#[derive(Debug, Clone)]
pub(super) struct BmcConcurrency(Arc<BmcConcurrencyState>);

#[derive(Debug)]
struct BmcConcurrencyState {
    urgent: PrioritySemaphores,
    routine: PrioritySemaphores,
    bmcs: Mutex<BTreeMap<String, Weak<SharedBmc>>>,
    secrets: Arc<Semaphore>,
}

/// One BMC, which several hosts may share.
#[derive(Debug)]
pub(super) struct SharedBmc {
    name: String,
    urgent: Arc<Semaphore>,
    routine: Arc<Semaphore>,
    is_silent: AtomicBool,
}

/// A permit for one call. Dropping it gives it up.
#[derive(Debug)]
pub(super) struct BmcCallPermit {
    _bmcs: Vec<OwnedSemaphorePermit>,
    _lane: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct PrioritySemaphores {
    requests: BmcSemaphores,
    processes: BmcSemaphores,
}

#[derive(Debug)]
struct BmcSemaphores {
    answering: Arc<Semaphore>,
    silent: Arc<Semaphore>,
}

impl BmcConcurrency {
    /// `max` polls and checks at a time (`--bmc-max-concurrent`).
    pub(super) fn new(max: NonZeroUsize) -> Self {
        let max = max.get();
        Self(Arc::new(BmcConcurrencyState {
            urgent: PrioritySemaphores {
                requests: BmcSemaphores::new(max.saturating_mul(10), max.saturating_mul(10)),
                processes: BmcSemaphores::new(max, max.div_ceil(4)),
            },
            routine: PrioritySemaphores {
                requests: BmcSemaphores::new(max, max.div_ceil(4)),
                processes: BmcSemaphores::new(max.div_ceil(4), max.div_ceil(16)),
            },
            bmcs: Mutex::default(),
            secrets: Arc::new(Semaphore::new(MAX_ROUTINE_SECRET_READS)),
        }))
    }

    /// The BMC of this name, shared with all other hosts that use it.
    pub(super) fn bmc_of_name(&self, name: &str) -> Arc<SharedBmc> {
        let mut bmcs = lock_ignoring_poison(&self.0.bmcs);
        if let Some(bmc) = bmcs.get(name).and_then(Weak::upgrade) {
            return bmc;
        }
        if bmcs.len().is_power_of_two() {
            bmcs.retain(|_, bmc| bmc.strong_count() > 0);
        }
        let bmc = Arc::new(SharedBmc::new(name));
        bmcs.insert(name.to_owned(), Arc::downgrade(&bmc));
        bmc
    }

    /// Waits for a permit to read Secrets; urgent work needs none.
    pub(super) async fn acquire_secret_permit(
        &self,
        errand: Priority,
    ) -> Option<OwnedSemaphorePermit> {
        match errand {
            Priority::Urgent => None,
            Priority::Routine => Some(acquire_permit(&self.0.secrets).await),
        }
    }

    /// Waits for a permit to call these BMCs together.
    pub(super) async fn acquire_call_permit(
        &self,
        bmcs: &[Arc<SharedBmc>],
        errand: Priority,
        cost: CallCost,
    ) -> BmcCallPermit {
        let mut in_order: Vec<&Arc<SharedBmc>> = bmcs.iter().collect();
        in_order.sort_by(|a, b| a.name.cmp(&b.name));
        in_order.dedup_by(|a, b| a.name == b.name);
        let mut places = Vec::with_capacity(in_order.len());
        for bmc in in_order {
            places.push(acquire_permit(bmc.semaphore_for(errand)).await);
        }
        let is_silent = bmcs.iter().any(|bmc| bmc.is_silent());
        let lane = match errand {
            Priority::Urgent => &self.0.urgent,
            Priority::Routine => &self.0.routine,
        };
        BmcCallPermit {
            _bmcs: places,
            _lane: acquire_permit(lane.semaphore_for(cost, is_silent)).await,
        }
    }
}

impl SharedBmc {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            urgent: Arc::new(Semaphore::new(MAX_CALLS_PER_BMC)),
            routine: Arc::new(Semaphore::new(MAX_CALLS_PER_BMC)),
            is_silent: AtomicBool::new(false),
        }
    }

    /// Records whether the last call was answered at all.
    pub(super) fn record_answered(&self, there_was_an_answer: bool) {
        self.is_silent
            .store(!there_was_an_answer, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    fn semaphore_for(&self, errand: Priority) -> &Arc<Semaphore> {
        match errand {
            Priority::Urgent => &self.urgent,
            Priority::Routine => &self.routine,
        }
    }
}

impl PrioritySemaphores {
    fn semaphore_for(&self, cost: CallCost, is_silent: bool) -> &Arc<Semaphore> {
        let queues = match cost {
            CallCost::Request => &self.requests,
            CallCost::Process => &self.processes,
        };
        if is_silent {
            &queues.silent
        } else {
            &queues.answering
        }
    }
}

impl BmcSemaphores {
    fn new(answering: usize, silent: usize) -> Self {
        let places = |places: usize| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self {
            answering: places(answering),
            silent: places(silent),
        }
    }
}

async fn acquire_permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(semaphore).acquire_owned().await;
    permit.expect("lanes are never closed")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn lanes(max: usize) -> BmcConcurrency {
        BmcConcurrency::new(NonZeroUsize::new(max).unwrap())
    }

    fn now(
        lanes: &BmcConcurrency,
        bmcs: &[Arc<SharedBmc>],
        errand: Priority,
    ) -> Option<BmcCallPermit> {
        lanes
            .acquire_call_permit(bmcs, errand, CallCost::Request)
            .now_or_never()
    }

    #[test]
    fn a_power_off_waits_for_no_poll() {
        let lanes = lanes(2);
        let polls: Vec<_> = (0..3)
            .map(|n| {
                now(
                    &lanes,
                    &[lanes.bmc_of_name(&n.to_string())],
                    Priority::Routine,
                )
            })
            .collect();
        assert!(polls[1].is_some() && polls[2].is_none());
        let busy = lanes.bmc_of_name("0");
        assert!(now(&lanes, &[busy], Priority::Urgent).is_some());
    }

    #[test]
    fn silent_bmcs_hold_no_place_of_those_that_answer() {
        let lanes = lanes(8);
        let silent: Vec<_> = (0..40)
            .map(|n| lanes.bmc_of_name(&format!("silent-{n}")))
            .collect();
        for bmc in &silent {
            bmc.record_answered(false);
        }
        for (errand, places) in [(Priority::Urgent, 40), (Priority::Routine, 2)] {
            let hung = silent.iter();
            let hung: Vec<_> = hung
                .filter_map(|bmc| now(&lanes, &[Arc::clone(bmc)], errand))
                .collect();
            assert_eq!(hung.len(), places);
            let healthy: Vec<_> = (0..8)
                .map(|n| now(&lanes, &[lanes.bmc_of_name(&n.to_string())], errand))
                .collect();
            assert!(healthy.iter().all(Option::is_some), "{errand:?}");
        }
    }

    #[test]
    fn a_bmc_that_answers_again_is_out_of_the_queue_of_the_silent() {
        let lanes = lanes(1);
        let (a, b) = (lanes.bmc_of_name("a"), lanes.bmc_of_name("b"));
        a.record_answered(false);
        b.record_answered(false);
        let _a = now(&lanes, &[a], Priority::Routine).unwrap();
        assert!(now(&lanes, &[Arc::clone(&b)], Priority::Routine).is_none());
        b.record_answered(true);
        assert!(now(&lanes, &[b], Priority::Routine).is_some());
    }

    #[test]
    fn one_bmc_has_a_limit_whoever_speaks_to_it_and_gets_its_places_back() {
        let lanes = lanes(100);
        let pdu = lanes.bmc_of_name("pdu");
        assert!(Arc::ptr_eq(&pdu, &lanes.bmc_of_name("pdu")));
        let mut places: Vec<_> = (0..MAX_CALLS_PER_BMC)
            .map(|_| now(&lanes, &[lanes.bmc_of_name("pdu")], Priority::Urgent).unwrap())
            .collect();
        assert!(now(&lanes, &[Arc::clone(&pdu)], Priority::Urgent).is_none());
        places.pop();
        assert!(now(&lanes, &[pdu], Priority::Urgent).is_some());
    }

    #[test]
    fn secrets_of_hosts_at_rest_are_read_in_turn_and_those_of_others_at_once() {
        let lanes = lanes(1);
        let turn = |errand| lanes.acquire_secret_permit(errand).now_or_never();
        let turns: Vec<_> = (0..=MAX_ROUTINE_SECRET_READS)
            .map(|_| turn(Priority::Routine))
            .collect();
        assert!(
            turns[MAX_ROUTINE_SECRET_READS - 1].is_some()
                && turns[MAX_ROUTINE_SECRET_READS].is_none()
        );
        assert!(turn(Priority::Urgent).is_some());
    }

    #[test]
    fn a_device_that_is_named_twice_takes_one_place() {
        let lanes = lanes(100);
        let twice = [lanes.bmc_of_name("pdu"), lanes.bmc_of_name("pdu")];
        let places: Vec<_> = (0..MAX_CALLS_PER_BMC)
            .map(|_| now(&lanes, &twice, Priority::Urgent))
            .collect();
        assert!(places.iter().all(Option::is_some));
    }

    #[test]
    fn bmcs_that_nobody_speaks_to_are_forgotten() {
        let lanes = lanes(1);
        for n in 0..1000 {
            lanes.bmc_of_name(&n.to_string());
        }
        let kept = lanes.0.bmcs.lock().unwrap().len();
        assert!(kept <= 2, "{kept}");
    }

    #[tokio::test]
    async fn two_hosts_with_the_same_two_pdus_never_wait_for_each_other_for_ever() {
        let lanes = lanes(1);
        let (a, b) = (lanes.bmc_of_name("a"), lanes.bmc_of_name("b"));
        let there = [Arc::clone(&a), Arc::clone(&b)];
        let back = [b, a];
        let turns = (0..100).map(|n| {
            let (lanes, bmcs) = (lanes.clone(), if n % 2 == 0 { &there } else { &back });
            async move {
                let place = lanes
                    .acquire_call_permit(bmcs, Priority::Urgent, CallCost::Process)
                    .await;
                tokio::task::yield_now().await;
                drop(place);
            }
        });
        futures::future::join_all(turns).await;
    }
}
