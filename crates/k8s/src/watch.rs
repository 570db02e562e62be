//! Lists and watches objects without end.
//!
//! kube's own `runtime` does this and more (stores, shared streams), but is too large for the
//! coordinator. This is the part that every loop here needs.
//!
//! **Promises:** it never polls. Every change after the list is reported once and in order. A 410
//! is answered with a new list; an object that it lacks is gone. When the server ends the stream,
//! the watch continues from the last version seen. After a failure it does so only if the store is
//! not older than that version: an API server whose etcd was restored from a backup accepts a watch
//! from the future, and then sends nothing. A failure is reported ([`ObjectEvent::Failed`]),
//! never ends the stream, and is retried after a pause that doubles from [`SHORTEST_RETRY_PAUSE`]
//! to [`LONGEST_RETRY_PAUSE`]. A connection that died silently is noticed when the server should
//! have ended the watch.

pub(crate) mod event_lines;
mod sources;
mod watch_pauses;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dogwatch_core::backoff::{BackoffRange, RetryBackoff};
use dogwatch_core::resource_version::is_older_version;
use futures::stream::{Stream, StreamExt as _};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt as _};
use tokio::time::Instant;

pub(crate) use self::sources::read_store_version;
pub use self::sources::{ChangeStream, FullObjects, MetadataObjects, WatchSource};
use self::watch_pauses::WatchPauses;
use crate::error::{ApiErrorKind, Error, with_timeout};

/// How long the server should keep a watch open; kube refuses 295 s and more.
const WATCH_LIFETIME: Duration = Duration::from_secs(290);
/// How long after [`WATCH_LIFETIME`] a silent watch counts as dead.
const WATCH_GRACE: Duration = Duration::from_secs(15);
/// A watch that lived this long was healthy, so its end is no failure.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// The first pause after a failure.
pub const SHORTEST_RETRY_PAUSE: Duration = Duration::from_millis(500);
pub const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(30);
pub(crate) const WATCH_RETRY_PAUSES: BackoffRange =
    BackoffRange::new(SHORTEST_RETRY_PAUSE, LONGEST_RETRY_PAUSE);

#[derive(Debug)]
pub enum ObjectEvent<K> {
    /// All objects: at the start, and after changes may have been missed. An object that is not in
    /// it is gone.
    Restarted(Vec<K>),
    /// The object is new, or has changed.
    Applied(K),
    /// The object's last state before its deletion.
    Deleted(K),
    /// The watch failed; it is retried for ever.
    Failed(Error),
}

impl<K: Resource> ObjectEvent<K> {
    fn object_version(&self) -> Option<String> {
        match self {
            ObjectEvent::Applied(object) | ObjectEvent::Deleted(object) => {
                object.resource_version()
            }
            ObjectEvent::Restarted(_) | ObjectEvent::Failed(_) => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectSelection {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl ObjectSelection {
    pub fn by_labels(selector: impl Into<String>) -> Self {
        Self {
            labels: Some(selector.into()),
            fields: None,
        }
    }

    pub fn by_fields(selector: impl Into<String>) -> Self {
        Self {
            labels: None,
            fields: Some(selector.into()),
        }
    }

    /// The same selection for a single list.
    pub fn list_params(&self) -> ListParams {
        ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            ..ListParams::default()
        }
    }

    fn watch_params(&self) -> WatchParams {
        WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: u32::try_from(WATCH_LIFETIME.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        }
    }
}

/// Whether a watch is open, as far as the watcher knows: a failure closes it, and the API server's
/// next answer to a watch opens it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchConnection(Arc<AtomicBool>);

impl WatchConnection {
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set_open(&self, is_open: bool) {
        self.0.store(is_open, Ordering::Relaxed);
    }
}

/// Lists, then watches, for ever. `jitter` returns a number in 0..1 for each pause; nothing else
/// here is random. Dropping the stream ends the watch.
pub fn list_and_watch<W: WatchSource>(
    source: W,
    selection: ObjectSelection,
    jitter: impl FnMut() -> f64 + Send + 'static,
) -> impl Stream<Item = ObjectEvent<W::Object>> + Send {
    list_and_watch_over(source, selection, jitter, WatchConnection::default())
}

/// Like [`list_and_watch`]; keeps `connection` up to date.
pub(crate) fn list_and_watch_over<W: WatchSource>(
    source: W,
    selection: ObjectSelection,
    jitter: impl FnMut() -> f64 + Send + 'static,
    connection: WatchConnection,
) -> impl Stream<Item = ObjectEvent<W::Object>> + Send {
    let reflection = WatchLoop {
        source,
        selection,
        pauses: WatchPauses {
            backoff: RetryBackoff::default(),
            jitter,
            due: None,
        },
        state: WatchState::List,
        connection,
    };
    futures::stream::unfold(reflection, |mut reflection| async move {
        let event = reflection.next_event().await;
        Some((event, reflection))
    })
}

struct WatchLoop<W: WatchSource, J> {
    source: W,
    selection: ObjectSelection,
    pauses: WatchPauses<J>,
    state: WatchState<W::Object>,
    connection: WatchConnection,
}

enum WatchState<K> {
    /// The next step is a list.
    List,
    /// All changes up to this version were reported.
    Resume { version: String },
    /// Like `Resume`, but the watch failed: the store may have been restored from a backup since.
    Doubted { version: String },
    Open {
        version: String,
        changes: ChangeStream<K>,
        since: Instant,
    },
}

impl<W: WatchSource, J: FnMut() -> f64> WatchLoop<W, J> {
    async fn next_event(&mut self) -> ObjectEvent<W::Object> {
        loop {
            self.pauses.wait_pause().await;
            let (state, event) = match std::mem::replace(&mut self.state, WatchState::List) {
                WatchState::List => self.list_again().await,
                WatchState::Resume { version } => self.open_watch(version).await,
                WatchState::Doubted { version } => self.check_store_version(version).await,
                WatchState::Open {
                    version,
                    changes,
                    since,
                } => self.read_change(version, changes, since).await,
            };
            self.state = state;
            if let Some(event) = event {
                return event;
            }
        }
    }

    async fn list_again(&mut self) -> WatchStep<W::Object> {
        match with_timeout(self.source.list_objects(&self.selection.list_params())).await {
            Ok(list) => {
                let version = list.metadata.resource_version.clone().unwrap_or_default();
                (
                    WatchState::Resume { version },
                    Some(ObjectEvent::Restarted(list.items)),
                )
            }
            Err(error) => self.handle_error(WatchState::List, error),
        }
    }

    /// One small request, which an idle watch does not cause: the server ends it regularly.
    async fn check_store_version(&mut self, version: String) -> WatchStep<W::Object> {
        let params = self.selection.list_params();
        match with_timeout(self.source.read_version(&params)).await {
            Ok(newest) if is_older_version(&newest, &version) => {
                tracing::warn!(
                    newest,
                    version,
                    "the store has gone back in time; everything is listed again"
                );
                (WatchState::List, None)
            }
            Ok(_) => (WatchState::Resume { version }, None),
            Err(error) => self.handle_error(WatchState::Doubted { version }, error),
        }
    }

    async fn open_watch(&mut self, version: String) -> WatchStep<W::Object> {
        match with_timeout(
            self.source
                .watch_objects(&self.selection.watch_params(), &version),
        )
        .await
        {
            Ok(changes) => {
                self.connection.set_open(true);
                let since = Instant::now();
                let open = WatchState::Open {
                    version,
                    changes,
                    since,
                };
                (open, None)
            }
            Err(error) => self.handle_interruption(version, error),
        }
    }

    async fn read_change(
        &mut self,
        version: String,
        mut changes: ChangeStream<W::Object>,
        since: Instant,
    ) -> WatchStep<W::Object> {
        let change =
            match tokio::time::timeout_at(since + WATCH_LIFETIME + WATCH_GRACE, changes.next())
                .await
            {
                Ok(Some(Ok(change))) => change,
                Ok(Some(Err(error))) => return self.handle_interruption(version, error.into()),
                Ok(None) => {
                    self.handle_end(since);
                    return (WatchState::Resume { version }, None);
                }
                Err(_) => {
                    return self.handle_interruption(
                        version,
                        Error::Timeout(WATCH_LIFETIME + WATCH_GRACE),
                    );
                }
            };
        let event = match change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                ObjectEvent::Applied(object)
            }
            WatchEvent::Deleted(object) => ObjectEvent::Deleted(object),
            WatchEvent::Bookmark(bookmark) => {
                let version = bookmark.metadata.resource_version;
                return (
                    WatchState::Open {
                        version,
                        changes,
                        since,
                    },
                    None,
                );
            }
            WatchEvent::Error(status) => {
                return self.handle_interruption(version, Error::Answer(status));
            }
        };
        self.pauses.reset();
        let version = event.object_version().unwrap_or(version);
        (
            WatchState::Open {
                version,
                changes,
                since,
            },
            Some(event),
        )
    }

    /// The server ends each watch now and then. A watch that ends at once, repeatedly, must not
    /// become polling.
    fn handle_end(&mut self, since: Instant) {
        if since.elapsed() >= HEALTHY_AFTER {
            self.pauses.reset();
        } else {
            self.pauses.lengthen_pause(None);
        }
    }

    /// Changes after `version` may have been missed; if it is too old, they were.
    fn handle_interruption(&mut self, version: String, error: Error) -> WatchStep<W::Object> {
        if error.kind() == ApiErrorKind::Gone {
            self.pauses.lengthen_after_first();
            return (WatchState::List, None);
        }
        self.handle_error(WatchState::Doubted { version }, error)
    }

    fn handle_error(&mut self, state: WatchState<W::Object>, error: Error) -> WatchStep<W::Object> {
        let after = match error.kind() {
            ApiErrorKind::Throttled { after } => after,
            ApiErrorKind::NotFound
            | ApiErrorKind::AlreadyExists
            | ApiErrorKind::Conflict
            | ApiErrorKind::Gone
            | ApiErrorKind::Forbidden
            | ApiErrorKind::Refused
            | ApiErrorKind::Transient => None,
        };
        self.pauses.lengthen_pause(after);
        self.connection.set_open(false);
        (state, Some(ObjectEvent::Failed(error)))
    }
}

type WatchStep<K> = (WatchState<K>, Option<ObjectEvent<K>>);
