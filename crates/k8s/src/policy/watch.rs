//! The policies kept in sight: one watch where the kind is installed, a look now and then where it
//! is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::policy::{Policies, Policy};
use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::{Api, Client, ResourceExt as _};

use super::{PolicyObject, convert, unreadable};
use crate::error::{Error, Kind};
use crate::watch::{Event, Full, SHORTEST, Selection, watch};

/// How long after it was not there the kind is looked for again. Source: specification §9.
pub const LOOK_AGAIN: Duration = Duration::from_mins(5);
/// How long after a refusal it is asked again. Longer than a watch's own pauses: thousands of
/// coordinators would ask all day. Shorter than [`LOOK_AGAIN`]: meanwhile nothing begins.
pub const MAY_BE_ALLOWED: Duration = Duration::from_mins(1);

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
    let sight = Sight {
        client,
        jitter: Arc::new(jitter),
        events: None,
        is_listed: false,
        policies: BTreeMap::new(),
        pause: None,
        seen: PoliciesSeen::default(),
    };
    futures::stream::unfold(sight, |mut sight| async move {
        let seen = sight.next().await;
        Some((seen, sight))
    })
}

struct Sight {
    client: Client,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    events: Option<BoxStream<'static, Event<PolicyObject>>>,
    /// The open watch has listed them: the kind was there.
    is_listed: bool,
    /// By the objects' names.
    policies: BTreeMap<String, Policy>,
    pause: Option<Duration>,
    seen: PoliciesSeen,
}

impl Sight {
    async fn next(&mut self) -> PoliciesSeen {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let Some(event) = self.events().next().await else {
                // A watch never ends by itself.
                self.events = None;
                continue;
            };
            let seen = self.take(event);
            if seen != self.seen {
                self.seen = seen.clone();
                return seen;
            }
        }
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
            self.forget(MAY_BE_ALLOWED);
            return PoliciesSeen {
                policies,
                trouble: None,
            };
        }
        if error.kind() == Kind::NotFound {
            return self.not_there(error);
        }
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
            return PoliciesSeen {
                policies: self.seen.policies.clone(),
                trouble: Some(error.in_words()),
            };
        }
        self.forget(LOOK_AGAIN);
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
