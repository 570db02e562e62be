//! An observer of the whole cluster that checks what Dogwatch promises.
//!
//! It watches Nodes and pods as anybody could and writes down every change; the judgement is a pure
//! function of what was written, in the order of resource versions, so that it does not matter which
//! of its watches was told first. Serves promises S1 (never more out than allowed), S4 and S5 (each
//! reboot is one new boot), and "no pod is lost that should live".

mod journal;
mod report;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_k8s::watch::{Event, Full, Selection, watch};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};

use journal::Journal;
pub use report::{NodeReport, Report, Violation};

use super::Actor;
use super::cache::{Cache, Kept};
use crate::clock::Clock;

/// How many nodes of each group may be out at once.
pub type Limits = BTreeMap<String, usize>;

/// Watches until it is dropped.
pub struct Observer {
    shared: Arc<Mutex<Shared>>,
    limits: Limits,
    _actor: Actor,
}

struct Shared {
    cache: Cache,
    journal: Journal,
}

impl Observer {
    /// Starts to watch. Groups that `limits` does not name have one node out at a time.
    pub fn start(client: &Client, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        let shared = Arc::new(Mutex::new(Shared {
            cache: Cache::default(),
            journal: Journal::default(),
        }));
        let nodes = watch(
            Full(Api::<Node>::all(client.clone())),
            Selection::default(),
            || 0.5,
        );
        let pods = watch(
            Full(Api::<Pod>::all(client.clone())),
            Selection::default(),
            || 0.5,
        );
        let writer = Arc::clone(&shared);
        let actor = Actor::spawn(async move {
            let (mut nodes, mut pods) = (nodes.boxed(), pods.boxed());
            loop {
                tokio::select! { biased;
                    Some(event) = nodes.next() => held(&writer).hear(event, clock.now(), Journal::node_gone),
                    Some(event) = pods.next() => held(&writer).hear(event, clock.now(), Journal::pod_gone),
                    else => return,
                }
            }
        });
        Self {
            shared,
            limits,
            _actor: actor,
        }
    }

    /// What was seen up to now, judged.
    pub fn report(&self) -> Report {
        let shared = held(&self.shared);
        report::judge(&shared.journal, &self.limits)
    }
}

fn held(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect("no panic while the journal is held")
}

/// Writes down that an object was deleted at this version.
type Gone<K> = fn(&mut Journal, &K, u64, Timestamp);

impl Shared {
    fn hear<K: Kept>(&mut self, event: Event<K>, now: Timestamp, gone: Gone<K>) {
        let changes = match event {
            Event::Restarted(objects) => self.cache.listed(objects),
            Event::Applied(object) => self.cache.seen(object).into_iter().collect(),
            Event::Deleted(object) => {
                gone(
                    &mut self.journal,
                    &object,
                    journal::version(object.meta()),
                    now,
                );
                self.cache.deleted(&object);
                return;
            }
            Event::Trouble(_) => return,
        };
        for change in &changes {
            self.journal.write(change, now);
        }
    }
}
