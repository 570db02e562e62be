//! Marks the Nodes whose reboot begins soon, so that their coordinators say so.

use std::collections::BTreeMap;

use dogwatch_core::report::plan_start_marks;
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::start_marks::StartMarkClient;
use tracing::info;

use super::EstimateState;
use crate::ControllerContext;

/// Errors are logged: the next estimate plans the same patch again.
pub(super) async fn write_start_marks(
    context: &ControllerContext,
    view: &ClusterView,
    state: &EstimateState,
) {
    let nothing = BTreeMap::new();
    let estimates = match state {
        EstimateState::Made(estimate) => &estimate.nodes,
        EstimateState::NotMade | EstimateState::NothingKnown => &nothing,
    };
    let nodes = view.nodes.values().map(AsRef::as_ref);
    let patches = plan_start_marks(nodes, estimates, context.clock.now());
    let client = StartMarkClient::new(context.client.clone());
    for patch in patches {
        if context.leadership.current_term().is_none() {
            return;
        }
        let Err(error) = client.patch_node(&patch).await else {
            continue;
        };
        let is_gone = [ApiErrorKind::NotFound, ApiErrorKind::Conflict].contains(&error.kind());
        if !is_gone {
            let (node, error) = (patch.node.as_str(), error.error_chain());
            info!(node, error, "failed to write the estimated start");
        }
    }
}
