//! The present of a cluster, and every change of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use dogwatch_api::{bare_metal_host, reboot_policy};
use http::Method;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::api::{ApiServer, Frame, Reply, Request};

/// Under this name the observer asks; never part it from the server.
const OBSERVER: &str = "observer";

/// What is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nodes.
    Node,
    /// Leases in Dogwatch's namespace.
    Lease,
    /// Pods everywhere.
    Pod,
    /// PodDisruptionBudgets everywhere.
    Budget,
    /// Events about Nodes.
    Event,
    /// RebootPolicies, while their kind is installed.
    Policy,
    /// BareMetalHosts, while their kind is installed.
    Host,
    /// CustomResourceDefinitions.
    Definition,
}

/// Served once their definitions are there.
const DEFINED: [(Kind, &str, &str); 2] = [
    (
        Kind::Policy,
        reboot_policy::CRD_NAME,
        "/apis/dogwatch.dev/v1alpha1/rebootpolicies",
    ),
    (
        Kind::Host,
        bare_metal_host::CRD_NAME,
        "/apis/metal3.io/v1alpha1/baremetalhosts",
    ),
];

const WATCHED: [(Kind, &str); 6] = [
    (Kind::Node, "/api/v1/nodes"),
    (
        Kind::Lease,
        "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases",
    ),
    (Kind::Pod, "/api/v1/pods"),
    (Kind::Budget, "/apis/policy/v1/poddisruptionbudgets"),
    (Kind::Event, "/api/v1/namespaces/default/events"),
    (
        Kind::Definition,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ),
];

/// One object before and after.
#[derive(Debug, Clone)]
pub struct Change {
    /// What kind of object.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// As it was; `None`: it was not there.
    pub before: Option<Value>,
    /// As it is; `None`: it is gone.
    pub after: Option<Value>,
}

/// Follows an embedded API server from within, past all faults.
pub struct Observer {
    server: ApiServer,
    feeds: Vec<(Kind, UnboundedReceiver<Frame>)>,
    /// Frames that [`Observer::changed`] has taken and nobody has seen.
    waiting: Vec<(Kind, Bytes)>,
    present: BTreeMap<(Kind, String), Value>,
}

impl Observer {
    /// Begins with what is there; the first [`Observer::take`] has it.
    pub fn start(server: &ApiServer) -> Self {
        let feeds = WATCHED.map(|(kind, path)| (kind, open(server, path)));
        Self {
            server: server.clone(),
            feeds: feeds.into(),
            waiting: Vec::new(),
            present: BTreeMap::new(),
        }
    }

    /// Waits until there is something to take.
    pub async fn changed(&mut self) {
        if !self.waiting.is_empty() {
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

    /// All changes since the last time, in the order of their resource versions.
    pub fn take(&mut self) -> Vec<Change> {
        let mut changes = self.take_open();
        if self.follow_definitions() {
            changes.extend(self.take_open());
        }
        changes
    }

    /// Opens the watch on each kind once its definition is there, and ends it with the definition;
    /// whether there is a new one.
    fn follow_definitions(&mut self) -> bool {
        let mut is_any_new = false;
        for (kind, definition, path) in DEFINED {
            let installed = self.get(Kind::Definition, definition).is_some();
            let followed = self.feeds.iter().any(|(other, _)| *other == kind);
            if installed && !followed {
                self.feeds.push((kind, open(&self.server, path)));
                is_any_new = true;
            }
            if !installed && followed {
                self.feeds.retain(|(other, _)| *other != kind);
            }
        }
        is_any_new
    }

    fn take_open(&mut self) -> Vec<Change> {
        let mut lines = std::mem::take(&mut self.waiting);
        for (kind, feed) in &mut self.feeds {
            while let Ok(Ok(line)) = feed.try_recv() {
                lines.push((*kind, line));
            }
        }
        let mut events: Vec<_> = lines
            .iter()
            .filter_map(|(kind, line)| read(*kind, line))
            .collect();
        events.sort_by_key(|event| event.version);
        events.into_iter().map(|event| self.apply(event)).collect()
    }

    /// Everything of this kind, by name.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        let of_kind = (kind, String::new())..;
        let entries = self
            .present
            .range(of_kind)
            .take_while(move |((other, _), _)| *other == kind);
        entries.map(|((_, name), value)| (name.as_str(), value))
    }

    /// One object.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        self.present.get(&(kind, name.to_owned()))
    }

    fn apply(&mut self, event: Event) -> Change {
        let key = (event.kind, event.name.clone());
        let before = match &event.object {
            Some(object) => self.present.insert(key, object.clone()),
            None => self.present.remove(&key),
        };
        Change {
            kind: event.kind,
            name: event.name,
            before,
            after: event.object,
        }
    }
}

struct Event {
    kind: Kind,
    name: String,
    version: u64,
    object: Option<Value>,
}

fn open(server: &ApiServer, path: &str) -> UnboundedReceiver<Frame> {
    let request = Request::new(OBSERVER, Method::GET, &format!("{path}?watch=true"), "");
    match server.handle(&request) {
        Reply::Watch(watch) => watch.frames,
        Reply::Response(refused) => unreachable!("the server refused to be watched: {refused:?}"),
    }
}

fn read(kind: Kind, line: &Bytes) -> Option<Event> {
    let mut frame: Value = serde_json::from_slice(line).ok()?;
    let object = frame["object"].take();
    let deleted = match frame["type"].as_str()? {
        "DELETED" => true,
        "ADDED" | "MODIFIED" => false,
        _ => return None,
    };
    Some(Event {
        kind,
        name: object["metadata"]["name"].as_str()?.to_owned(),
        version: object["metadata"]["resourceVersion"]
            .as_str()?
            .parse()
            .ok()?,
        object: (!deleted).then_some(object),
    })
}
