//! Change events and the watchers that receive them.
//!
//! A change is serialised once for all watchers that see it the same way. Watchers of one name, or
//! of the pods of one node, are indexed by it, so other changes cost them nothing: five thousand
//! coordinators each watch their own Node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::kinds::ServedResource;
use super::presentation::{ObjectPresenter, render_document};
use super::selector::{ApiLabelSelector, FieldSelector};
use super::store::StoredObject;
use super::value::{meta_text, text_at};

/// The watch broke, like a lost connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by peer")]
pub struct ConnectionCut;

/// A piece of a watch's answer: one line, or the end of the connection.
pub type WatchFrame = std::result::Result<Bytes, ConnectionCut>;

/// The event type, as one watcher sees the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchEventType {
    Added,
    Modified,
    Deleted,
}

impl WatchEventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change in a collection's history.
#[derive(Debug)]
pub(crate) struct StoreEvent {
    pub(crate) revision: u64,
    pub(crate) key: String,
    /// None when the object was created.
    pub(crate) before: Option<Arc<StoredObject>>,
    /// None when it was deleted.
    pub(crate) after: Option<Arc<StoredObject>>,
    /// The last state with the deletion's revision, as DELETED events show it.
    last: OnceLock<Arc<StoredObject>>,
    frames: [OnceLock<(String, Bytes)>; 3],
}

impl StoreEvent {
    pub(crate) fn new(
        revision: u64,
        key: String,
        before: Option<Arc<StoredObject>>,
        after: Option<Arc<StoredObject>>,
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

    fn object_to_show(&self, change: WatchEventType) -> Option<&Arc<StoredObject>> {
        match change {
            WatchEventType::Added | WatchEventType::Modified => self.after.as_ref(),
            WatchEventType::Deleted => {
                let before = self.before.as_ref()?;
                Some(
                    self.last
                        .get_or_init(|| Arc::new(before.at_revision(self.revision))),
                )
            }
        }
    }

    fn render_frame(&self, change: WatchEventType, presenter: &ObjectPresenter) -> Option<Bytes> {
        let shown = self.object_to_show(change)?;
        if !presenter.shows_objects() {
            return Some(render_line(
                change.as_str(),
                &presenter.render_watched_object(shown),
            ));
        }
        let version = presenter.resource.api_version();
        let cached = self.frames[change as usize].get_or_init(|| {
            let bytes = render_line(change.as_str(), &presenter.render_watched_object(shown));
            (version.clone(), bytes)
        });
        if cached.0 == version {
            return Some(cached.1.clone());
        }
        Some(render_line(
            change.as_str(),
            &presenter.render_watched_object(shown),
        ))
    }
}

/// One line of a watch's answer.
fn render_line(change: &str, object: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(object.len() + 32);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(change.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
    out.freeze()
}

/// The selectors of a watch or a list.
#[derive(Debug, Clone)]
pub(crate) struct SelectionScope {
    /// Empty: every namespace.
    pub(crate) namespace: String,
    pub(crate) labels: ApiLabelSelector,
    pub(crate) fields: FieldSelector,
}

impl SelectionScope {
    /// Whether the selectors match an object.
    pub(crate) fn selects_object(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || meta_text(object, "namespace") == self.namespace)
            && self.labels.matches_object(object)
            && self.fields.matches_object(object)
    }

    /// Whether more than a namespace is selected.
    pub(crate) fn is_selective(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

/// One watch of a collection.
#[derive(Debug)]
struct CollectionWatcher {
    user: String,
    scope: SelectionScope,
    presenter: ObjectPresenter,
    /// The watcher already knows the changes up to this revision.
    since: u64,
    sender: mpsc::UnboundedSender<WatchFrame>,
}

impl CollectionWatcher {
    /// Sends a change as this watcher sees it. False when the receiver is gone.
    fn send_event(&self, event: &StoreEvent) -> bool {
        if event.revision <= self.since {
            return true;
        }
        let selects = |stored: &Option<Arc<StoredObject>>| {
            stored
                .as_ref()
                .is_some_and(|stored| self.scope.selects_object(&stored.value))
        };
        let change = match (selects(&event.before), selects(&event.after)) {
            (false, false) => return true,
            (false, true) => WatchEventType::Added,
            (true, true) => WatchEventType::Modified,
            (true, false) => WatchEventType::Deleted,
        };
        match event.render_frame(change, &self.presenter) {
            Some(frame) => self.sender.send(Ok(frame)).is_ok(),
            None => true,
        }
    }

    /// The index entry of this watcher.
    fn watch_interest(&self) -> WatchInterest {
        if let Some(name) = self.scope.fields.exact_value("metadata.name") {
            WatchInterest::Name(name.to_owned())
        } else if let Some(node) = self.scope.fields.exact_value("spec.nodeName") {
            WatchInterest::Node(node.to_owned())
        } else {
            WatchInterest::Everything
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum WatchInterest {
    Everything,
    Name(String),
    Node(String),
}

/// All watchers of one collection.
#[derive(Debug, Default)]
pub(crate) struct CollectionWatchers {
    all: BTreeMap<u64, CollectionWatcher>,
    by_interest: BTreeMap<WatchInterest, BTreeSet<u64>>,
}

/// The parameters of a new watch.
pub(crate) struct WatchSubscription {
    pub(crate) user: String,
    pub(crate) scope: SelectionScope,
    pub(crate) presenter: ObjectPresenter,
    pub(crate) since: u64,
}

impl CollectionWatchers {
    /// Registers a new watcher. The caller sends the initial events.
    pub(crate) fn add_watcher(
        &mut self,
        id: u64,
        ask: WatchSubscription,
    ) -> (
        mpsc::UnboundedSender<WatchFrame>,
        mpsc::UnboundedReceiver<WatchFrame>,
    ) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let watcher = CollectionWatcher {
            user: ask.user,
            scope: ask.scope,
            presenter: ask.presenter,
            since: ask.since,
            sender: sender.clone(),
        };
        self.by_interest
            .entry(watcher.watch_interest())
            .or_default()
            .insert(id);
        self.all.insert(id, watcher);
        (sender, receiver)
    }

    /// Sends a past event to one watcher.
    pub(crate) fn replay_event(&self, id: u64, event: &StoreEvent) {
        if let Some(watcher) = self.all.get(&id) {
            watcher.send_event(event);
        }
    }

    /// Sends an existing object to one watcher.
    pub(crate) fn send_existing_object(&self, id: u64, stored: &StoredObject) {
        if let Some(watcher) = self.all.get(&id) {
            let _ = watcher.sender.send(Ok(render_line(
                "ADDED",
                &watcher.presenter.render_watched_object(stored),
            )));
        }
    }

    /// Sends a bookmark to one watcher: all changes up to `revision` were sent.
    pub(crate) fn send_bookmark(&self, id: u64, revision: u64, initial: bool) {
        let Some(watcher) = self.all.get(&id) else {
            return;
        };
        let mut object = json!({ "metadata": { "resourceVersion": revision.to_string() } });
        if initial {
            object["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let resource: &ServedResource = &watcher.presenter.resource;
        let bytes = render_document(&resource.kind, &resource.api_version(), &object);
        let _ = watcher.sender.send(Ok(render_line("BOOKMARK", &bytes)));
    }

    /// Sends an event to the watchers that it may concern.
    pub(crate) fn publish_event(&mut self, event: &StoreEvent) {
        let mut interests = BTreeSet::from([WatchInterest::Everything]);
        for stored in [&event.before, &event.after].into_iter().flatten() {
            interests.insert(WatchInterest::Name(
                meta_text(&stored.value, "name").to_owned(),
            ));
            interests.insert(WatchInterest::Node(
                text_at(&stored.value, &["spec", "nodeName"]).to_owned(),
            ));
        }
        let mut gone = Vec::new();
        for interest in &interests {
            for id in self.by_interest.get(interest).into_iter().flatten() {
                if !self.all[id].send_event(event) {
                    gone.push(*id);
                }
            }
        }
        for id in gone {
            self.remove_watcher(id);
        }
    }

    /// Removes a watcher; its stream ends.
    pub(crate) fn remove_watcher(&mut self, id: u64) {
        let Some(watcher) = self.all.remove(&id) else {
            return;
        };
        let interest = watcher.watch_interest();
        if let Some(ids) = self.by_interest.get_mut(&interest) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_interest.remove(&interest);
            }
        }
    }

    /// Breaks the watches of a user, or of all users.
    pub(crate) fn cut_watchers(&mut self, user: Option<&str>) {
        let chosen = self
            .all
            .iter()
            .filter(|(_, watcher)| user.is_none_or(|user| watcher.user == user));
        let chosen: Vec<u64> = chosen.map(|(id, _)| *id).collect();
        for id in chosen {
            if let Some(watcher) = self.all.get(&id) {
                let _ = watcher.sender.send(Err(ConnectionCut));
            }
            self.remove_watcher(id);
        }
    }
}

/// A watch in progress: it yields lines until it is dropped, cut or over.
#[derive(Debug)]
pub struct OpenWatch {
    /// Lines of JSON.
    pub frames: mpsc::UnboundedReceiver<WatchFrame>,
    /// The server ends the watch after this time.
    pub timeout: std::time::Duration,
    pub bookmarks: bool,
    pub(crate) collection: usize,
    pub(crate) id: u64,
}

/// An ERROR event, the only line of a watch that failed.
pub(crate) fn render_error_line(status: &Value) -> Bytes {
    render_line("ERROR", status.to_string().as_bytes())
}
