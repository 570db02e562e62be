//! Watches all objects of one kind, which may be missing or forbidden.
//!
//! **For:** every view of the cluster that is more than one object: a view has one informer for each
//! kind, and applies its events to a map.
//! **May touch:** the kind (list, watch).
//! **Promises:** what [`list_and_watch_over`] promises. One answer that a listed kind is missing or
//! forbidden drops no objects: a second one has to confirm it. Whatever the answer, the kind is
//! asked for again for ever, and found when it comes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::spread_pause;
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt as _};
use tokio::time::Instant;

use crate::error::{ApiErrorKind, Error};
use crate::watch::{
    ObjectEvent, ObjectSelection, SHORTEST_RETRY_PAUSE, WatchConnection, WatchSource,
    list_and_watch_over,
};

/// Returns a number in 0..1 for each pause.
pub(crate) type JitterFunction = Arc<dyn Fn() -> f64 + Send + Sync>;

/// A single watcher needs no jitter.
pub(crate) fn fixed_jitter() -> JitterFunction {
    Arc::new(|| 0.5)
}

#[derive(Debug)]
pub(crate) enum InformerEvent<N, V> {
    /// All objects: another one is gone.
    Listed(Vec<(N, V)>),
    Applied(N, V),
    Deleted(N),
    /// The kind is not installed, so there are no objects.
    NotInstalled,
    /// The API server refuses the list or the watch (403): the objects are unknown.
    Forbidden(Error),
    /// The watch failed, and is retried. The known objects stay, and may be stale.
    Failed(Error),
}

/// What an informer does with a kind that is missing or forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindRecheck {
    /// Every cluster serves the kind: that it is missing or forbidden is a failure like another.
    AlwaysServed,
    /// Asks again with the pauses of a failed watch.
    WatchPauses,
    /// Asks again after these pauses. `forbidden: None`: a refusal is a failure like another.
    After {
        not_installed: Duration,
        forbidden: Option<Duration>,
    },
}

/// Before a kind is asked for a second time that was listed and is refused or missing now. A watch
/// that continues would not repeat the objects that exist. An account that may list the kind, and
/// not watch it, comes here for ever.
const LISTED_RECHECK_PAUSE: Duration = Duration::from_secs(5);

/// How long a refusal counts as the one that confirms another.
const DOUBT_PERIOD: Duration = Duration::from_mins(10);

type InformerStream<N, V> = BoxStream<'static, InformerEvent<N, V>>;

/// The watch of one kind, which gives each object as a name and a value.
pub(crate) struct KindInformer<N, V> {
    open: Box<dyn Fn() -> InformerStream<N, V> + Send + Sync>,
    recheck: KindRecheck,
    jitter: JitterFunction,
    state: InformerState<N, V>,
    is_synced: bool,
    connection: WatchConnection,
    /// When the kind was last refused.
    refused_at: Option<Instant>,
}

enum InformerState<N, V> {
    /// `is_listed`: a list has arrived since the watch was opened.
    Open {
        events: InformerStream<N, V>,
        is_listed: bool,
    },
    /// The watch is opened again at this time.
    Closed(Instant),
}

impl<N: Send + 'static, V: Send + 'static> KindInformer<N, V> {
    /// Sends nothing before [`Self::next_event`] is awaited. `entry` gives the name and the value of
    /// an object; an object for which it gives `None` is ignored.
    pub(crate) fn new<W: WatchSource + Clone>(
        source: W,
        selection: ObjectSelection,
        recheck: KindRecheck,
        jitter: &JitterFunction,
        entry: impl Fn(&W::Object) -> Option<(N, V)> + Send + Sync + 'static,
    ) -> Self {
        let (entry, pauses) = (Arc::new(entry), Arc::clone(jitter));
        let connection = WatchConnection::default();
        let connected = connection.clone();
        let open = move || {
            let (entry, pauses) = (Arc::clone(&entry), Arc::clone(&pauses));
            let (source, selection) = (source.clone(), selection.clone());
            list_and_watch_over(source, selection, move || pauses(), connected.clone())
                .filter_map(move |event| ready(convert_event(event, &*entry)))
                .boxed()
        };
        let events = open();
        Self {
            open: Box::new(open),
            recheck,
            jitter: Arc::clone(jitter),
            state: InformerState::Open {
                events,
                is_listed: false,
            },
            is_synced: false,
            connection,
            refused_at: None,
        }
    }

    /// Whether the watch has not failed since the API server last answered it: what is known is up
    /// to date.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_open()
    }

    /// A list has arrived, or the kind was found missing or forbidden. Before that, an object that
    /// was in no event may still exist.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> InformerEvent<N, V> {
        loop {
            match &mut self.state {
                InformerState::Open { events, .. } => {
                    let event = events.next().await.expect("a watch has no end");
                    return self.handle_event(event);
                }
                InformerState::Closed(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.reopen_watch();
                }
            }
        }
    }

    fn handle_event(&mut self, event: InformerEvent<N, V>) -> InformerEvent<N, V> {
        match event {
            InformerEvent::Listed(_) => {
                self.is_synced = true;
                if let InformerState::Open { is_listed, .. } = &mut self.state {
                    *is_listed = true;
                }
                event
            }
            InformerEvent::Failed(error) if error.kind() == ApiErrorKind::NotFound => {
                self.handle_missing_kind(error)
            }
            InformerEvent::Failed(error) if error.is_denied() => self.handle_refusal(error),
            InformerEvent::Applied(..)
            | InformerEvent::Deleted(_)
            | InformerEvent::NotInstalled
            | InformerEvent::Forbidden(_)
            | InformerEvent::Failed(_) => event,
        }
    }

    fn handle_missing_kind(&mut self, error: Error) -> InformerEvent<N, V> {
        match self.recheck {
            KindRecheck::AlwaysServed => return InformerEvent::Failed(error),
            KindRecheck::WatchPauses => {
                if self.is_listed() {
                    self.close_for(LISTED_RECHECK_PAUSE);
                    return InformerEvent::Failed(error);
                }
            }
            KindRecheck::After { not_installed, .. } => {
                if self.is_listed() {
                    self.close_for(SHORTEST_RETRY_PAUSE);
                    return InformerEvent::Failed(error);
                }
                self.close_for(not_installed);
            }
        }
        self.is_synced = true;
        InformerEvent::NotInstalled
    }

    fn handle_refusal(&mut self, error: Error) -> InformerEvent<N, V> {
        match self.recheck {
            KindRecheck::AlwaysServed
            | KindRecheck::After {
                forbidden: None, ..
            } => return InformerEvent::Failed(error),
            KindRecheck::WatchPauses => {
                if self.is_listed() {
                    self.close_for(LISTED_RECHECK_PAUSE);
                    return InformerEvent::Failed(error);
                }
            }
            KindRecheck::After {
                forbidden: Some(pause),
                ..
            } => {
                // An account that may only list the kind is refused after every list.
                let is_first = self.is_first_refusal();
                if self.is_listed() && is_first {
                    self.close_for(SHORTEST_RETRY_PAUSE);
                    return InformerEvent::Failed(error);
                }
                self.close_for(pause);
            }
        }
        self.is_synced = true;
        InformerEvent::Forbidden(error)
    }

    /// Whether the kind was not refused within the last [`DOUBT_PERIOD`].
    fn is_first_refusal(&mut self) -> bool {
        let now = Instant::now();
        let before = self.refused_at.replace(now);
        before.is_none_or(|before| now > before + DOUBT_PERIOD)
    }

    /// Whether the open watch has listed the objects.
    pub(crate) fn is_listed(&self) -> bool {
        match &self.state {
            InformerState::Open { is_listed, .. } => *is_listed,
            InformerState::Closed(_) => false,
        }
    }

    fn reopen_watch(&mut self) {
        self.state = InformerState::Open {
            events: (self.open)(),
            is_listed: false,
        };
    }

    fn close_for(&mut self, pause: Duration) {
        let until = Instant::now() + spread_pause(pause, (self.jitter)());
        self.state = InformerState::Closed(until);
    }
}

impl<N: Ord, V> InformerEvent<N, V> {
    /// Applies the event to the known objects. Returns why they cannot be watched at the moment.
    pub(crate) fn apply_to(self, objects: &mut BTreeMap<N, V>) -> Option<Error> {
        match self {
            InformerEvent::Listed(all) => *objects = all.into_iter().collect(),
            InformerEvent::Applied(name, object) => {
                objects.insert(name, object);
            }
            InformerEvent::Deleted(name) => {
                objects.remove(&name);
            }
            InformerEvent::NotInstalled => objects.clear(),
            InformerEvent::Forbidden(error) => {
                objects.clear();
                return Some(error);
            }
            InformerEvent::Failed(error) => return Some(error),
        }
        None
    }
}

fn convert_event<K, N, V>(
    event: ObjectEvent<K>,
    entry: &impl Fn(&K) -> Option<(N, V)>,
) -> Option<InformerEvent<N, V>> {
    Some(match event {
        ObjectEvent::Restarted(all) => {
            InformerEvent::Listed(all.iter().filter_map(entry).collect())
        }
        ObjectEvent::Applied(object) => {
            let (name, object) = entry(&object)?;
            InformerEvent::Applied(name, object)
        }
        ObjectEvent::Deleted(object) => InformerEvent::Deleted(entry(&object)?.0),
        ObjectEvent::Failed(error) => InformerEvent::Failed(error),
    })
}
