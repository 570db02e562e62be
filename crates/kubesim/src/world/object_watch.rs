//! Lists and watches objects without end.
//!
//! It never polls: every watch resumes from the last version that it saw, and a new list follows
//! only when that version is too old (410). After a failure it waits before it tries again, longer
//! each time. Pauses are fixed, so that the same seed gives the same calls at the same times.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

/// Time limit for the answer to a request; for a watch, for its first bytes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The lifetime of a watch that the server is asked for; kube refuses 295 s and more.
const WATCH_LIFETIME: Duration = Duration::from_secs(290);
/// A watch that is open this much longer than its lifetime is dead.
const WATCH_GRACE: Duration = Duration::from_secs(15);
/// The end of a watch that lived this long is no failure.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
const SHORTEST_PAUSE: Duration = Duration::from_millis(375);
const LONGEST_PAUSE: Duration = Duration::from_millis(22_500);

#[derive(Debug)]
pub(crate) enum StoredObjectEvent<K> {
    /// All objects: first of all, and again after changes may have been missed. Others are gone.
    Listed(Vec<K>),
    /// An object is new or has changed.
    Applied(K),
    /// An object is gone; this is its last state.
    Deleted(K),
}

/// Lists the objects that this field selector selects, then watches them. Dropping the stream ends
/// the watch.
pub(crate) fn watch_objects<K>(
    api: Api<K>,
    fields: Option<String>,
) -> impl Stream<Item = StoredObjectEvent<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watch = ObjectWatch {
        api,
        fields,
        failures: 0,
        pause: None,
        state: ObjectWatchState::List,
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let event = watch.next_event().await;
        Some((event, watch))
    })
}

struct ObjectWatch<K> {
    api: Api<K>,
    fields: Option<String>,
    failures: u32,
    /// To wait before the next request.
    pause: Option<Duration>,
    state: ObjectWatchState<K>,
}

enum ObjectWatchState<K> {
    /// Nothing is known.
    List,
    /// Everything up to this version is known.
    Resume(String),
    Open {
        version: String,
        changes: BoxStream<'static, kube::Result<WatchEvent<K>>>,
        since: Instant,
    },
}

#[derive(Debug, thiserror::Error)]
enum WatchFailure {
    #[error("the API server did not answer in time")]
    Late(#[from] tokio::time::error::Elapsed),
    #[error(transparent)]
    Request(#[from] kube::Error),
}

impl<K> ObjectWatch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async fn next_event(&mut self) -> StoredObjectEvent<K> {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let (resume, step) = match std::mem::replace(&mut self.state, ObjectWatchState::List) {
                ObjectWatchState::List => (None, self.list().await),
                ObjectWatchState::Resume(version) => {
                    let opened = self.open(&version).await;
                    (Some(version), opened)
                }
                ObjectWatchState::Open {
                    version,
                    changes,
                    since,
                } => (
                    Some(version.clone()),
                    self.read_change(version, changes, since).await,
                ),
            };
            match step {
                Ok((state, event)) => {
                    self.state = state;
                    if let Some(event) = event {
                        return event;
                    }
                }
                Err(failure) => self.note_failure(resume, &failure),
            }
        }
    }

    async fn list(&mut self) -> ObjectWatchStep<K> {
        let params = ListParams {
            field_selector: self.fields.clone(),
            ..ListParams::default()
        };
        let list = timeout(REQUEST_TIMEOUT, self.api.list(&params)).await??;
        let version = list.metadata.resource_version.unwrap_or_default();
        let event = StoredObjectEvent::Listed(list.items);
        Ok((ObjectWatchState::Resume(version), Some(event)))
    }

    async fn open(&mut self, version: &str) -> ObjectWatchStep<K> {
        let params = WatchParams {
            label_selector: None,
            field_selector: self.fields.clone(),
            timeout: u32::try_from(WATCH_LIFETIME.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        };
        let changes = timeout(REQUEST_TIMEOUT, self.api.watch(&params, version)).await??;
        let state = ObjectWatchState::Open {
            version: version.to_owned(),
            changes: changes.boxed(),
            since: Instant::now(),
        };
        Ok((state, None))
    }

    async fn read_change(
        &mut self,
        version: String,
        mut changes: BoxStream<'static, kube::Result<WatchEvent<K>>>,
        since: Instant,
    ) -> ObjectWatchStep<K> {
        let dead_at = since + WATCH_LIFETIME + WATCH_GRACE;
        let Some(change) = timeout_at(dead_at, changes.next()).await? else {
            self.note_end(since);
            return Ok((ObjectWatchState::Resume(version), None));
        };
        let (seen, event) = match change? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (
                object.resource_version(),
                Some(StoredObjectEvent::Applied(object)),
            ),
            WatchEvent::Deleted(object) => (
                object.resource_version(),
                Some(StoredObjectEvent::Deleted(object)),
            ),
            WatchEvent::Bookmark(bookmark) => (Some(bookmark.metadata.resource_version), None),
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        };
        if event.is_some() {
            self.failures = 0;
        }
        let state = ObjectWatchState::Open {
            version: seen.unwrap_or(version),
            changes,
            since,
        };
        Ok((state, event))
    }

    /// The server ends watches now and then. One that always ends at once must not become a poll.
    fn note_end(&mut self, since: Instant) {
        if since.elapsed() >= HEALTHY_AFTER {
            self.failures = 0;
        } else {
            self.lengthen_pause(Duration::ZERO);
        }
    }

    /// Resumes from this version, or lists again if it is too old or there is none.
    fn note_failure(&mut self, resume: Option<String>, failure: &WatchFailure) {
        tracing::debug!(error = %failure, kind = %self.api.resource_url(), "cannot watch");
        let status = match failure {
            WatchFailure::Request(kube::Error::Api(status)) => Some(&**status),
            WatchFailure::Request(_) | WatchFailure::Late(_) => None,
        };
        match resume {
            Some(_) if status.is_some_and(|status| status.code == 410) => {
                // A version grows old by itself: no pause the first time.
                if self.failures == 0 {
                    self.failures = 1;
                } else {
                    self.lengthen_pause(Duration::ZERO);
                }
            }
            Some(version) => {
                self.state = ObjectWatchState::Resume(version);
                self.lengthen_pause(wanted_pause(status));
            }
            None => self.lengthen_pause(wanted_pause(status)),
        }
    }

    fn lengthen_pause(&mut self, at_least: Duration) {
        let doubled = SHORTEST_PAUSE.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.pause = Some(doubled.min(LONGEST_PAUSE).max(at_least));
    }
}

type ObjectWatchStep<K> = Result<(ObjectWatchState<K>, Option<StoredObjectEvent<K>>), WatchFailure>;

/// The pause that a busy server asks for: kube drops the header, the body repeats it.
fn wanted_pause(status: Option<&Status>) -> Duration {
    let busy = status.filter(|status| status.code == 429);
    let details = busy.and_then(|status| status.details.as_ref());
    details.map_or(Duration::ZERO, |details| {
        Duration::from_secs(u64::from(details.retry_after_seconds))
    })
}
