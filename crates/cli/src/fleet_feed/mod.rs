//! Keeps a view of the fleet up to date, for `dogwatch top`, the dashboard and component `web`.
//!
//! **For:** [`FleetFeed`]: one task for any number of readers; [`FeedSources`], its watches alone, for
//! `dogwatch status --watch`.
//! **May touch:** reads (list, watch) of Nodes, Leases, policies, hosts, schedules, NodeReboots,
//! Machines and requests for remediation.
//! **Promises:** a new view at most once a second, and only if something other than its time
//! changed; after a lost connection the last known state stays, `unreadable` says so, and the
//! watches go on; a kind that is not installed is no error; views and estimates are made on other
//! threads, so that neither delays anything else of the process.

mod estimates;
mod feed_loop;
mod sources;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::report::{EstimateRollout, FleetView, FleetViewInput, build_fleet_view};
use dogwatch_k8s::fleet::FleetClient;
use dogwatch_sim::plan::LivePlanner;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::estimates::FeedEstimates;
use self::feed_loop::FeedLoop;
pub use self::sources::FeedSources;
use crate::cluster::current_time;

/// Follows the cluster until it is dropped.
pub struct FleetFeed {
    views: watch::Receiver<Arc<FleetView>>,
    task: JoinHandle<()>,
}

impl FleetFeed {
    /// Must be called on a tokio runtime. The first view says that nothing has been read yet.
    pub fn start(client: &FleetClient, estimator: Option<Arc<dyn EstimateRollout>>) -> Self {
        let (sender, views) = watch::channel(Arc::new(view_before_reading()));
        let task = FeedLoop::new(client, estimator, sender).run();
        Self {
            views,
            task: tokio::spawn(task),
        }
    }

    /// A reader; it begins with the newest view.
    pub fn subscribe(&self) -> watch::Receiver<Arc<FleetView>> {
        self.views.clone()
    }
}

impl Drop for FleetFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The planner of estimates.
pub fn rollout_estimator() -> Arc<dyn EstimateRollout> {
    Arc::new(LivePlanner)
}

fn view_before_reading() -> FleetView {
    let nothing = FleetSnapshot::default();
    let input = FleetViewInput {
        unreadable: vec![sources::NOT_READ_YET.to_owned()],
        ..FleetViewInput::of_fleet(&nothing)
    };
    build_fleet_view(input, current_time())
}
