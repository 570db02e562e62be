//! Watches one kind that may be absent, be installed later, and be removed.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::spread_pause;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{BoxStream, StreamExt as _};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use tokio::time::Instant;

use super::kind::OptionalKind;
use crate::error::{ApiErrorKind, Error};
use crate::paged::{PagedObjects, TrimmedObject};
use crate::watch::{
    ObjectEvent, ObjectSelection, SHORTEST_RETRY_PAUSE, WATCH_RETRY_PAUSES, WatchConnection,
    list_and_watch_over,
};

pub(super) enum OptionalWatchEvent<T> {
    /// All objects, and the API version in use.
    All(String, Vec<T>),
    Put(T),
    Gone(T),
    NotInstalled,
    /// The watch failed; the known objects stay.
    Failed(Error),
}

/// Converts an object into what is kept of it.
type KeepObject<T> = Arc<dyn Fn(&DynamicObject) -> T + Send + Sync>;

pub(super) struct OptionalWatch<T> {
    client: Client,
    pub(super) kind: OptionalKind,
    keep: KeepObject<T>,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Pause after the kind was found missing.
    again: Duration,
    state: OptionalWatchState<T>,
    /// The kind was listed, and not found missing since.
    is_known: bool,
    /// Failed discoveries in a row.
    failures: u32,
    connection: WatchConnection,
}

enum OptionalWatchState<T> {
    /// The next discovery starts at this time.
    Waiting(Instant),
    /// Discovery is running.
    Looking(BoxFuture<'static, Result<Option<ApiResource>, Error>>),
    Open {
        version: String,
        events: BoxStream<'static, ObjectEvent<TrimmedObject<T>>>,
    },
}

impl<T: Clone + Send + Sync + 'static> OptionalWatch<T> {
    /// Sends nothing before [`Self::next_event`] is awaited.
    pub(super) fn new(
        client: Client,
        kind: OptionalKind,
        again: Duration,
        jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
        keep: impl Fn(&DynamicObject) -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: start_discovery(&client, kind),
            client,
            kind,
            keep: Arc::new(keep),
            jitter,
            again,
            is_known: false,
            failures: 0,
            connection: WatchConnection::default(),
        }
    }

    /// Whether the watch is open, and has not failed since it was last answered.
    pub(super) fn is_connected(&self) -> bool {
        self.connection.is_open()
    }

    /// Cancel-safe.
    pub(super) async fn next_event(&mut self) -> OptionalWatchEvent<T> {
        loop {
            let told = match &mut self.state {
                OptionalWatchState::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.state = start_discovery(&self.client, self.kind);
                    None
                }
                OptionalWatchState::Looking(look) => {
                    let found = look.await;
                    self.handle_discovery(found)
                }
                OptionalWatchState::Open { version, events } => {
                    let event = events.next().await.expect("a watch has no end");
                    let version = version.clone();
                    self.convert_event(version, event)
                }
            };
            if let Some(told) = told {
                return told;
            }
        }
    }

    fn handle_discovery(
        &mut self,
        found: Result<Option<ApiResource>, Error>,
    ) -> Option<OptionalWatchEvent<T>> {
        match found {
            Ok(Some(resource)) => {
                self.failures = 0;
                self.state = self.open_watch(&resource);
                None
            }
            Ok(None) => self.handle_missing_kind(),
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                self.schedule_discovery(WATCH_RETRY_PAUSES.pause_after(self.failures));
                Some(OptionalWatchEvent::Failed(error))
            }
        }
    }

    /// One answer that the kind is missing does not drop known objects, because a key on a host
    /// would then seem to have no owner. A second discovery has to confirm it.
    fn handle_missing_kind(&mut self) -> Option<OptionalWatchEvent<T>> {
        self.failures = 0;
        if std::mem::take(&mut self.is_known) {
            self.schedule_discovery(SHORTEST_RETRY_PAUSE);
            return None;
        }
        self.schedule_discovery(self.again);
        Some(OptionalWatchEvent::NotInstalled)
    }

    fn convert_event(
        &mut self,
        version: String,
        event: ObjectEvent<TrimmedObject<T>>,
    ) -> Option<OptionalWatchEvent<T>> {
        Some(match event {
            ObjectEvent::Restarted(all) => {
                self.is_known = true;
                OptionalWatchEvent::All(version, all.into_iter().map(|it| it.kept).collect())
            }
            ObjectEvent::Applied(new) => OptionalWatchEvent::Put(new.kept),
            ObjectEvent::Deleted(old) => OptionalWatchEvent::Gone(old.kept),
            // 404: the kind is gone, or this version of it.
            ObjectEvent::Failed(error) if error.kind() == ApiErrorKind::NotFound => {
                self.schedule_discovery(SHORTEST_RETRY_PAUSE);
                return None;
            }
            ObjectEvent::Failed(error) => OptionalWatchEvent::Failed(error),
        })
    }

    fn schedule_discovery(&mut self, pause: Duration) {
        let pause = spread_pause(pause, (self.jitter)());
        self.state = OptionalWatchState::Waiting(Instant::now() + pause);
    }

    fn open_watch(&self, resource: &ApiResource) -> OptionalWatchState<T> {
        let source = PagedObjects {
            api: Api::all_with(self.client.clone(), resource),
            keep: Arc::clone(&self.keep),
        };
        let (all, jitter) = (ObjectSelection::default(), Arc::clone(&self.jitter));
        let connection = self.connection.clone();
        OptionalWatchState::Open {
            version: resource.api_version.clone(),
            events: list_and_watch_over(source, all, move || jitter(), connection).boxed(),
        }
    }
}

fn start_discovery<T>(client: &Client, kind: OptionalKind) -> OptionalWatchState<T> {
    let client = client.clone();
    OptionalWatchState::Looking(async move { kind.find_served_version(&client).await }.boxed())
}
