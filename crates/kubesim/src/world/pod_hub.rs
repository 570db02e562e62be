//! Pod watches of kubelets: one for each kubelet, or one for many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::sync::mpsc;

use super::ActorTask;
use super::cache::{CacheChange, ControllerCache};
use super::controllers::object_queries;
use super::object_watch::{StoredObjectEvent, watch_objects};

/// A pod event of one node's kubelet.
#[derive(Debug)]
pub enum PodEvent {
    /// All pods of the node.
    Listed(Vec<Arc<Pod>>),
    /// A pod is new or has changed.
    Observed(Arc<Pod>),
    Deleted(Arc<Pod>),
}

/// One node's events, without end.
pub type PodEvents = BoxStream<'static, PodEvent>;

/// Watches the pods of one node with a separate watch.
pub fn watch_pods_of_node(client: &Client, node: &str) -> PodEvents {
    let selector = format!("spec.nodeName={node}");
    watch_objects(Api::<Pod>::all(client.clone()), Some(selector))
        .map(|event| match event {
            StoredObjectEvent::Listed(pods) => {
                PodEvent::Listed(pods.into_iter().map(Arc::new).collect())
            }
            StoredObjectEvent::Applied(pod) => PodEvent::Observed(Arc::new(pod)),
            StoredObjectEvent::Deleted(pod) => PodEvent::Deleted(Arc::new(pod)),
        })
        .boxed()
}

/// One watch on all pods, and its listeners. Clones share the watch.
#[derive(Debug, Clone)]
pub struct PodHub {
    shared: Arc<Mutex<PodHubState>>,
    _watch: Arc<ActorTask>,
}

#[derive(Debug, Default)]
struct PodHubState {
    cache: ControllerCache,
    listed: bool,
    listeners: BTreeMap<String, mpsc::UnboundedSender<PodEvent>>,
}

impl PodHub {
    pub fn start_watching(client: &Client) -> Self {
        let shared = Arc::new(Mutex::new(PodHubState::default()));
        let mut events = watch_objects(Api::<Pod>::all(client.clone()), None).boxed();
        let writer = Arc::clone(&shared);
        let actor = ActorTask::spawn(async move {
            while let Some(event) = events.next().await {
                writer
                    .lock()
                    .expect("no panic while the hub is held")
                    .handle_event(event);
            }
        });
        Self {
            shared,
            _watch: Arc::new(actor),
        }
    }

    /// Subscribes to the pods of this node, starting with the existing ones. A node has one
    /// listener: a new one replaces it.
    pub fn subscribe_node(&self, node: &str) -> PodEvents {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut shared = self.shared.lock().expect("no panic while the hub is held");
        if shared.listed {
            let pods = shared.cache.pods_on_node(node).cloned().collect();
            // Cannot fail: this function still owns the receiver.
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

impl PodHubState {
    fn handle_event(&mut self, event: StoredObjectEvent<Pod>) {
        match event {
            StoredObjectEvent::Listed(pods) => {
                let changes = self.cache.observe_list(pods);
                if self.listed {
                    for change in &changes {
                        self.notify_change(change);
                    }
                } else {
                    self.listed = true;
                    self.notify_all_nodes();
                }
            }
            StoredObjectEvent::Applied(pod) => {
                if let Some(change) = self.cache.observe_object(pod) {
                    self.notify_change(&change);
                }
            }
            StoredObjectEvent::Deleted(pod) => {
                if let Some(change) = self.cache.observe_deleted(&pod) {
                    self.notify_change(&change);
                }
            }
        }
    }

    fn notify_all_nodes(&self) {
        for (node, listener) in &self.listeners {
            let pods = self.cache.pods_on_node(node).cloned().collect();
            // The listener of a node that was switched off is gone.
            let _ = listener.send(PodEvent::Listed(pods));
        }
    }

    fn notify_change(&self, change: &CacheChange) {
        let CacheChange::Pod(shift) = change else {
            return;
        };
        let uid = |pod: &Arc<Pod>| pod.metadata.uid.clone();
        if let Some(old) = &shift.old
            && shift.new.as_ref().is_none_or(|new| uid(new) != uid(old))
        {
            self.notify_node(old, PodEvent::Deleted(Arc::clone(old)));
        }
        if let Some(new) = &shift.new {
            self.notify_node(new, PodEvent::Observed(Arc::clone(new)));
        }
    }

    fn notify_node(&self, pod: &Pod, event: PodEvent) {
        if let Some(listener) =
            object_queries::node_of_pod(pod).and_then(|node| self.listeners.get(node))
        {
            // The listener of a node that was switched off is gone.
            let _ = listener.send(event);
        }
    }
}
