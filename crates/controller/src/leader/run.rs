//! The election's loop: what is decided is sent, and what is seen is told to the decision.

use std::pin::Pin;
use std::time::Duration;

use dogwatch_core::leader::{Elector, Sight, Step, Term};
use dogwatch_k8s::leader::LeaderClient;
use dogwatch_process::clock::Clock;
use dogwatch_process::health::Heart;
use futures::future::{FutureExt as _, OptionFuture};
use futures::stream::{BoxStream, StreamExt as _};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::Stop;
use crate::metrics::{Family, Metrics, Shape};

static LEADER: Family = Family {
    name: "dogwatch_leader",
    help: "1 while this process leads.",
    shape: Shape::Gauge,
};
static TERMS: Family = Family {
    name: "dogwatch_leader_terms_total",
    help: "How often this process began to lead.",
    shape: Shape::Counter,
};
static FAILURES: Family = Family {
    name: "dogwatch_leader_failures_total",
    help: "Calls about the leader's Lease that failed.",
    shape: Shape::Counter,
};

/// How long giving the Lease back may take when the process ends. The next one comes without it as
/// well, 15 s later.
const RELEASE_WITHIN: Duration = Duration::from_secs(3);

type Call = Pin<Box<dyn Future<Output = Result<Sight, dogwatch_k8s::Error>> + Send>>;

/// One process' election.
pub struct Election {
    elector: Elector,
    lease: LeaderClient,
    sights: BoxStream<'static, Result<Sight, dogwatch_k8s::Error>>,
    call: Option<Call>,
    clock: Clock,
    terms: watch::Sender<Option<Term>>,
    metrics: Metrics,
    heart: Heart,
    /// Whether the last call failed: trouble is logged once.
    in_trouble: bool,
}

impl Election {
    /// Nothing is sent before [`Self::run`].
    pub fn new(
        elector: Elector,
        lease: LeaderClient,
        clock: Clock,
        terms: watch::Sender<Option<Term>>,
        metrics: Metrics,
        heart: Heart,
        jitter: impl FnMut() -> f64 + Send + 'static,
    ) -> Self {
        metrics.set(&LEADER, &[], 0.0);
        Self {
            elector,
            sights: lease.watch(jitter),
            lease,
            call: None,
            clock,
            terms,
            metrics,
            heart,
            in_trouble: false,
        }
    }

    /// Takes part until `stop` is told, then steps down and gives the Lease back.
    ///
    /// `stop` comes after the components have finished: until then they may need the lead.
    pub async fn run(mut self, stop: Stop) {
        loop {
            self.tell();
            let wake = self.send();
            self.heart
                .sleeping(Some(wake.saturating_sub(self.clock.now().mono)));
            tokio::select! {
                biased;
                () = stop.told() => break,
                event = self.event(wake) => self.take(event),
            }
        }
        self.elector.stop();
        self.tell();
        let given_back = tokio::time::timeout(RELEASE_WITHIN, self.give_back()).await;
        if given_back.is_err() {
            warn!("the leader's Lease could not be given back; the next one takes it in 15 s");
        }
    }

    async fn give_back(&mut self) {
        while !self.elector.is_done() {
            let wake = self.send();
            let event = self.event(wake).await;
            self.take(event);
        }
    }

    /// Begins what is due, if nothing is under way; when to look again.
    fn send(&mut self) -> Duration {
        let now = self.clock.now();
        let expires = self.elector.term(now).map(|term| term.until.mono);
        if self.call.is_some() {
            return expires.unwrap_or(Duration::MAX);
        }
        let lease = self.lease.clone();
        match self.elector.step(now) {
            Step::Read => self.call = Some(async move { lease.read().await }.boxed()),
            Step::Write(write) => {
                self.call = Some(async move { lease.write(&write).await }.boxed());
            }
            Step::Wait { until } => return expires.map_or(until, |expires| expires.min(until)),
        }
        expires.unwrap_or(Duration::MAX)
    }

    /// Waits for whatever comes first. Losing the future loses nothing.
    async fn event(&mut self, wake: Duration) -> Event {
        let call: OptionFuture<_> = self.call.as_mut().into();
        // In this order: what happens at one moment is taken in the same way each time.
        tokio::select! {
            biased;
            Some(answer) = call => {
                self.call = None;
                Event::Answered(answer)
            }
            Some(sight) = self.sights.next() => Event::Seen(sight),
            () = self.clock.sleep_until(wake) => Event::Woken,
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Answered(Ok(sight)) => {
                self.elector.saw(sight, now);
                self.trouble(None);
            }
            Event::Answered(Err(error)) => {
                self.elector.failed(now);
                self.metrics.add(&FAILURES, &[], 1);
                self.trouble(Some(&error));
            }
            Event::Seen(Ok(sight)) => self.elector.saw(sight, now),
            // The calls work without the watch, and say what is wrong.
            Event::Seen(Err(_)) | Event::Woken => {}
        }
    }

    fn trouble(&mut self, error: Option<&dogwatch_k8s::Error>) {
        if let Some(error) = error.filter(|_| !self.in_trouble) {
            warn!(
                error = error.in_words(),
                "cannot see or write the leader's Lease; trying for ever"
            );
        }
        self.in_trouble = error.is_some();
    }

    /// Tells the components, where it changed.
    fn tell(&self) {
        let term = self.elector.term(self.clock.now());
        let before = *self.terms.borrow();
        if term == before {
            return;
        }
        self.terms.send_replace(term);
        if term.map(|term| term.number) == before.map(|term| term.number) {
            return;
        }
        self.metrics
            .set(&LEADER, &[], if term.is_some() { 1.0 } else { 0.0 });
        if let Some(term) = term {
            self.metrics.add(&TERMS, &[], 1);
            info!(me = self.elector.me(), term = term.number, "leads");
        } else {
            info!(leader = self.elector.leader(), "leads no more");
        }
    }
}

enum Event {
    Answered(Result<Sight, dogwatch_k8s::Error>),
    Seen(Result<Sight, dogwatch_k8s::Error>),
    Woken,
}
