//! The process' one set of watches.

use std::sync::Arc;
use std::time::Duration;

pub use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::cluster::ClusterWatch;
use tokio::sync::watch;

/// At most every so often a new view is shown: 5,000 kubelets post their Nodes every five minutes,
/// and each view costs a copy of the maps.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// The cluster as last seen. Clones show the same.
#[derive(Debug, Clone)]
pub struct Cluster(watch::Receiver<Arc<ClusterView>>);

/// Who shows it.
#[derive(Debug)]
pub struct Showing(watch::Sender<Arc<ClusterView>>);

impl Cluster {
    /// Nothing is seen yet.
    pub fn new() -> (Showing, Cluster) {
        let (sender, receiver) = watch::channel(Arc::default());
        (Showing(sender), Cluster(receiver))
    }

    /// The view now. Not [`synced`](ClusterView::synced) at first.
    pub fn view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits for the next view that this clone has not seen; the first comes at once.
    pub async fn next(&mut self) -> Arc<ClusterView> {
        if self.0.changed().await.is_err() {
            // The watches ended with the process: nothing comes any more.
            std::future::pending::<()>().await;
        }
        Arc::clone(&self.0.borrow_and_update())
    }
}

impl Showing {
    /// Shows another view; for tests and for [`Self::run`].
    pub fn show(&self, view: ClusterView) {
        self.0.send_replace(Arc::new(view));
    }

    /// Shows what the watches see, for ever.
    pub async fn run(self, mut watches: ClusterWatch) {
        loop {
            watches.changed().await;
            let pause = tokio::time::sleep(SHOW_EVERY);
            self.show(watches.view().clone());
            pause.await;
        }
    }
}
