//! The feed's task.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::report::{EstimateRollout, FleetView};
use dogwatch_k8s::fleet::FleetClient;
use tokio::sync::watch;
use tokio::time::Instant;

use super::estimates::FeedEstimates;
use super::sources::FeedSources;
use crate::cluster::current_time;
use crate::follow::sleep_until_deadline;

/// Changes within this time are shown together.
const COALESCE_INTERVAL: Duration = Duration::from_millis(100);
/// The least time between two views.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);
/// How often the view is made anew without a change: a pause ends, a reboot is no longer recent.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct FeedLoop {
    sources: FeedSources,
    views: watch::Sender<Arc<FleetView>>,
    /// When the next view is made.
    due: Instant,
    last_built: Option<Instant>,
    estimates: FeedEstimates,
}

impl FeedLoop {
    pub(super) fn new(
        client: &FleetClient,
        estimator: Option<Arc<dyn EstimateRollout>>,
        views: watch::Sender<Arc<FleetView>>,
    ) -> Self {
        Self {
            sources: FeedSources::new(client),
            views,
            due: Instant::now() + REFRESH_INTERVAL,
            last_built: None,
            estimates: FeedEstimates::new(estimator),
        }
    }

    /// Never returns.
    pub(super) async fn run(mut self) {
        loop {
            let estimate_due = self.estimates.next_due();
            tokio::select! {
                // The view says what cannot be watched.
                _ = self.sources.wait_for_change() => self.note_change(),
                () = tokio::time::sleep_until(self.due) => self.publish_view().await,
                () = self.estimates.wait_for_estimate() => self.note_change(),
                () = sleep_until_deadline(estimate_due) => {
                    let seen = self.sources.take_snapshot();
                    self.estimates.start_estimate(seen.fleet);
                }
            }
        }
    }

    /// The next view is made soon, but not within a second of the last.
    fn note_change(&mut self) {
        let soon = Instant::now() + COALESCE_INTERVAL;
        let earliest = self.last_built.map(|last| last + PUBLISH_INTERVAL);
        self.due = self
            .due
            .min(earliest.map_or(soon, |earliest| soon.max(earliest)));
    }

    /// Makes the view on another thread, and shows it if it says anything new.
    async fn publish_view(&mut self) {
        let seen = self.sources.take_snapshot();
        let (estimate, now) = (self.estimates.newest_estimate(), current_time());
        let built = tokio::task::spawn_blocking(move || seen.build_view(estimate, now)).await;
        let done = Instant::now();
        self.last_built = Some(done);
        // The success of a watch that is retried is no event.
        let again = if self.sources.has_errors() {
            PUBLISH_INTERVAL
        } else {
            REFRESH_INTERVAL
        };
        self.due = done + again;
        // A view that cannot be made leaves the last one, and the next is made in its turn.
        if let Ok(view) = built {
            self.estimates.plan_for_view(&view);
            self.show_view(view);
        }
    }

    fn show_view(&self, mut view: FleetView) {
        self.views.send_if_modified(|shown| {
            let made_at = std::mem::replace(&mut view.at, shown.at);
            if **shown == view {
                return false;
            }
            view.at = made_at;
            *shown = Arc::new(view);
            true
        });
    }
}
