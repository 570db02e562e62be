//! Watches the policies: one watch while the kind is installed, else a list at an interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::policy::{ClusterPolicies, Policy};
use futures::stream::Stream;
use kube::{Api, Client, ResourceExt as _};

use super::{PolicyObject, convert_policy_object, unreadable_policies};
use crate::error::REQUEST_TIMEOUT;
use crate::informer::{InformerEvent, JitterFunction, KindInformer, KindRecheck};
use crate::watch::{FullObjects, LONGEST_RETRY_PAUSE, ObjectSelection, SHORTEST_RETRY_PAUSE};

/// How often the policies are read again while they cannot be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyRecheckIntervals {
    /// Pause after the kind was found missing.
    pub not_installed: Duration,
    /// Pause after a refusal.
    pub not_allowed: Duration,
}

impl Default for PolicyRecheckIntervals {
    /// Five minutes (specification §9); one minute after a refusal: longer than a watch's own
    /// pauses, because thousands of coordinators would ask all day, and shorter than five minutes,
    /// because no reboot begins meanwhile.
    fn default() -> Self {
        Self {
            not_installed: Duration::from_mins(5),
            not_allowed: Duration::from_mins(1),
        }
    }
}

/// A failed watch is retried within this time, and an answer takes no longer: if nothing arrives
/// for this time, the watch is open.
const WATCH_RECOVERED_AFTER: Duration = REQUEST_TIMEOUT
    .saturating_add(LONGEST_RETRY_PAUSE)
    .saturating_add(SHORTEST_RETRY_PAUSE);
/// After a refusal, a list alone is not trusted: if only the watch is forbidden, nodes would begin
/// after each list and stop a moment later.
const WATCH_ALLOWED_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyWatchView {
    /// Stale while `error` is set.
    pub policies: ClusterPolicies,
    /// Why the policies cannot be watched at the moment. The watch is retried.
    pub error: Option<String>,
}

/// Watches the policies for ever: one item at the start and one at each change of their content.
///
/// Writes that change a policy's status give no item, unless they change `status.rollout`. `jitter` returns a number in 0..1 for
/// each pause. Dropping the stream ends the watch.
pub fn watch_policies(
    client: Client,
    jitter: impl Fn() -> f64 + Send + Sync + 'static,
) -> impl Stream<Item = PolicyWatchView> + Send {
    watch_policies_with_intervals(client, PolicyRecheckIntervals::default(), jitter)
}

/// Like [`watch_policies`], with other intervals.
pub fn watch_policies_with_intervals(
    client: Client,
    cadence: PolicyRecheckIntervals,
    jitter: impl Fn() -> f64 + Send + Sync + 'static,
) -> impl Stream<Item = PolicyWatchView> + Send {
    let jitter: JitterFunction = Arc::new(jitter);
    let source = FullObjects(Api::<PolicyObject>::all(client));
    let recheck = KindRecheck::After {
        not_installed: cadence.not_installed,
        forbidden: Some(cadence.not_allowed),
    };
    let selection = ObjectSelection::default();
    let watch = PolicyWatch {
        informer: KindInformer::new(source, selection, recheck, &jitter, |object| {
            Some(policy_entry(object))
        }),
        policies: BTreeMap::new(),
        silence: None,
        seen: PolicyWatchView::default(),
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let seen = watch.next_view().await;
        Some((seen, watch))
    })
}

struct PolicyWatch {
    informer: KindInformer<String, Policy>,
    /// Policies by object name.
    policies: BTreeMap<String, Policy>,
    /// After this time without an event, the watch counts as open.
    silence: Option<Duration>,
    seen: PolicyWatchView,
}

impl PolicyWatch {
    async fn next_view(&mut self) -> PolicyWatchView {
        loop {
            let seen = match self.next_event().await {
                Some(event) => self.apply_event(event),
                None => self.current_view(),
            };
            if seen != self.seen {
                self.seen = seen.clone();
                return seen;
            }
        }
    }

    /// The next event; `None` after so much silence that the watch must be open.
    async fn next_event(&mut self) -> Option<InformerEvent<String, Policy>> {
        let silence = self.silence.take().unwrap_or(Duration::MAX);
        let next = tokio::time::timeout(silence, self.informer.next_event());
        next.await.ok()
    }

    fn apply_event(&mut self, event: InformerEvent<String, Policy>) -> PolicyWatchView {
        let is_list = matches!(event, InformerEvent::Listed(_));
        // A single refusal of the watch is a failure like another: see `InformerEvent::Forbidden`.
        let is_forbidden = matches!(event, InformerEvent::Forbidden(_));
        let Some(error) = event.apply_to(&mut self.policies) else {
            if is_list && self.seen.policies.is_unreadable() {
                self.silence = Some(WATCH_ALLOWED_AFTER);
                return self.seen.clone();
            }
            return self.current_view();
        };
        if is_forbidden && let Some(policies) = unreadable_policies(&error) {
            return PolicyWatchView {
                policies,
                error: None,
            };
        }
        self.silence = self.informer.is_listed().then_some(WATCH_RECOVERED_AFTER);
        PolicyWatchView {
            policies: self.seen.policies.clone(),
            error: Some(error.error_chain()),
        }
    }

    fn current_view(&self) -> PolicyWatchView {
        PolicyWatchView {
            policies: ClusterPolicies::Known(self.policies.values().cloned().collect()),
            error: None,
        }
    }
}

fn policy_entry(object: &PolicyObject) -> (String, Policy) {
    let name = object.name_any();
    (name, convert_policy_object(object))
}
