//! The loop of the leader election: sends what the elector decides, and passes it what the watch
//! shows.

use std::pin::Pin;
use std::time::Duration;

use dogwatch_core::leader::{ElectionStep, LeaderElector, LeaderTerm, ObservedLeaderLease};
use dogwatch_k8s::leader::LeaderClient;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::health::LoopHeartbeat;
use dogwatch_runtime::jitter::JitterSource;
use futures::future::{FutureExt as _, OptionFuture};
use futures::stream::{BoxStream, StreamExt as _};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::metrics::{MetricFamily, MetricShape, MetricsRegistry};
use crate::{ControllerContext, StopSignal};

static LEADER_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_leader",
    help: "1 while this process is the leader.",
    shape: MetricShape::Gauge,
};
static LEADER_TERMS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_leader_terms_total",
    help: "How often this process became the leader.",
    shape: MetricShape::Counter,
};
static LEADER_FAILURES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_leader_failures_total",
    help: "Failed API calls for the leader's Lease.",
    shape: MetricShape::Counter,
};

/// How long releasing the Lease may take when the process ends. Without a release the next leader
/// takes over 15 s later.
const LEASE_RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

type LeaderLeaseCall =
    Pin<Box<dyn Future<Output = Result<ObservedLeaderLease, dogwatch_k8s::Error>> + Send>>;

pub struct LeaderElection {
    elector: LeaderElector,
    lease: LeaderClient,
    sights: BoxStream<'static, Result<ObservedLeaderLease, dogwatch_k8s::Error>>,
    call: Option<LeaderLeaseCall>,
    clock: ProcessClock,
    terms: watch::Sender<Option<LeaderTerm>>,
    metrics: MetricsRegistry,
    heart: LoopHeartbeat,
    /// Whether the last call failed, so that an error is logged once.
    in_trouble: bool,
}

impl LeaderElection {
    /// The election of this process. Sends nothing before [`Self::run`].
    pub fn new(
        context: &ControllerContext,
        terms: watch::Sender<Option<LeaderTerm>>,
        jitter: JitterSource,
    ) -> Self {
        let process = &context.process;
        let elector = LeaderElector::new(process.clone(), jitter.next_fraction());
        let namespace = &context.namespace;
        let lease = LeaderClient::new(context.client.clone(), namespace, process.clone());
        context.metrics.set_gauge(&LEADER_METRIC, &[], 0.0);
        Self {
            elector,
            sights: lease.watch_lease(move || jitter.next_fraction()),
            lease,
            call: None,
            clock: context.clock.clone(),
            terms,
            metrics: context.metrics.clone(),
            heart: context.health.heartbeat_of("election"),
            in_trouble: false,
        }
    }

    /// Takes part until `stop` fires, then steps down and releases the Lease.
    ///
    /// Fire `stop` after the components have finished: until then they may need the lead.
    pub async fn run(mut self, stop: StopSignal) {
        loop {
            self.publish_term();
            let wake = self.start_due_call();
            self.heart
                .mark_sleeping(Some(wake.saturating_sub(self.clock.now().mono)));
            tokio::select! {
                biased;
                () = stop.wait_for_stop() => break,
                event = self.next_event(wake) => self.handle_event(event),
            }
        }
        self.elector.stop();
        self.publish_term();
        let given_back = tokio::time::timeout(LEASE_RELEASE_TIMEOUT, self.release_lease()).await;
        if given_back.is_err() {
            warn!("failed to release the leader's Lease; another replica can take it after 15 s");
        }
    }

    async fn release_lease(&mut self) {
        while !self.elector.is_done() {
            let wake = self.start_due_call();
            let event = self.next_event(wake).await;
            self.handle_event(event);
        }
    }

    /// Starts the call that is due, if none is under way. Returns when to check again.
    fn start_due_call(&mut self) -> Duration {
        let now = self.clock.now();
        let expires = self.elector.current_term(now).map(|term| term.until.mono);
        if self.call.is_some() {
            return expires.unwrap_or(Duration::MAX);
        }
        let lease = self.lease.clone();
        match self.elector.next_step(now) {
            ElectionStep::Read => self.call = Some(async move { lease.read_lease().await }.boxed()),
            ElectionStep::Write(write) => {
                self.call = Some(async move { lease.write_lease(&write).await }.boxed());
            }
            ElectionStep::Wait { until } => {
                return expires.map_or(until, |expires| expires.min(until));
            }
        }
        expires.unwrap_or(Duration::MAX)
    }

    /// Waits for the next event. Cancel-safe.
    async fn next_event(&mut self, wake: Duration) -> ElectionEvent {
        let call: OptionFuture<_> = self.call.as_mut().into();
        // `biased`, so that events of one moment are always handled in the same order.
        tokio::select! {
            biased;
            Some(answer) = call => {
                self.call = None;
                ElectionEvent::Answered(answer)
            }
            Some(sight) = self.sights.next() => ElectionEvent::Seen(sight),
            () = self.clock.sleep_until(wake) => ElectionEvent::Woken,
        }
    }

    fn handle_event(&mut self, event: ElectionEvent) {
        let now = self.clock.now();
        match event {
            ElectionEvent::Answered(Ok(sight)) => {
                self.elector.observe_answer(sight, now);
                self.log_failure_once(None);
            }
            ElectionEvent::Answered(Err(error)) => {
                self.elector.record_call_failure(now);
                self.metrics.add_to_counter(&LEADER_FAILURES_METRIC, &[], 1);
                self.log_failure_once(Some(&error));
            }
            ElectionEvent::Seen(Ok(sight)) => self.elector.observe_lease(sight, now),
            // The calls work without the watch, and report their own errors.
            ElectionEvent::Seen(Err(_)) | ElectionEvent::Woken => {}
        }
    }

    fn log_failure_once(&mut self, error: Option<&dogwatch_k8s::Error>) {
        if let Some(error) = error.filter(|_| !self.in_trouble) {
            warn!(
                error = error.error_chain(),
                "failed to read or write the leader's Lease; retrying"
            );
        }
        self.in_trouble = error.is_some();
    }

    /// Publishes the term to the components if it changed.
    fn publish_term(&self) {
        let term = self.elector.current_term(self.clock.now());
        let before = *self.terms.borrow();
        if term == before {
            return;
        }
        self.terms.send_replace(term);
        if term.map(|term| term.number) == before.map(|term| term.number) {
            return;
        }
        self.metrics
            .set_gauge(&LEADER_METRIC, &[], if term.is_some() { 1.0 } else { 0.0 });
        if let Some(term) = term {
            self.metrics.add_to_counter(&LEADER_TERMS_METRIC, &[], 1);
            info!(
                me = self.elector.identity(),
                term = term.number,
                "became the leader"
            );
        } else {
            info!(
                leader = self.elector.observed_leader(),
                "lost the leadership"
            );
        }
    }
}

enum ElectionEvent {
    Answered(Result<ObservedLeaderLease, dogwatch_k8s::Error>),
    Seen(Result<ObservedLeaderLease, dogwatch_k8s::Error>),
    Woken,
}
