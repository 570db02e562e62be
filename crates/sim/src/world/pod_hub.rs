//! Where kubelets learn of their pods: each by a watch of its own, or many by one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_core::name::NodeName;
use dogwatch_k8s::watch::{Event, Full, Selection, watch};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::sync::mpsc;

use super::Actor;
use super::cache::{Cache, Change};
use super::controllers::words;

/// What one node's kubelet hears.
#[derive(Debug)]
pub enum PodEvent {
    /// All pods of the node.
    Listed(Vec<Arc<Pod>>),
    /// One is new or has changed.
    Seen(Arc<Pod>),
    /// One is gone.
    Deleted(Arc<Pod>),
}

/// One node's events, without end.
pub type PodEvents = BoxStream<'static, PodEvent>;

/// The events of one node by a watch of its own.
pub fn of_node(client: &Client, node: &NodeName) -> PodEvents {
    let pods = Full(Api::<Pod>::all(client.clone()));
    let selection = Selection::fields(format!("spec.nodeName={node}"));
    // No jitter: the pauses of simulated nodes need not be kept apart.
    watch(pods, selection, || 0.5)
        .filter_map(|event| async move {
            match event {
                Event::Restarted(pods) => {
                    Some(PodEvent::Listed(pods.into_iter().map(Arc::new).collect()))
                }
                Event::Applied(pod) => Some(PodEvent::Seen(Arc::new(pod))),
                Event::Deleted(pod) => Some(PodEvent::Deleted(Arc::new(pod))),
                Event::Trouble(_) => None,
            }
        })
        .boxed()
}

/// One watch on all pods, and who listens. Cloning it gives another handle to the same watch.
#[derive(Debug, Clone)]
pub struct PodHub {
    shared: Arc<Mutex<Shared>>,
    _watch: Arc<Actor>,
}

#[derive(Debug, Default)]
struct Shared {
    cache: Cache,
    listed: bool,
    listeners: BTreeMap<String, mpsc::UnboundedSender<PodEvent>>,
}

impl PodHub {
    /// Starts the watch.
    pub fn start(client: &Client) -> Self {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let pods = Full(Api::<Pod>::all(client.clone()));
        let mut events = watch(pods, Selection::default(), || 0.5).boxed();
        let writer = Arc::clone(&shared);
        let actor = Actor::spawn(async move {
            while let Some(event) = events.next().await {
                writer
                    .lock()
                    .expect("no panic while the hub is held")
                    .hear(event);
            }
        });
        Self {
            shared,
            _watch: Arc::new(actor),
        }
    }

    /// The events of this node from now on, its present pods first. A node has one listener: the
    /// older one hears no more.
    pub fn of_node(&self, node: &NodeName) -> PodEvents {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut shared = self.shared.lock().expect("no panic while the hub is held");
        if shared.listed {
            let pods = shared.cache.pods_on(node.as_str()).cloned().collect();
            // The receiver is in our hands.
            let _ = sender.send(PodEvent::Listed(pods));
        }
        shared.listeners.insert(node.to_string(), sender);
        futures::stream::unfold((receiver, self.clone()), |(mut receiver, hub)| async move {
            let event = receiver.recv().await?;
            Some((event, (receiver, hub)))
        })
        .boxed()
    }
}

impl Shared {
    fn hear(&mut self, event: Event<Pod>) {
        match event {
            Event::Restarted(pods) => {
                let changes = self.cache.listed(pods);
                if self.listed {
                    for change in &changes {
                        self.tell(change);
                    }
                } else {
                    self.listed = true;
                    self.tell_all();
                }
            }
            Event::Applied(pod) => {
                if let Some(change) = self.cache.seen(pod) {
                    self.tell(&change);
                }
            }
            Event::Deleted(pod) => {
                if let Some(change) = self.cache.deleted(&pod) {
                    self.tell(&change);
                }
            }
            Event::Trouble(_) => {}
        }
    }

    fn tell_all(&self) {
        for (node, listener) in &self.listeners {
            let pods = self.cache.pods_on(node).cloned().collect();
            // A listener that is gone was switched off.
            let _ = listener.send(PodEvent::Listed(pods));
        }
    }

    fn tell(&self, change: &Change) {
        let Change::Pod(shift) = change else { return };
        let uid = |pod: &Arc<Pod>| pod.metadata.uid.clone();
        if let Some(old) = &shift.old
            && shift.new.as_ref().is_none_or(|new| uid(new) != uid(old))
        {
            self.tell_node(old, PodEvent::Deleted(Arc::clone(old)));
        }
        if let Some(new) = &shift.new {
            self.tell_node(new, PodEvent::Seen(Arc::clone(new)));
        }
    }

    fn tell_node(&self, pod: &Pod, event: PodEvent) {
        if let Some(listener) = words::node_of(pod).and_then(|node| self.listeners.get(node)) {
            // A listener that is gone was switched off.
            let _ = listener.send(event);
        }
    }
}
