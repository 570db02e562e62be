//! The loop of every domain: observe, decide, perform, report, sleep until the wake-up or a change.
//!
//! **For:** [`ReconcileLoop`] runs a [`ReconcileDomain`] while this process leads. A domain says
//! which keys there are, builds the snapshot of a key, decides in `core`, and makes one call at a
//! time.
//! **May touch:** the clock; everything else through the domain.
//! **Promises:**
//! - At most one job runs for each key, and an error with a key delays only that key (L1).
//! - No action and no Event is begun while this process does not lead.
//! - A decision's actions come first; if there are none, its observations; if there are none, its
//!   Events. After each of them the key is decided anew, so that what was written before a step is
//!   on the cluster when the step begins.
//! - Each Event is sent once for as long as the decision lists it.

mod job;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::backoff::{BackoffRange, RetryBackoff};
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::reported_events::ReportedEvents;
use dogwatch_core::{Decision, Now};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tracing::warn;

use self::job::{JobResult, KeyJob};
use crate::clock::ProcessClock;
use crate::health::LoopHeartbeat;
use crate::leadership::LeadershipHandle;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEnd<Answer> {
    Done(Answer),
    /// An object that the call relied on has changed, so nothing was written.
    Changed,
    Failed(String),
}

/// The calls of a domain. Its jobs share them.
pub trait DomainCalls: Send + Sync + 'static {
    /// What one key is decided with.
    type Snapshot: Send + Sync + 'static;
    type Action: Send + Sync + 'static;
    type Observe: Send + Sync + 'static;
    /// The domain's table of reasons.
    type Reason: Copy + fmt::Display + Send + Sync + 'static;
    /// The result of an action, like the object as it was written.
    type Answer: Send + 'static;
    /// The result of an observation.
    type Finding: Send + 'static;

    /// One conditional call.
    fn perform_action(
        &self,
        seen: &Self::Snapshot,
        decision: &DecisionOf<Self>,
        action: &Self::Action,
    ) -> impl Future<Output = CallEnd<Self::Answer>> + Send;

    /// One read; `None` if there is nothing to read any more.
    fn perform_observation(
        &self,
        seen: &Self::Snapshot,
        what: &Self::Observe,
    ) -> impl Future<Output = Option<Self::Finding>> + Send;

    /// Sends one Event. After [`CallEnd::Failed`] it is sent again.
    fn report_event(
        &self,
        seen: &Self::Snapshot,
        event: &DecisionEvent,
    ) -> impl Future<Output = CallEnd<()>> + Send;
}

pub type DecisionOf<Calls> = Decision<
    <Calls as DomainCalls>::Action,
    <Calls as DomainCalls>::Observe,
    <Calls as DomainCalls>::Reason,
>;

/// One domain of the controller. All methods but the calls only compute.
pub trait ReconcileDomain: Send {
    type Key: Ord + Clone + fmt::Display + Send + Sync + 'static;
    type Calls: DomainCalls;

    const LIMITS: LoopLimits;

    fn domain_calls(&self) -> Arc<Self::Calls>;

    /// Waits for a change of what is watched. Cancel-safe.
    fn wait_for_change(&mut self) -> impl Future<Output = ()> + Send;

    /// Applies the changes, and returns all keys; `None` while not everything was listed.
    fn list_keys(&mut self) -> Option<Vec<Self::Key>>;

    /// The generation of the key's object. When it changes, a person has changed the spec, perhaps
    /// because of an error: the back-off ends.
    fn object_generation(&self, key: &Self::Key) -> Option<i64>;

    fn build_snapshot(&self, key: &Self::Key) -> SnapshotOf<Self>;

    fn decide(&self, seen: &SnapshotOf<Self>, now: Now) -> DecisionOf<Self::Calls>;

    /// Applies the end of an action, also for a key that is gone.
    fn apply_action_end(
        &mut self,
        key: &Self::Key,
        seen: &SnapshotOf<Self>,
        action: &ActionOf<Self>,
        end: CallEnd<<Self::Calls as DomainCalls>::Answer>,
    );

    fn apply_finding(&mut self, key: &Self::Key, finding: <Self::Calls as DomainCalls>::Finding);

    /// Publishes the metrics after a pass over all keys.
    fn publish_metrics(&self);

    /// Removes the metrics: a process that does not lead reports none.
    fn clear_metrics(&self);
}

pub type SnapshotOf<D> = <<D as ReconcileDomain>::Calls as DomainCalls>::Snapshot;
pub type ActionOf<D> = <<D as ReconcileDomain>::Calls as DomainCalls>::Action;

/// The numbers of one domain's loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopLimits {
    /// Names the loop in `/healthz` and in the log.
    pub name: &'static str,
    /// Pauses of one key after errors.
    pub retry: BackoffRange,
    /// Actions of one decision that are under way at the same time.
    pub concurrent_actions: usize,
}

type RunningJob<D> = BoxFuture<
    'static,
    (
        <D as ReconcileDomain>::Key,
        JobResult<<D as ReconcileDomain>::Calls>,
    ),
>;

pub struct ReconcileLoop<D: ReconcileDomain> {
    domain: D,
    clock: ProcessClock,
    leadership: LeadershipHandle,
    heart: LoopHeartbeat,
    keys: BTreeMap<D::Key, KeyState>,
    jobs: FuturesUnordered<RunningJob<D>>,
}

/// What the loop remembers of one key.
#[derive(Default)]
struct KeyState {
    is_busy: bool,
    generation: Option<i64>,
    backoff: RetryBackoff,
    reported: ReportedEvents,
}

impl<D: ReconcileDomain> ReconcileLoop<D> {
    pub fn new(
        domain: D,
        clock: ProcessClock,
        leadership: LeadershipHandle,
        heart: LoopHeartbeat,
    ) -> Self {
        Self {
            domain,
            clock,
            leadership,
            heart,
            keys: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
        }
    }

    /// Runs until it is dropped, at the end of the lead.
    pub async fn run_as_leader(mut self) {
        loop {
            self.heart.mark_working(D::LIMITS.name);
            let wake = self.reconcile_all();
            let now = self.clock.now().mono;
            let sleep = wake.map(|wake| wake.saturating_sub(now));
            self.heart.mark_sleeping(sleep);
            tokio::select! {
                // `biased`, so that events of one moment are always handled in the same order.
                biased;
                Some((key, result)) = self.jobs.next() => self.finish_job(&key, result),
                () = self.domain.wait_for_change() => {}
                () = self.clock.wake_at(wake) => {}
            }
        }
    }

    /// Decides all keys and starts their jobs. Returns when to decide again.
    fn reconcile_all(&mut self) -> Option<Duration> {
        let keys = self.domain.list_keys()?;
        let all: BTreeSet<&D::Key> = keys.iter().collect();
        self.keys.retain(|key, _| all.contains(key));
        let wakes = keys.iter().map(|key| self.reconcile_key(key));
        let wake = wakes.collect::<Vec<_>>().into_iter().flatten().min();
        self.domain.publish_metrics();
        wake
    }

    /// Starts the key's job, unless one runs or the key has to pause. Returns when to decide it
    /// again.
    fn reconcile_key(&mut self, key: &D::Key) -> Option<Duration> {
        let now = self.clock.now();
        let generation = self.domain.object_generation(key);
        let state = self.keys.entry(key.clone()).or_default();
        if state.generation != generation {
            state.generation = generation;
            state.backoff.reset();
        }
        if state.is_busy {
            return None;
        }
        if let Some(until) = state.backoff.blocked_until(now.mono) {
            return Some(until);
        }
        let seen = self.domain.build_snapshot(key);
        let decision = self.domain.decide(&seen, now);
        let wake = decision.wake.as_ref().map(|wake| wake.at);
        state.reported.forget_unlisted(&decision.report.events);
        let job = KeyJob {
            calls: self.domain.domain_calls(),
            leadership: self.leadership.clone(),
            events: state.reported.unreported_of(&decision.report.events),
            seen,
            decision,
            limits: D::LIMITS,
        };
        if !job.has_no_work() {
            state.is_busy = true;
            let key = key.clone();
            let run = async move {
                let result = job.run_job(&key).await;
                (key, result)
            };
            self.jobs.push(Box::pin(run));
        }
        wake
    }

    fn finish_job(&mut self, key: &D::Key, result: JobResult<D::Calls>) {
        let now = self.clock.now().mono;
        let (has_failed, has_progress) = (result.has_failed(), result.has_progress());
        // A key that is gone needs no result but its metrics.
        if let Some(state) = self.keys.get_mut(key) {
            state.is_busy = false;
            state.reported.record_events(&result.reported);
            if has_failed && !has_progress {
                state.backoff.record_failure(D::LIMITS.retry, now);
            } else {
                state.backoff.reset();
            }
            if let Some(error) = result.first_error() {
                warn!(of = D::LIMITS.name, %key, error, "failed to carry out a decision; retrying");
            }
        }
        for finding in result.findings {
            self.domain.apply_finding(key, finding);
        }
        for (index, end) in result.ends {
            let action = &result.decision.actions[index];
            self.domain.apply_action_end(key, &result.seen, action, end);
        }
    }
}

impl<D: ReconcileDomain> Drop for ReconcileLoop<D> {
    fn drop(&mut self) {
        self.heart.mark_sleeping(None);
        self.domain.clear_metrics();
    }
}
