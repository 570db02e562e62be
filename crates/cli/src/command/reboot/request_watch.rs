//! Watches the NodeReboots that `--wait` follows.

use dogwatch_core::condition::CurrentCondition;
use dogwatch_core::node_reboot::ObservedNodeReboot;
use dogwatch_k8s::node_reboot::NodeRebootWatch;

use crate::cluster::ConnectedCluster;

pub struct RequestWatch {
    watch: NodeRebootWatch,
    error: Option<String>,
}

/// What the watch shows of one NodeReboot.
pub enum RequestState<'a> {
    NotListed,
    Deleted,
    Open(&'a ObservedNodeReboot),
    /// Condition `Succeeded` says how.
    Ended(&'a CurrentCondition),
}

impl RequestWatch {
    /// To be called after the NodeReboots were created: one that the first list lacks was deleted.
    pub fn start_watching(connected: &ConnectedCluster) -> Self {
        Self {
            watch: connected.fleet.watch_node_reboots(),
            error: None,
        }
    }

    /// Never returns without a watch.
    pub async fn wait_for_change(watch: Option<&mut Self>) {
        match watch {
            Some(objects) => objects.watch.wait_for_change().await,
            None => std::future::pending().await,
        }
    }

    /// Prints each error of the watch once; the watch goes on by itself.
    pub fn report_error(&mut self) {
        let error = &self.watch.current_view().error;
        if self.error != *error {
            if let Some(error) = error {
                eprintln!("dogwatch: failed to watch NodeReboots: {error}; trying again");
            }
            self.error.clone_from(error);
        }
    }

    pub fn state_of(&self, name: &str) -> RequestState<'_> {
        let view = self.watch.current_view();
        let Some(reboot) = view.reboots.get(name) else {
            return if view.synced && view.error.is_none() {
                RequestState::Deleted
            } else {
                RequestState::NotListed
            };
        };
        match reboot.final_condition() {
            Some(ended) => RequestState::Ended(ended),
            None => RequestState::Open(reboot),
        }
    }
}
