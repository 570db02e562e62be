//! What `dogwatch explain` would say at this moment.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::explain::{self, CoordinatorSeen, View};
use dogwatch_core::name::NodeName;
use dogwatch_k8s::fleet::FleetClient;

use super::stage::Stage;

/// Its lines. The coordinators here are no pods, so none is looked for.
pub(super) async fn explanation(stage: &Stage, node: &str) -> Result<Vec<String>, String> {
    use crate::clock::Clock as _;
    let fleet_client = FleetClient::new(
        stage.server.client("admin"),
        dogwatch_api::DEFAULT_NAMESPACE,
    );
    let node = NodeName::new(node).map_err(|error| error.to_string())?;
    let failed = |error: dogwatch_k8s::Error| error.in_words();
    let fleet = fleet_client.read().await.map_err(failed)?;
    let on_node = fleet_client.on_node(&node).await.map_err(failed)?;
    let view = View {
        node,
        fleet,
        on_node: Some(on_node),
        coordinator: CoordinatorSeen::Unknown,
    };
    let now = Now {
        wall: stage.clock.now(),
        mono: Duration::ZERO,
    };
    let explanation = explain::explain(&view, now).ok_or("there is no such Node")?;
    let chain = explanation
        .chain
        .iter()
        .map(|line| format!("{}: {}", line.topic.as_str(), line.text));
    let advice = explanation.advice.iter().map(|text| format!("→ {text}"));
    Ok(std::iter::once(explanation.summary.clone())
        .chain(chain)
        .chain(advice)
        .collect())
}
