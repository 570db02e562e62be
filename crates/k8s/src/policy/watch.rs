//! The policies kept in sight: one watch where the kind is installed, a look now and then where it
//! is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::policy::{Policies, Policy};
use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::{Api, Client, ResourceExt as _};

use super::{PolicyObject, convert, unreadable};
use crate::error::{Error, Kind, PATIENCE};
use crate::watch::{Event, Full, LONGEST, SHORTEST, Selection, watch};

/// When to look again where nothing can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// How long after it was not there the kind is looked for again.
    pub not_installed: Duration,
    /// How long after a refusal it is asked again.
    pub not_allowed: Duration,
}

impl Default for Cadence {
    /// Five minutes (specification §9), and one after a refusal: longer than a watch's own pauses,
    /// for thousands of coordinators would ask all day, and shorter than the other, for meanwhile
    /// nothing begins.
    fn default() -> Self {
        Self {
            not_installed: Duration::from_mins(5),
            not_allowed: Duration::from_mins(1),
        }
    }
}

/// A watch that failed is tried again within this, and an answer takes no longer: a longer silence
/// says that it is open.
const TROUBLE_IS_OVER: Duration = PATIENCE.saturating_add(LONGEST).saturating_add(SHORTEST);
/// After a refusal a list alone is not believed: where only the watch is forbidden, nodes would begin
/// after each list and turn back a moment later.
const WATCH_IS_ALLOWED: Duration = Duration::from_secs(2);

/// The policies as last seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PoliciesSeen {
    /// What is known of them; older than it should be while there is trouble.
    pub policies: Policies,
    /// Why nothing newer can be seen for the moment, in words; it passes by itself.
    pub trouble: Option<String>,
}

/// Watches the policies, for ever: an item at the start and at each change of what it says.
///
/// Writes to a policy that change nothing of what it says (its status) give no item. `jitter` gives
/// a number in 0..1 for each pause. Dropping the stream ends the watch.
pub fn watch_policies(
    client: Client,
    jitter: impl Fn() -> f64 + Send + Sync + 'static,
) -> impl Stream<Item = PoliciesSeen> + Send {
    watch_policies_at(client, Cadence::default(), jitter)
}

/// The same, looking again at another cadence.
pub fn watch_policies_at(
    client: Client,
    cadence: Cadence,
    jitter: impl Fn() -> f64 + Send + Sync + 'static,
) -> impl Stream<Item = PoliciesSeen> + Send {
    let sight = Sight {
        client,
        cadence,
        jitter: Arc::new(jitter),
        events: None,
        is_listed: false,
        policies: BTreeMap::new(),
        pause: None,
        silence: None,
        seen: PoliciesSeen::default(),
    };
    futures::stream::unfold(sight, |mut sight| async move {
        let seen = sight.next().await;
        Some((seen, sight))
    })
}

struct Sight {
    client: Client,
    cadence: Cadence,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    events: Option<BoxStream<'static, Event<PolicyObject>>>,
    /// The open watch has listed them: the kind was there.
    is_listed: bool,
    /// By the objects' names.
    policies: BTreeMap<String, Policy>,
    /// Before the next request.
    pause: Option<Duration>,
    /// How long a silence says that all is well.
    silence: Option<Duration>,
    seen: PoliciesSeen,
}

impl Sight {
    async fn next(&mut self) -> PoliciesSeen {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let seen = match self.heard().await {
                Some(event) => self.take(event),
                None => self.in_sight(),
            };
            if seen != self.seen {
                self.seen = seen.clone();
                return seen;
            }
        }
    }

    /// What the watch tells next; `None` when it was silent for as long as that proves it open.
    async fn heard(&mut self) -> Option<Event<PolicyObject>> {
        let silence = self.silence.take().unwrap_or(Duration::MAX);
        let next = tokio::time::timeout(silence, self.events().next());
        next.await
            .ok()
            .map(|event| event.expect("a watch never ends by itself"))
    }

    fn events(&mut self) -> &mut BoxStream<'static, Event<PolicyObject>> {
        let (client, jitter) = (&self.client, &self.jitter);
        self.events.get_or_insert_with(|| {
            let source = Full(Api::all(client.clone()));
            let jitter = jitter.clone();
            watch(source, Selection::default(), move || jitter()).boxed()
        })
    }

    fn take(&mut self, event: Event<PolicyObject>) -> PoliciesSeen {
        match event {
            Event::Restarted(objects) => {
                self.is_listed = true;
                self.policies = objects.iter().map(entry).collect();
                if matches!(self.seen.policies, Policies::Unreadable { .. }) {
                    self.silence = Some(WATCH_IS_ALLOWED);
                    return self.seen.clone();
                }
            }
            Event::Applied(object) => self.policies.extend([entry(&object)]),
            Event::Deleted(object) => {
                self.policies.remove(&object.name_any());
            }
            Event::Trouble(error) => return self.trouble(&error),
        }
        self.in_sight()
    }

    fn in_sight(&self) -> PoliciesSeen {
        PoliciesSeen {
            policies: Policies::Known(self.policies.values().cloned().collect()),
            trouble: None,
        }
    }

    fn trouble(&mut self, error: &Error) -> PoliciesSeen {
        if let Some(policies) = unreadable(error) {
            self.forget(self.cadence.not_allowed);
            return PoliciesSeen {
                policies,
                trouble: None,
            };
        }
        if error.kind() == Kind::NotFound {
            return self.not_there(error);
        }
        self.silence = self.is_listed.then_some(TROUBLE_IS_OVER);
        self.troubled(error)
    }

    fn troubled(&self, error: &Error) -> PoliciesSeen {
        PoliciesSeen {
            policies: self.seen.policies.clone(),
            trouble: Some(error.in_words()),
        }
    }

    /// The kind is not installed. Policies that we have seen are not given up for one such answer:
    /// a list has to say it too.
    fn not_there(&mut self, error: &Error) -> PoliciesSeen {
        if self.is_listed {
            self.forget(SHORTEST);
            return self.troubled(error);
        }
        self.forget(self.cadence.not_installed);
        self.in_sight()
    }

    /// Begins anew, at the latest after `pause`.
    fn forget(&mut self, pause: Duration) {
        self.events = None;
        self.is_listed = false;
        self.policies.clear();
        let spread = (self.jitter)().clamp(0.0, 1.0);
        self.pause = Some(pause.mul_f64(0.8 + 0.2 * spread));
    }
}

fn entry(object: &PolicyObject) -> (String, Policy) {
    let name = object.name_any();
    let policy = convert(&name, &object.spec);
    (name, policy)
}
