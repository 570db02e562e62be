//! A counting semaphore with owners for each FleetLock group, and one for the lock API's hosts.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::lock::service::{LockAnswer, LockRequest, LockRequester, LockService, UnlockAnswer};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub holders: BTreeSet<LockRequester>,
    pub queue: VecDeque<(u64, LockRequester)>,
    pub tickets: u64,
    /// The most holders that one group had at once.
    pub most: usize,
}

#[derive(Clone)]
pub struct Semaphore {
    slots: usize,
    now: Arc<watch::Sender<State>>,
    /// The clients that asked, in order.
    pub asked: Arc<Mutex<Vec<LockRequest>>>,
}

impl Semaphore {
    pub fn new(slots: usize) -> Self {
        Self {
            slots,
            now: Arc::new(watch::Sender::default()),
            asked: Arc::default(),
        }
    }

    pub fn now(&self) -> State {
        self.now.borrow().clone()
    }

    pub async fn until(&self, what: &str, seen: impl Fn(&State) -> bool) -> State {
        let mut now = self.now.subscribe();
        let reached = now
            .wait_for(|state| seen(state))
            .map(|state| state.unwrap().clone());
        let done = tokio::time::timeout(super::rig::PATIENCE, reached).await;
        done.unwrap_or_else(|_| panic!("{what}: not yet, {} in the queue", self.now().queue.len()))
    }

    fn take(&self, ticket: u64, client: &LockRequester) -> Option<LockAnswer> {
        let mut answer = None;
        self.now.send_if_modified(|state| {
            if state.holders.contains(client) {
                answer = Some(held("held already"));
                return false;
            }
            let ours = |other: &&LockRequester| group(other) == group(client);
            let first = state.queue.iter().find(|(_, other)| ours(&other));
            let busy = state.holders.iter().filter(ours).count();
            if busy >= self.slots || first.is_none_or(|(first, _)| *first != ticket) {
                return false;
            }
            state.holders.insert(client.clone());
            state.most = state.most.max(busy + 1);
            answer = Some(held("held"));
            true
        });
        answer
    }

    async fn acquire(self, request: LockRequest) -> LockAnswer {
        let place = Place::new(&self, request.client.clone());
        let mut changes = self.now.subscribe();
        loop {
            if let Some(answer) = self.take(place.ticket, &request.client) {
                return answer;
            }
            if !request.wait.may_wait() {
                let why = "others hold it".to_owned();
                return LockAnswer::Busy { why };
            }
            changes.changed().await.unwrap();
        }
    }
}

fn held(why: &str) -> LockAnswer {
    LockAnswer::Held { why: why.into() }
}

fn group(client: &LockRequester) -> Option<&str> {
    match client {
        LockRequester::Api { .. } => None,
        LockRequester::FleetLock { group, .. } => Some(group),
    }
}

/// A place in the queue. Dropping it frees it.
struct Place {
    ticket: u64,
    now: Arc<watch::Sender<State>>,
}

impl Place {
    fn new(semaphore: &Semaphore, client: LockRequester) -> Self {
        let mut ticket = 0;
        semaphore.now.send_modify(|state| {
            state.tickets += 1;
            ticket = state.tickets;
            state.queue.push_back((ticket, client));
        });
        let now = Arc::clone(&semaphore.now);
        Self { ticket, now }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.now
            .send_modify(|state| state.queue.retain(|(ticket, _)| *ticket != self.ticket));
    }
}

/// Hosts with these names get a fixed answer, whatever the semaphore says.
fn scripted(client: &LockRequester) -> Option<LockAnswer> {
    let LockRequester::Api { host } = client else {
        return None;
    };
    let why = "two budgets on one\npod".to_owned();
    match host.as_str() {
        "drain-fails" => Some(LockAnswer::DrainFailed { why }),
        "refused" => Some(LockAnswer::Refused { why }),
        "outside-window" => Some(LockAnswer::NotAllowed {
            why,
            again: Duration::from_mins(90),
        }),
        "too-many" => Some(LockAnswer::TooMany { why }),
        "unavailable" => Some(LockAnswer::Unavailable { why }),
        _ => None,
    }
}

impl LockService for Semaphore {
    fn lock_host(&self, request: LockRequest) -> BoxFuture<'static, LockAnswer> {
        self.asked.lock().unwrap().push(request.clone());
        match scripted(&request.client) {
            Some(answer) => Box::pin(async { answer }),
            None => Box::pin(self.clone().acquire(request)),
        }
    }

    fn unlock_host(&self, client: LockRequester) -> BoxFuture<'static, UnlockAnswer> {
        let why = "not ours to say".to_owned();
        let answer = match client.to_string().as_str() {
            "api/refused" | "fleetlock/default/refused" => UnlockAnswer::Failed { why },
            "api/unavailable" => UnlockAnswer::Unavailable { why },
            _ => {
                self.now
                    .send_if_modified(|state| state.holders.remove(&client));
                let why = "held no more".to_owned();
                UnlockAnswer::Free { why }
            }
        };
        Box::pin(async { answer })
    }
}
