//! An observer of the whole cluster that checks what Dogwatch promises.
//!
//! It watches Nodes and pods as anybody could and writes down every change; the judgement is a pure
//! function of what was written, in the order of resource versions, so that it does not matter which
//! of its watches was told first. Serves promises S1 (never more out than allowed), S4 and S5 (each
//! reboot is one new boot), and "no pod is lost that should live".

mod journal;
mod report;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_k8s::watch::{Event, Full, Selection, watch};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};

use journal::Journal;
pub use report::{NodeReport, Report, Violation};

use super::Actor;
use super::cache::Cache;
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
                let heard = tokio::select! { biased;
                    Some(event) = nodes.next() => Heard::Node(event),
                    Some(event) = pods.next() => Heard::Pod(event),
                    else => return,
                };
                let now = clock.now();
                writer
                    .lock()
                    .expect("no panic while the journal is held")
                    .hear(heard, now);
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
        let shared = self
            .shared
            .lock()
            .expect("no panic while the journal is held");
        report::judge(&shared.journal, &self.limits)
    }
}

enum Heard {
    Node(Event<Node>),
    Pod(Event<Pod>),
}

impl Shared {
    fn hear(&mut self, heard: Heard, now: jiff::Timestamp) {
        let changes = match heard {
            Heard::Node(Event::Restarted(nodes)) => self.cache.listed(nodes),
            Heard::Node(Event::Applied(node)) => self.cache.seen(node).into_iter().collect(),
            Heard::Node(Event::Deleted(node)) => {
                let version = journal::version(&node.metadata);
                self.journal.node_gone(&node, version, now);
                self.cache.deleted(&node);
                return;
            }
            Heard::Pod(Event::Restarted(pods)) => self.cache.listed(pods),
            Heard::Pod(Event::Applied(pod)) => self.cache.seen(pod).into_iter().collect(),
            Heard::Pod(Event::Deleted(pod)) => {
                let version = journal::version(&pod.metadata);
                self.journal.pod_gone(&pod, version, now);
                self.cache.deleted(&pod);
                return;
            }
            Heard::Node(Event::Trouble(_)) | Heard::Pod(Event::Trouble(_)) => return,
        };
        for change in &changes {
            self.journal.write(change, now);
        }
    }
}
