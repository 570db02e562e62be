//! One kind kept in sight that may not be installed, or come and go.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{BoxStream, StreamExt as _};
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use tokio::time::Instant;

use super::kind::Kind;
use crate::error::{Error, Kind as Meaning};
use crate::paged::{Paged, Trimmed};
use crate::watch::{Event, LONGEST, SHORTEST, Selection, watch};

/// What is told of a kind.
pub(super) enum Told<T> {
    /// All that there is, with the API version that is used.
    All(String, Vec<T>),
    /// It is new, or has changed.
    Put(T),
    /// It is gone.
    Gone(T),
    /// There is no such kind.
    NotInstalled,
    /// Nothing can be seen for the moment; what was seen stays.
    Trouble(Error),
}

/// From an object to what is kept of it.
type Keep<T> = Arc<dyn Fn(&DynamicObject) -> T + Send + Sync>;

/// The sight of one kind.
pub(super) struct Sight<T> {
    client: Client,
    pub(super) kind: Kind,
    keep: Keep<T>,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// How long after it was not there the kind is looked for again.
    again: Duration,
    state: State<T>,
    /// It was listed, and not found missing since.
    is_known: bool,
    /// How often in a row it could not be found out whether it is there.
    failures: u32,
}

enum State<T> {
    /// It is looked for then.
    Waiting(Instant),
    /// It is being looked for.
    Looking(BoxFuture<'static, Result<Option<ApiResource>, Error>>),
    /// It is watched.
    Open {
        version: String,
        events: BoxStream<'static, Event<Trimmed<T>>>,
    },
}

impl<T: Clone + Send + Sync + 'static> Sight<T> {
    /// Nothing is sent before [`Self::next`] is awaited.
    pub(super) fn new(
        client: Client,
        kind: Kind,
        again: Duration,
        jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
        keep: impl Fn(&DynamicObject) -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: looking(&client, kind),
            client,
            kind,
            keep: Arc::new(keep),
            jitter,
            again,
            is_known: false,
            failures: 0,
        }
    }

    /// What is told next. Losing the future loses nothing.
    pub(super) async fn next(&mut self) -> Told<T> {
        loop {
            let told = match &mut self.state {
                State::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.state = looking(&self.client, self.kind);
                    None
                }
                State::Looking(look) => {
                    let found = look.await;
                    self.found(found)
                }
                State::Open { version, events } => {
                    let event = events.next().await.expect("a watch has no end");
                    let version = version.clone();
                    self.event(version, event)
                }
            };
            if let Some(told) = told {
                return told;
            }
        }
    }

    fn found(&mut self, found: Result<Option<ApiResource>, Error>) -> Option<Told<T>> {
        match found {
            Ok(Some(resource)) => {
                self.failures = 0;
                self.state = self.open(&resource);
                None
            }
            Ok(None) => self.missing(),
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                let doubled = SHORTEST.saturating_mul(1 << self.failures.min(16));
                self.wait(doubled.min(LONGEST));
                Some(Told::Trouble(error))
            }
        }
    }

    /// Objects that were seen are not given up for one answer that the kind is not there: a key on a
    /// host would count as nobody's. It has to be said again.
    fn missing(&mut self) -> Option<Told<T>> {
        self.failures = 0;
        if std::mem::take(&mut self.is_known) {
            self.wait(SHORTEST);
            return None;
        }
        self.wait(self.again);
        Some(Told::NotInstalled)
    }

    fn event(&mut self, version: String, event: Event<Trimmed<T>>) -> Option<Told<T>> {
        Some(match event {
            Event::Restarted(all) => {
                self.is_known = true;
                Told::All(version, all.into_iter().map(|it| it.kept).collect())
            }
            Event::Applied(new) => Told::Put(new.kept),
            Event::Deleted(old) => Told::Gone(old.kept),
            // The kind, or this version of it.
            Event::Trouble(error) if error.kind() == Meaning::NotFound => {
                self.wait(SHORTEST);
                return None;
            }
            Event::Trouble(error) => Told::Trouble(error),
        })
    }

    fn wait(&mut self, pause: Duration) {
        let spread = (self.jitter)().clamp(0.0, 1.0);
        self.state = State::Waiting(Instant::now() + pause.mul_f64(0.8 + 0.2 * spread));
    }

    fn open(&self, resource: &ApiResource) -> State<T> {
        let source = Paged {
            api: Api::all_with(self.client.clone(), resource),
            keep: Arc::clone(&self.keep),
        };
        let jitter = Arc::clone(&self.jitter);
        State::Open {
            version: resource.api_version.clone(),
            events: watch(source, Selection::default(), move || jitter()).boxed(),
        }
    }
}

fn looking<T>(client: &Client, kind: Kind) -> State<T> {
    let client = client.clone();
    State::Looking(async move { kind.served(&client).await }.boxed())
}
