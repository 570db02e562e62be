//! Keeps the estimate when the reboots of the cluster start and finish.
//!
//! **For:** the status of NodeReboots, by [`EstimateReceiver`]; the metrics of the controller.
//! **May touch:** annotation `dogwatch.dev/estimated-start` of Nodes; it reads the watches that all
//! components share.
//! **Promises:** an estimate every half a minute while a reboot waits or is under way, and none
//! otherwise; it is made on another thread; a planner that fails leaves no estimate, and not an old
//! one. Only the leader makes estimates.
//!
//! Source: specification §12.2.

mod estimate_metrics;
mod feed;
mod start_marks;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::report::EstimateRollout;
use dogwatch_k8s::cluster::ClusterView;
use tracing::warn;

pub use self::feed::{EstimatePublisher, EstimateReceiver, EstimateState};
use crate::ControllerContext;
use crate::cluster_views::ClusterViewReceiver;
use crate::metrics::MetricsRegistry;

/// How often an estimate is made. Source: specification §12.2.
const ESTIMATE_INTERVAL: Duration = Duration::from_secs(30);

/// Runs until the process stops.
pub async fn run_rollout_estimates(
    context: ControllerContext,
    planner: Arc<dyn EstimateRollout>,
    publisher: EstimatePublisher,
) {
    let make = || keep_estimate(&context, &planner, &publisher);
    context.run_while_leading(make).await;
}

/// Never returns.
async fn keep_estimate(
    context: &ControllerContext,
    planner: &Arc<dyn EstimateRollout>,
    publisher: &EstimatePublisher,
) {
    let term = EstimateTerm {
        publisher,
        metrics: &context.metrics,
    };
    let mut cluster = context.cluster.clone();
    loop {
        let view = wait_for_lists(&mut cluster).await;
        let next = tokio::time::Instant::now() + ESTIMATE_INTERVAL;
        let state = make_estimate(context, planner, &view).await;
        term.publish_state(state.clone());
        // Planning took a while: what has begun since is near no more.
        let view = cluster.current_view();
        start_marks::write_start_marks(context, &view, &state).await;
        tokio::time::sleep_until(next).await;
    }
}

async fn wait_for_lists(cluster: &mut ClusterViewReceiver) -> Arc<ClusterView> {
    let mut view = cluster.current_view();
    while !view.synced {
        view = cluster.next_view().await;
    }
    view
}

async fn make_estimate(
    context: &ControllerContext,
    planner: &Arc<dyn EstimateRollout>,
    view: &ClusterView,
) -> EstimateState {
    let mut nodes = view.nodes.values();
    if !nodes.any(|node| node.record.get().is_some()) {
        return EstimateState::NothingKnown;
    }
    let (fleet, now) = (view.fleet_snapshot(), context.clock.now());
    let planner = Arc::clone(planner);
    let plan = move || planner.estimate_rollout(&fleet, now);
    match tokio::task::spawn_blocking(plan).await {
        Ok(Some(estimate)) => EstimateState::Made(Arc::new(estimate)),
        Ok(None) => EstimateState::NothingKnown,
        Err(error) => {
            warn!(%error, "the planner failed; there is no estimate until the next one");
            EstimateState::NothingKnown
        }
    }
}

/// What one term has published; taken back at its end, because the next leader publishes.
struct EstimateTerm<'a> {
    publisher: &'a EstimatePublisher,
    metrics: &'a MetricsRegistry,
}

impl EstimateTerm<'_> {
    fn publish_state(&self, state: EstimateState) {
        estimate_metrics::publish_finish(self.metrics, &state);
        self.publisher.publish_state(state);
    }
}

impl Drop for EstimateTerm<'_> {
    fn drop(&mut self) {
        self.publish_state(EstimateState::NotMade);
    }
}
