//! A counting semaphore with owners for each FleetLock group, and one for the hosts of the lock API.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::lock::service::{Client, LockAnswer, LockRequest, LockService, UnlockAnswer};

/// What it looks like at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub holders: BTreeSet<Client>,
    pub queue: VecDeque<(u64, Client)>,
    pub tickets: u64,
    /// Most holders at once, of one group.
    pub most: usize,
}

#[derive(Clone)]
pub struct Semaphore {
    slots: usize,
    now: Arc<watch::Sender<State>>,
    /// Which clients asked, in order.
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

    /// Waits for something to be seen.
    pub async fn until(&self, what: &str, seen: impl Fn(&State) -> bool) -> State {
        let mut now = self.now.subscribe();
        let reached = now
            .wait_for(|state| seen(state))
            .map(|state| state.unwrap().clone());
        let done = tokio::time::timeout(super::rig::PATIENCE, reached).await;
        done.unwrap_or_else(|_| panic!("{what}: not yet, {} in the queue", self.now().queue.len()))
    }

    fn take(&self, ticket: u64, client: &Client) -> Option<LockAnswer> {
        let mut answer = None;
        self.now.send_if_modified(|state| {
            if state.holders.contains(client) {
                answer = Some(held("held already"));
                return false;
            }
            let ours = |other: &&Client| group(other) == group(client);
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
            if !request.wait.is_some() {
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

fn group(client: &Client) -> Option<&str> {
    match client {
        Client::Api { .. } => None,
        Client::FleetLock { group, .. } => Some(group),
    }
}

/// A place in the queue; dropped, it is free.
struct Place {
    ticket: u64,
    now: Arc<watch::Sender<State>>,
}

impl Place {
    fn new(semaphore: &Semaphore, client: Client) -> Self {
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

/// Hosts of this name are answered so, whatever the semaphore says.
fn scripted(client: &Client) -> Option<LockAnswer> {
    let Client::Api { host } = client else {
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
    fn lock(&self, request: LockRequest) -> BoxFuture<'static, LockAnswer> {
        self.asked.lock().unwrap().push(request.clone());
        match scripted(&request.client) {
            Some(answer) => Box::pin(async { answer }),
            None => Box::pin(self.clone().acquire(request)),
        }
    }

    fn unlock(&self, client: Client) -> BoxFuture<'static, UnlockAnswer> {
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
