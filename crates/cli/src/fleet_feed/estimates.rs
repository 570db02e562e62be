//! The estimates of a feed, or of `dogwatch status --watch`.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::report::{EstimateRollout, FleetEstimate, FleetView};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cluster::current_time;

/// How often an estimate is made.
const ESTIMATE_INTERVAL: Duration = Duration::from_secs(30);

/// Makes estimates on another thread while something waits or is out.
pub struct FeedEstimates {
    estimator: Option<Arc<dyn EstimateRollout>>,
    newest: Option<FleetEstimate>,
    /// When the next one is made; `None`: not before something waits, or while one is made.
    due: Option<Instant>,
    last_begun: Option<Instant>,
    under_way: Option<JoinHandle<Option<FleetEstimate>>>,
}

impl FeedEstimates {
    pub fn new(estimator: Option<Arc<dyn EstimateRollout>>) -> Self {
        Self {
            estimator,
            newest: None,
            due: None,
            last_begun: None,
            under_way: None,
        }
    }

    pub fn newest_estimate(&self) -> Option<FleetEstimate> {
        self.newest.clone()
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.due
    }

    /// Plans the next estimate, if this view needs one. The first of a rollout is made at once.
    pub fn plan_for_view(&mut self, view: &FleetView) {
        self.plan_for_counts(view.counts.out + view.counts.waiting);
    }

    /// The same, by the number of nodes that are out or wait.
    pub fn plan_for_counts(&mut self, unfinished: usize) {
        if unfinished == 0 || self.estimator.is_none() {
            self.newest = None;
            self.due = None;
        } else if self.under_way.is_none() && self.due.is_none() {
            let now = Instant::now();
            let next = self.last_begun.map(|last| last + ESTIMATE_INTERVAL);
            self.due = Some(
                next.filter(|_| self.newest.is_some())
                    .unwrap_or(now)
                    .max(now),
            );
        }
    }

    pub fn start_estimate(&mut self, fleet: FleetSnapshot) {
        self.due = None;
        let Some(estimator) = self.estimator.clone() else {
            return;
        };
        self.last_begun = Some(Instant::now());
        let now = current_time();
        let plan = move || estimator.estimate_rollout(&fleet, now);
        self.under_way = Some(tokio::task::spawn_blocking(plan));
    }

    /// Returns when an estimate is made. Cancel-safe.
    pub async fn wait_for_estimate(&mut self) {
        let Some(under_way) = &mut self.under_way else {
            return std::future::pending().await;
        };
        // A planner that panics gives no estimate, and the feed goes on.
        let made = under_way.await.ok().flatten();
        self.under_way = None;
        self.newest = made;
        self.due = Some(
            Instant::now().max(
                self.last_begun
                    .map_or_else(Instant::now, |last| last + ESTIMATE_INTERVAL),
            ),
        );
    }
}
