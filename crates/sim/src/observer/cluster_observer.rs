//! Follows the objects of a cluster and every change of them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use dogwatch_api::{bare_metal_host, node_reboot, reboot_policy};
use dogwatch_kubesim::api::{ApiReply, ApiRequest, ApiServer, WatchFrame};
use http::Method;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

/// The observer's user name; do not partition it from the server.
const OBSERVER_USER: &str = "observer";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObservedKind {
    Node,
    /// Leases in Dogwatch's namespace.
    Lease,
    /// Pods in all namespaces.
    Pod,
    /// PodDisruptionBudgets in all namespaces.
    Budget,
    /// Events about Nodes.
    Event,
    /// RebootPolicies, while the CRD is installed.
    Policy,
    /// BareMetalHosts, while the CRD is installed.
    Host,
    /// NodeReboots, while the CRD is installed.
    NodeReboot,
    /// CustomResourceDefinitions.
    Definition,
}

/// Paths that are served once their CRDs are installed.
const CUSTOM_RESOURCE_PATHS: [(ObservedKind, &str, &str); 3] = [
    (
        ObservedKind::Policy,
        reboot_policy::CRD_NAME,
        "/apis/dogwatch.dev/v1alpha1/rebootpolicies",
    ),
    (
        ObservedKind::Host,
        bare_metal_host::CRD_NAME,
        "/apis/metal3.io/v1alpha1/baremetalhosts",
    ),
    (
        ObservedKind::NodeReboot,
        node_reboot::CRD_NAME,
        "/apis/dogwatch.dev/v1alpha1/nodereboots",
    ),
];

const BUILT_IN_PATHS: [(ObservedKind, &str); 6] = [
    (ObservedKind::Node, "/api/v1/nodes"),
    (
        ObservedKind::Lease,
        "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases",
    ),
    (ObservedKind::Pod, "/api/v1/pods"),
    (ObservedKind::Budget, "/apis/policy/v1/poddisruptionbudgets"),
    (ObservedKind::Event, "/api/v1/namespaces/default/events"),
    (
        ObservedKind::Definition,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ),
];

#[derive(Debug, Clone)]
pub struct ObservedChange {
    pub kind: ObservedKind,
    pub name: String,
    /// `None`: it did not exist.
    pub before: Option<Value>,
    /// `None`: it was deleted.
    pub after: Option<Value>,
}

/// Follows an embedded API server from within, unaffected by injected faults.
pub struct ClusterObserver {
    server: ApiServer,
    feeds: Vec<(ObservedKind, UnboundedReceiver<WatchFrame>)>,
    /// Frames that [`ClusterObserver::wait_for_change`] received and nobody has read.
    waiting: Vec<(ObservedKind, Bytes)>,
    /// Events that were read and not taken in, in the order of their resource versions.
    pending: VecDeque<ObservedEvent>,
    present: BTreeMap<(ObservedKind, String), Value>,
}

impl ClusterObserver {
    /// Starts with the existing objects; [`ClusterObserver::next_change`] returns them first.
    pub fn start_observer(server: &ApiServer) -> Self {
        let feeds = BUILT_IN_PATHS.map(|(kind, path)| (kind, open_watch(server, path)));
        Self {
            server: server.clone(),
            feeds: feeds.into(),
            waiting: Vec::new(),
            pending: VecDeque::new(),
            present: BTreeMap::new(),
        }
    }

    /// Waits until there are changes to take.
    pub async fn wait_for_change(&mut self) {
        if !(self.waiting.is_empty() && self.pending.is_empty()) {
            return;
        }
        let feeds = &mut self.feeds;
        let frame = std::future::poll_fn(|context| {
            for (kind, feed) in feeds.iter_mut() {
                if let std::task::Poll::Ready(Some(Ok(line))) = feed.poll_recv(context) {
                    return std::task::Poll::Ready((*kind, line));
                }
            }
            std::task::Poll::Pending
        });
        self.waiting.push(frame.await);
    }

    /// Takes in the next change, in the order of the resource versions. While a caller judges it, the
    /// cluster is shown as it was after this change, without later ones of other kinds.
    pub fn next_change(&mut self) -> Option<ObservedChange> {
        if self.pending.is_empty() {
            self.read_watches();
        }
        if self.pending.is_empty() && self.follow_definitions() {
            self.read_watches();
        }
        let event = self.pending.pop_front()?;
        Some(self.apply_event(event))
    }

    /// Opens the watch on each kind once its CRD is installed, and ends it with the CRD. Returns
    /// whether there is a new watch.
    fn follow_definitions(&mut self) -> bool {
        let mut is_any_new = false;
        for (kind, definition, path) in CUSTOM_RESOURCE_PATHS {
            let installed = self
                .get_object(ObservedKind::Definition, definition)
                .is_some();
            let followed = self.feeds.iter().any(|(other, _)| *other == kind);
            if installed && !followed {
                self.feeds.push((kind, open_watch(&self.server, path)));
                is_any_new = true;
            }
            if !installed && followed {
                self.feeds.retain(|(other, _)| *other != kind);
            }
        }
        is_any_new
    }

    fn read_watches(&mut self) {
        let mut lines = std::mem::take(&mut self.waiting);
        for (kind, feed) in &mut self.feeds {
            while let Ok(Ok(line)) = feed.try_recv() {
                lines.push((*kind, line));
            }
        }
        let events = lines.iter();
        let mut events: Vec<_> = events
            .filter_map(|(kind, line)| parse_frame(*kind, line))
            .collect();
        events.sort_by_key(|event| event.version);
        self.pending.extend(events);
    }

    /// Returns all objects of this kind, by name.
    pub fn list_objects(&self, kind: ObservedKind) -> impl Iterator<Item = (&str, &Value)> {
        let of_kind = (kind, String::new())..;
        let entries = self
            .present
            .range(of_kind)
            .take_while(move |((other, _), _)| *other == kind);
        entries.map(|((_, name), value)| (name.as_str(), value))
    }

    pub fn get_object(&self, kind: ObservedKind, name: &str) -> Option<&Value> {
        self.present.get(&(kind, name.to_owned()))
    }

    fn apply_event(&mut self, event: ObservedEvent) -> ObservedChange {
        let key = (event.kind, event.name.clone());
        let before = match &event.object {
            Some(object) => self.present.insert(key, object.clone()),
            None => self.present.remove(&key),
        };
        ObservedChange {
            kind: event.kind,
            name: event.name,
            before,
            after: event.object,
        }
    }
}

struct ObservedEvent {
    kind: ObservedKind,
    name: String,
    version: u64,
    object: Option<Value>,
}

fn open_watch(server: &ApiServer, path: &str) -> UnboundedReceiver<WatchFrame> {
    let request = ApiRequest::new(
        OBSERVER_USER,
        Method::GET,
        &format!("{path}?watch=true"),
        "",
    );
    match server.handle_request(&request) {
        ApiReply::Watch(watch) => watch.frames,
        ApiReply::Response(refused) => {
            unreachable!("the server refused to be watched: {refused:?}")
        }
    }
}

fn parse_frame(kind: ObservedKind, line: &Bytes) -> Option<ObservedEvent> {
    let mut frame: Value = serde_json::from_slice(line).ok()?;
    let object = frame["object"].take();
    let deleted = match frame["type"].as_str()? {
        "DELETED" => true,
        "ADDED" | "MODIFIED" => false,
        _ => return None,
    };
    Some(ObservedEvent {
        kind,
        name: object["metadata"]["name"].as_str()?.to_owned(),
        version: object["metadata"]["resourceVersion"]
            .as_str()?
            .parse()
            .ok()?,
        object: (!deleted).then_some(object),
    })
}
