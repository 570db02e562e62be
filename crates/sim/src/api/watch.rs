//! Changes and who follows them.
//!
//! A change is serialised once for everybody who sees it the same way. A watcher that asks for one
//! name, or for the pods of one node, is found by that and costs the other changes nothing: five
//! thousand coordinators each watch their own Node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::kinds::Resource;
use super::present::{Presenter, document};
use super::selector::{FieldSelector, LabelSelector};
use super::store::Stored;
use super::value::{meta, text};

/// Why a watch broke off, as a connection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by peer")]
pub struct Cut;

/// A piece of a watch's answer: one line, or the end of the connection.
pub type Frame = std::result::Result<Bytes, Cut>;

/// What happened to an object, as one watcher sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One step of a collection's history.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) key: String,
    /// None when the object was created.
    pub(crate) before: Option<Arc<Stored>>,
    /// None when it was deleted.
    pub(crate) after: Option<Arc<Stored>>,
    /// The last state with the deletion's revision, which is what a deletion shows.
    last: OnceLock<Arc<Stored>>,
    frames: [OnceLock<(String, Bytes)>; 3],
}

impl Event {
    pub(crate) fn new(
        revision: u64,
        key: String,
        before: Option<Arc<Stored>>,
        after: Option<Arc<Stored>>,
    ) -> Self {
        Self {
            revision,
            key,
            before,
            after,
            last: OnceLock::new(),
            frames: Default::default(),
        }
    }

    fn shown(&self, change: Change) -> Option<&Arc<Stored>> {
        match change {
            Change::Added | Change::Modified => self.after.as_ref(),
            Change::Deleted => {
                let before = self.before.as_ref()?;
                Some(
                    self.last
                        .get_or_init(|| Arc::new(before.at_revision(self.revision))),
                )
            }
        }
    }

    fn frame(&self, change: Change, presenter: &Presenter) -> Option<Bytes> {
        let shown = self.shown(change)?;
        if !presenter.shows_objects() {
            return Some(line(change.as_str(), &presenter.watched(shown)));
        }
        let version = presenter.resource.api_version();
        let cached = self.frames[change as usize].get_or_init(|| {
            let bytes = line(change.as_str(), &presenter.watched(shown));
            (version.clone(), bytes)
        });
        if cached.0 == version {
            return Some(cached.1.clone());
        }
        Some(line(change.as_str(), &presenter.watched(shown)))
    }
}

/// One line of a watch's answer.
fn line(change: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + 32);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(change.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
    out.freeze()
}

/// What a watch or a list selects.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// Empty: every namespace.
    pub(crate) namespace: String,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Scope {
    /// Whether an object is selected.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || meta(object, "namespace") == self.namespace)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }

    /// Whether more than a namespace is asked for.
    pub(crate) fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

/// Somebody who follows changes.
#[derive(Debug)]
struct Watcher {
    user: String,
    scope: Scope,
    presenter: Presenter,
    /// Changes up to here are known to the watcher already.
    since: u64,
    sender: mpsc::UnboundedSender<Frame>,
}

impl Watcher {
    /// Sends a change as this watcher sees it. False when nobody listens any longer.
    fn tell(&self, event: &Event) -> bool {
        if event.revision <= self.since {
            return true;
        }
        let selects = |stored: &Option<Arc<Stored>>| {
            stored
                .as_ref()
                .is_some_and(|stored| self.scope.selects(&stored.value))
        };
        let change = match (selects(&event.before), selects(&event.after)) {
            (false, false) => return true,
            (false, true) => Change::Added,
            (true, true) => Change::Modified,
            (true, false) => Change::Deleted,
        };
        match event.frame(change, &self.presenter) {
            Some(frame) => self.sender.send(Ok(frame)).is_ok(),
            None => true,
        }
    }

    /// What this watcher is filed under.
    fn interest(&self) -> Interest {
        if let Some(name) = self.scope.fields.exact("metadata.name") {
            Interest::Name(name.to_owned())
        } else if let Some(node) = self.scope.fields.exact("spec.nodeName") {
            Interest::Node(node.to_owned())
        } else {
            Interest::Everything
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Interest {
    Everything,
    Name(String),
    Node(String),
}

/// Everybody who follows one collection.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    all: BTreeMap<u64, Watcher>,
    by_interest: BTreeMap<Interest, BTreeSet<u64>>,
}

/// What a new watcher asks for.
pub(crate) struct Subscription {
    pub(crate) user: String,
    pub(crate) scope: Scope,
    pub(crate) presenter: Presenter,
    pub(crate) since: u64,
}

impl Watchers {
    /// Files a new watcher. What it is to see first is sent by the caller.
    pub(crate) fn add(
        &mut self,
        id: u64,
        ask: Subscription,
    ) -> (mpsc::UnboundedSender<Frame>, mpsc::UnboundedReceiver<Frame>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let watcher = Watcher {
            user: ask.user,
            scope: ask.scope,
            presenter: ask.presenter,
            since: ask.since,
            sender: sender.clone(),
        };
        self.by_interest
            .entry(watcher.interest())
            .or_default()
            .insert(id);
        self.all.insert(id, watcher);
        (sender, receiver)
    }

    /// Sends one event of the past to one watcher.
    pub(crate) fn replay(&self, id: u64, event: &Event) {
        if let Some(watcher) = self.all.get(&id) {
            watcher.tell(event);
        }
    }

    /// Sends an object that is there already to one watcher.
    pub(crate) fn introduce(&self, id: u64, stored: &Stored) {
        if let Some(watcher) = self.all.get(&id) {
            let _ = watcher
                .sender
                .send(Ok(line("ADDED", &watcher.presenter.watched(stored))));
        }
    }

    /// Sends a bookmark to one watcher: everything up to `revision` was sent.
    pub(crate) fn bookmark(&self, id: u64, revision: u64, initial: bool) {
        let Some(watcher) = self.all.get(&id) else {
            return;
        };
        let mut object = json!({ "metadata": { "resourceVersion": revision.to_string() } });
        if initial {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let resource: &Resource = &watcher.presenter.resource;
        let bytes = document(&resource.kind, &resource.api_version(), &object);
        let _ = watcher.sender.send(Ok(line("BOOKMARK", &bytes)));
    }

    /// Tells everybody whom a change may concern.
    pub(crate) fn publish(&mut self, event: &Event) {
        let mut interests = BTreeSet::from([Interest::Everything]);
        for stored in [&event.before, &event.after].into_iter().flatten() {
            interests.insert(Interest::Name(meta(&stored.value, "name").to_owned()));
            interests.insert(Interest::Node(
                text(&stored.value, &["spec", "nodeName"]).to_owned(),
            ));
        }
        let mut gone = Vec::new();
        for interest in &interests {
            for id in self.by_interest.get(interest).into_iter().flatten() {
                if !self.all[id].tell(event) {
                    gone.push(*id);
                }
            }
        }
        for id in gone {
            self.remove(id);
        }
    }

    /// Forgets a watcher; its stream ends.
    pub(crate) fn remove(&mut self, id: u64) {
        let Some(watcher) = self.all.remove(&id) else {
            return;
        };
        let interest = watcher.interest();
        if let Some(ids) = self.by_interest.get_mut(&interest) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_interest.remove(&interest);
            }
        }
    }

    /// Breaks off the watches of a user, or of everybody.
    pub(crate) fn cut(&mut self, user: Option<&str>) {
        let chosen = self
            .all
            .iter()
            .filter(|(_, watcher)| user.is_none_or(|user| watcher.user == user));
        let chosen: Vec<u64> = chosen.map(|(id, _)| *id).collect();
        for id in chosen {
            if let Some(watcher) = self.all.get(&id) {
                let _ = watcher.sender.send(Err(Cut));
            }
            self.remove(id);
        }
    }

    /// How many follow, of a user or in all.
    pub(crate) fn count(&self, user: Option<&str>) -> usize {
        self.all
            .values()
            .filter(|watcher| user.is_none_or(|user| watcher.user == user))
            .count()
    }
}

/// A watch that has begun: lines come out of it until it is dropped, cut or over.
#[derive(Debug)]
pub struct Watch {
    /// Lines of JSON.
    pub frames: mpsc::UnboundedReceiver<Frame>,
    /// After which the server ends it.
    pub timeout: std::time::Duration,
    /// Whether bookmarks are wanted.
    pub bookmarks: bool,
    pub(crate) collection: usize,
    pub(crate) id: u64,
}

/// A watch that says one thing and ends: an ERROR event.
pub(crate) fn failed(status: &Value) -> Bytes {
    line("ERROR", status.to_string().as_bytes())
}
