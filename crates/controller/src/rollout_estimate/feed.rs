//! Hands the newest estimate to other components of the process.

use std::sync::Arc;

use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::NodeRebootEstimate;
use dogwatch_core::report::FleetEstimate;
use tokio::sync::watch;

/// The newest estimate.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum EstimateState {
    /// This process has made none since it leads.
    #[default]
    NotMade,
    /// Nothing waits, nothing plans, or the planner failed.
    NothingKnown,
    Made(Arc<FleetEstimate>),
}

#[derive(Debug, Clone)]
pub struct EstimateReceiver(watch::Receiver<EstimateState>);

#[derive(Debug)]
pub struct EstimatePublisher(watch::Sender<EstimateState>);

impl EstimateReceiver {
    pub fn new() -> (EstimatePublisher, EstimateReceiver) {
        let (sender, receiver) = watch::channel(EstimateState::default());
        (EstimatePublisher(sender), EstimateReceiver(receiver))
    }

    /// For a process without a planner: no time is ever known.
    pub fn without_planner() -> Self {
        Self(watch::channel(EstimateState::NothingKnown).1)
    }

    pub fn estimate_of_node(&self, node: &NodeName) -> NodeRebootEstimate {
        match &*self.0.borrow() {
            EstimateState::NotMade => NodeRebootEstimate::NotMade,
            EstimateState::NothingKnown => NodeRebootEstimate::Unknown,
            EstimateState::Made(estimate) => match estimate.nodes.get(node.as_str()) {
                Some(times) => NodeRebootEstimate::Known(times.clone()),
                None => NodeRebootEstimate::Unknown,
            },
        }
    }

    /// Returns when another estimate is there. Cancel-safe.
    pub async fn wait_for_change(&mut self) {
        if self.0.changed().await.is_err() {
            // Nothing plans, so nothing will change.
            std::future::pending::<()>().await;
        }
    }
}

impl EstimatePublisher {
    /// Wakes the receivers if it is another state; each estimate has another time.
    pub fn publish_state(&self, state: EstimateState) {
        self.0.send_if_modified(|newest| {
            let is_other = *newest != state;
            *newest = state;
            is_other
        });
    }
}
