//! Watches the policies: one watch while the kind is installed, else a list at an interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::spread_pause;
use dogwatch_core::policy::{ClusterPolicies, Policy};
use futures::stream::{BoxStream, Stream, StreamExt as _};
use kube::{Api, Client, ResourceExt as _};

use super::{PolicyObject, convert_policy, unreadable_policies};
use crate::error::{ApiErrorKind, Error, REQUEST_TIMEOUT};
use crate::watch::{
    FullObjects, LONGEST_RETRY_PAUSE, ObjectEvent, ObjectSelection, SHORTEST_RETRY_PAUSE,
    list_and_watch,
};

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
/// Writes that change only a policy's status give no item. `jitter` returns a number in 0..1 for
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
    let sight = OptionalPolicyWatch {
        client,
        cadence,
        jitter: Arc::new(jitter),
        events: None,
        is_listed: false,
        policies: BTreeMap::new(),
        pause: None,
        silence: None,
        seen: PolicyWatchView::default(),
    };
    futures::stream::unfold(sight, |mut sight| async move {
        let seen = sight.next_view().await;
        Some((seen, sight))
    })
}

struct OptionalPolicyWatch {
    client: Client,
    cadence: PolicyRecheckIntervals,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    events: Option<BoxStream<'static, ObjectEvent<PolicyObject>>>,
    /// The open watch has listed the policies, so the kind was installed.
    is_listed: bool,
    /// Policies by object name.
    policies: BTreeMap<String, Policy>,
    /// Pause before the next request.
    pause: Option<Duration>,
    /// After this time without an event, the watch counts as open.
    silence: Option<Duration>,
    seen: PolicyWatchView,
}

impl OptionalPolicyWatch {
    async fn next_view(&mut self) -> PolicyWatchView {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
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
    async fn next_event(&mut self) -> Option<ObjectEvent<PolicyObject>> {
        let silence = self.silence.take().unwrap_or(Duration::MAX);
        let next = tokio::time::timeout(silence, self.event_stream().next());
        next.await
            .ok()
            .map(|event| event.expect("a watch never ends by itself"))
    }

    fn event_stream(&mut self) -> &mut BoxStream<'static, ObjectEvent<PolicyObject>> {
        let (client, jitter) = (&self.client, &self.jitter);
        self.events.get_or_insert_with(|| {
            let source = FullObjects(Api::all(client.clone()));
            let jitter = jitter.clone();
            list_and_watch(source, ObjectSelection::default(), move || jitter()).boxed()
        })
    }

    fn apply_event(&mut self, event: ObjectEvent<PolicyObject>) -> PolicyWatchView {
        match event {
            ObjectEvent::Restarted(objects) => {
                self.is_listed = true;
                self.policies = objects.iter().map(policy_entry).collect();
                if matches!(self.seen.policies, ClusterPolicies::Unreadable { .. }) {
                    self.silence = Some(WATCH_ALLOWED_AFTER);
                    return self.seen.clone();
                }
            }
            ObjectEvent::Applied(object) => self.policies.extend([policy_entry(&object)]),
            ObjectEvent::Deleted(object) => {
                self.policies.remove(&object.name_any());
            }
            ObjectEvent::Failed(error) => return self.handle_error(&error),
        }
        self.current_view()
    }

    fn current_view(&self) -> PolicyWatchView {
        PolicyWatchView {
            policies: ClusterPolicies::Known(self.policies.values().cloned().collect()),
            error: None,
        }
    }

    fn handle_error(&mut self, error: &Error) -> PolicyWatchView {
        if let Some(policies) = unreadable_policies(error) {
            self.restart_after(self.cadence.not_allowed);
            return PolicyWatchView {
                policies,
                error: None,
            };
        }
        if error.kind() == ApiErrorKind::NotFound {
            return self.handle_not_installed(error);
        }
        self.silence = self.is_listed.then_some(WATCH_RECOVERED_AFTER);
        self.view_with_error(error)
    }

    fn view_with_error(&self, error: &Error) -> PolicyWatchView {
        PolicyWatchView {
            policies: self.seen.policies.clone(),
            error: Some(error.error_chain()),
        }
    }

    /// One answer that the kind is missing does not drop known policies: a list has to confirm it.
    fn handle_not_installed(&mut self, error: &Error) -> PolicyWatchView {
        if self.is_listed {
            self.restart_after(SHORTEST_RETRY_PAUSE);
            return self.view_with_error(error);
        }
        self.restart_after(self.cadence.not_installed);
        self.current_view()
    }

    /// Starts again after 80 to 100 % of `pause`.
    fn restart_after(&mut self, pause: Duration) {
        self.events = None;
        self.is_listed = false;
        self.policies.clear();
        self.pause = Some(spread_pause(pause, (self.jitter)()));
    }
}

fn policy_entry(object: &PolicyObject) -> (String, Policy) {
    let name = object.name_any();
    let policy = convert_policy(&name, &object.spec);
    (name, policy)
}
