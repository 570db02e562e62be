//! List and watch, without end.
//!
//! kube's own `runtime` does this and more (stores, shared streams); its weight was left out of the
//! coordinator on purpose. This is the part that every loop here needs.
//!
//! Promises: it never polls. Every change after the list is told once and in order. A 410 is
//! answered with a new list; what that lacks is gone. An end of the stream goes on from the last
//! version seen. Trouble is told ([`Event::Trouble`]), never ends the stream, and is retried after
//! a pause that doubles from [`SHORTEST`] to [`LONGEST`]. A connection that died silently is
//! noticed when the server should have ended the watch.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::api::{Api, ListParams, ObjectList, PartialObjectMeta, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::error::{Error, Kind, ask};

/// How long the server is asked to keep a watch open; kube refuses 295 s and more.
const LIFETIME: Duration = Duration::from_secs(290);
/// How much longer than that we believe in it.
const GRACE: Duration = Duration::from_secs(15);
/// A watch that lived this long was healthy: its end is no trouble.
const HEALTHY: Duration = Duration::from_secs(10);
/// The first pause after trouble.
pub const SHORTEST: Duration = Duration::from_millis(500);
/// The longest pause.
pub const LONGEST: Duration = Duration::from_secs(30);

/// What a watch tells.
#[derive(Debug)]
pub enum Event<K> {
    /// Everything that there is: at the start, and after changes may have been missed. What is not
    /// in it is gone.
    Restarted(Vec<K>),
    /// It is new, or has changed.
    Applied(K),
    /// It is gone; this is how it last was.
    Deleted(K),
    /// Nothing can be seen for the moment; it is tried again, for ever.
    Trouble(Error),
}

impl<K: Resource> Event<K> {
    fn version(&self) -> Option<String> {
        match self {
            Event::Applied(object) | Event::Deleted(object) => object.resource_version(),
            Event::Restarted(_) | Event::Trouble(_) => None,
        }
    }
}

/// Which objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Label selector.
    pub labels: Option<String>,
    /// Field selector.
    pub fields: Option<String>,
}

impl Selection {
    /// By labels.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self {
            labels: Some(selector.into()),
            fields: None,
        }
    }

    /// By fields.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self {
            labels: None,
            fields: Some(selector.into()),
        }
    }

    /// The same choice for a single list.
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
            timeout: u32::try_from(LIFETIME.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        }
    }
}

/// What can be listed and watched: [`Full`] objects or their [`Metadata`] only.
pub trait Watched: Send + Sync + 'static {
    /// What arrives.
    type Object: Resource + Clone + Send + 'static;

    /// Lists it.
    fn list(
        &self,
        params: &ListParams,
    ) -> impl Future<Output = kube::Result<ObjectList<Self::Object>>> + Send;

    /// Watches it from a version.
    fn watch(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> impl Future<Output = kube::Result<Changes<Self::Object>>> + Send;
}

/// One watch's events.
pub type Changes<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// Whole objects.
#[derive(Debug, Clone)]
pub struct Full<K>(pub Api<K>);

/// Only their metadata: a Node is 10 KiB and more, its metadata 1.
#[derive(Debug, Clone)]
pub struct Metadata<K>(pub Api<K>);

impl<K> Watched for Full<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    type Object = K;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<K>> {
        self.0.list(params).await
    }

    async fn watch(&self, params: &WatchParams, version: &str) -> kube::Result<Changes<K>> {
        Ok(self.0.watch(params, version).await?.boxed())
    }
}

impl<K> Watched for Metadata<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    type Object = PartialObjectMeta<K>;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<PartialObjectMeta<K>>> {
        self.0.list_metadata(params).await
    }

    async fn watch(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<Changes<PartialObjectMeta<K>>> {
        Ok(self.0.watch_metadata(params, version).await?.boxed())
    }
}

/// Lists, then watches, for ever. `jitter` gives a number in 0..1 for each pause; nothing else here
/// is left to chance. Dropping the stream ends the watch.
pub fn watch<W: Watched>(
    source: W,
    selection: Selection,
    jitter: impl FnMut() -> f64 + Send + 'static,
) -> impl Stream<Item = Event<W::Object>> + Send {
    let reflection = Loop {
        source,
        selection,
        pauses: Pauses {
            tries: 0,
            jitter,
            due: None,
        },
        state: State::List,
    };
    futures::stream::unfold(reflection, |mut reflection| async move {
        let event = reflection.next().await;
        Some((event, reflection))
    })
}

struct Loop<W: Watched, J> {
    source: W,
    selection: Selection,
    pauses: Pauses<J>,
    state: State<W::Object>,
}

enum State<K> {
    /// Nothing is known.
    List,
    /// Everything up to this version was told.
    Resume { version: String },
    /// A watch is open.
    Open {
        version: String,
        changes: Changes<K>,
        since: Instant,
    },
}

impl<W: Watched, J: FnMut() -> f64> Loop<W, J> {
    async fn next(&mut self) -> Event<W::Object> {
        loop {
            self.pauses.wait().await;
            let (state, event) = match std::mem::replace(&mut self.state, State::List) {
                State::List => self.list().await,
                State::Resume { version } => self.open(version).await,
                State::Open {
                    version,
                    changes,
                    since,
                } => self.read(version, changes, since).await,
            };
            self.state = state;
            if let Some(event) = event {
                return event;
            }
        }
    }

    async fn list(&mut self) -> Step<W::Object> {
        match ask(self.source.list(&self.selection.list_params())).await {
            Ok(list) => {
                let version = list.metadata.resource_version.clone().unwrap_or_default();
                (
                    State::Resume { version },
                    Some(Event::Restarted(list.items)),
                )
            }
            Err(error) => self.trouble(State::List, error),
        }
    }

    async fn open(&mut self, version: String) -> Step<W::Object> {
        match ask(self.source.watch(&self.selection.watch_params(), &version)).await {
            Ok(changes) => (
                State::Open {
                    version,
                    changes,
                    since: Instant::now(),
                },
                None,
            ),
            Err(error) => self.interrupted(version, error),
        }
    }

    async fn read(
        &mut self,
        version: String,
        mut changes: Changes<W::Object>,
        since: Instant,
    ) -> Step<W::Object> {
        let change = match tokio::time::timeout_at(since + LIFETIME + GRACE, changes.next()).await {
            Ok(Some(Ok(change))) => change,
            Ok(Some(Err(error))) => return self.interrupted(version, error.into()),
            Ok(None) => {
                self.ended(since);
                return (State::Resume { version }, None);
            }
            Err(_) => return self.interrupted(version, Error::Timeout(LIFETIME + GRACE)),
        };
        let event = match change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Event::Applied(object),
            WatchEvent::Deleted(object) => Event::Deleted(object),
            WatchEvent::Bookmark(bookmark) => {
                let version = bookmark.metadata.resource_version;
                return (
                    State::Open {
                        version,
                        changes,
                        since,
                    },
                    None,
                );
            }
            WatchEvent::Error(status) => return self.interrupted(version, Error::Answer(status)),
        };
        self.pauses.reset();
        let version = event.version().unwrap_or(version);
        (
            State::Open {
                version,
                changes,
                since,
            },
            Some(event),
        )
    }

    /// The server ended the watch, as it does now and then. One that ends at once, again and
    /// again, must not become a poll.
    fn ended(&mut self, since: Instant) {
        if since.elapsed() >= HEALTHY {
            self.pauses.reset();
        } else {
            self.pauses.lengthen(None);
        }
    }

    /// Changes may have been missed after `version`, or, where it is too old, were.
    fn interrupted(&mut self, version: String, error: Error) -> Step<W::Object> {
        if error.kind() == Kind::Gone {
            self.pauses.lengthen_but_first();
            return (State::List, None);
        }
        self.trouble(State::Resume { version }, error)
    }

    fn trouble(&mut self, state: State<W::Object>, error: Error) -> Step<W::Object> {
        let after = match error.kind() {
            Kind::Throttled { after } => after,
            Kind::NotFound
            | Kind::AlreadyExists
            | Kind::Conflict
            | Kind::Gone
            | Kind::Forbidden
            | Kind::Refused
            | Kind::Transient => None,
        };
        self.pauses.lengthen(after);
        (state, Some(Event::Trouble(error)))
    }
}

type Step<K> = (State<K>, Option<Event<K>>);

/// Pauses between tries. The pause is waited out before the next try and not after the last, so
/// that trouble is told at once.
struct Pauses<J> {
    tries: u32,
    jitter: J,
    due: Option<Duration>,
}

impl<J: FnMut() -> f64> Pauses<J> {
    async fn wait(&mut self) {
        if let Some(due) = self.due.take() {
            tokio::time::sleep(due).await;
        }
    }

    fn reset(&mut self) {
        self.tries = 0;
    }

    /// The next pause, at least as long as the server asked for.
    fn lengthen(&mut self, at_least: Option<Duration>) {
        self.tries = self.tries.saturating_add(1);
        let longest = SHORTEST
            .saturating_mul(1 << (self.tries - 1).min(16))
            .min(LONGEST);
        let half = longest / 2;
        let pause = half + half.mul_f64((self.jitter)().clamp(0.0, 1.0));
        self.due = Some(pause.max(at_least.unwrap_or_default()));
    }

    /// As [`Self::lengthen`], but without a pause the first time: a version grows old by itself.
    fn lengthen_but_first(&mut self) {
        if self.tries == 0 {
            self.tries = 1;
        } else {
            self.lengthen(None);
        }
    }
}
