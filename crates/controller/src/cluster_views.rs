//! Shares one set of cluster watches among all components of the process.

use std::sync::Arc;
use std::time::Duration;

pub use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::cluster::ClusterWatch;
use tokio::sync::watch;

/// The shortest time between two views: 5,000 kubelets post their Nodes every five minutes, and
/// each view costs a copy of the maps.
const MIN_PUBLISH_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct ClusterViewReceiver(watch::Receiver<Arc<ClusterView>>);

#[derive(Debug)]
pub struct ClusterViewPublisher(watch::Sender<Arc<ClusterView>>);

impl ClusterViewReceiver {
    pub fn new() -> (ClusterViewPublisher, ClusterViewReceiver) {
        let (sender, receiver) = watch::channel(Arc::default());
        (ClusterViewPublisher(sender), ClusterViewReceiver(receiver))
    }

    /// Not [`synced`](ClusterView::synced) at first.
    pub fn current_view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits for the next view that this clone has not returned yet; the first call returns at
    /// once.
    pub async fn next_view(&mut self) -> Arc<ClusterView> {
        if self.0.changed().await.is_err() {
            // The watches ended with the process, so no view will follow.
            std::future::pending::<()>().await;
        }
        Arc::clone(&self.0.borrow_and_update())
    }
}

impl ClusterViewPublisher {
    /// Publishes another view; for tests and for [`Self::publish_watched_views`].
    pub fn publish_view(&self, view: ClusterView) {
        self.0.send_replace(Arc::new(view));
    }

    pub async fn publish_watched_views(self, mut watches: ClusterWatch) {
        loop {
            watches.wait_for_change().await;
            let pause = tokio::time::sleep(MIN_PUBLISH_INTERVAL);
            self.publish_view(watches.current_view().clone());
            pause.await;
        }
    }
}
