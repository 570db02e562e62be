//! Watches remediations for commands that follow one.

use dogwatch_core::explain::RemediationRow;
use dogwatch_k8s::Error;

use crate::cluster::ConnectedCluster;
use crate::command::status::{StatusScope, WatchedStatus};

/// All remediations of the cluster.
pub struct WatchedRemediations<'a> {
    connected: &'a ConnectedCluster,
    status: WatchedStatus,
}

impl<'a> WatchedRemediations<'a> {
    /// Sends no request yet.
    pub fn new(connected: &'a ConnectedCluster) -> Self {
        Self {
            connected,
            status: WatchedStatus::new(connected, StatusScope::all_remediations()),
        }
    }

    /// Returns at a change, or with what could not be watched and the error.
    pub async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        let changed = self.status.wait_for_change().await;
        changed.map_err(|(what, error)| (what.to_owned(), error))
    }

    /// `None` until every watch has its first list.
    pub async fn current_rows(&mut self) -> Option<Vec<RemediationRow>> {
        let status = self.status.current_status(self.connected).await?;
        Some(status.remediations)
    }
}
