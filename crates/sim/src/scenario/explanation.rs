//! Shows what `dogwatch explain` would say at this moment.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::explain::{
    self, ExplainRemediationTarget, ExplanationLine, HostReportInput, NodeReportInput,
    ObservedCoordinator, RemediationExplanation,
};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostName;
use dogwatch_k8s::fleet::{FleetClient, HostFound, RemediationsFound};
use dogwatch_kubesim::clock::ClusterClock as _;

use super::scenario_cluster::ScenarioCluster;
use crate::bare_metal::LAB_NAMESPACE;

/// One explanation: a summary, the chain of reasons, and advice.
struct ScenarioExplanation {
    /// A remediation in progress comes first.
    is_first: bool,
    summary: String,
    chain: Vec<ExplanationLine>,
    advice: Vec<String>,
}

/// Returns the lines that explain a node, or `host/NAME`.
pub(super) async fn explain_subject(
    stage: &ScenarioCluster,
    subject: &str,
) -> Result<Vec<String>, String> {
    let client = FleetClient::new(
        stage.server.client_for_user("admin"),
        dogwatch_api::DEFAULT_NAMESPACE,
    );
    let now = Now {
        wall: stage.clock.now(),
        mono: Duration::ZERO,
    };
    let all = match subject.strip_prefix("host/") {
        Some(host) => vec![explain_bare_metal_host(&client, host, now).await?],
        None => explain_node(stage, &client, subject, now).await?,
    };
    Ok(all.into_iter().flat_map(explanation_lines).collect())
}

fn explanation_lines(told: ScenarioExplanation) -> Vec<String> {
    let chain = told.chain.into_iter();
    let chain = chain.map(|line| format!("{}: {}", line.topic.as_str(), line.text));
    let advice = told.advice.into_iter().map(|text| format!("→ {text}"));
    std::iter::once(told.summary)
        .chain(chain)
        .chain(advice)
        .collect()
}

async fn explain_bare_metal_host(
    client: &FleetClient,
    name: &str,
    now: Now,
) -> Result<ScenarioExplanation, String> {
    let name = HostName::new(LAB_NAMESPACE, name);
    let host = match client.read_host(&name).await.map_err(error_text)? {
        HostFound::There(host) => *host,
        HostFound::NoHost | HostFound::NoKind => return Err("there is no such host".into()),
    };
    let view = HostReportInput {
        node: client
            .read_nodes_by_host()
            .await
            .map_err(error_text)?
            .node_of_host(&host),
        shared_with: Vec::new(),
        owner: client
            .read_host_owner(&host, now)
            .await
            .map_err(error_text)?,
        controller: client.read_controller().await.map_err(error_text)?,
        host,
    };
    let told = explain::explain_host(&view, now);
    Ok(ScenarioExplanation {
        is_first: true,
        summary: told.summary,
        chain: told.chain,
        advice: told.advice,
    })
}

/// Explains the remediations of a node, if the CRD is installed.
async fn explain_remediations(
    client: &FleetClient,
    node: &NodeName,
    now: Now,
) -> Result<Vec<RemediationExplanation>, String> {
    let view = match client.read_remediations().await.map_err(error_text)? {
        RemediationsFound::There(view) => view,
        RemediationsFound::NoKind => return Ok(Vec::new()),
    };
    let node = ExplainRemediationTarget::Node(node.clone());
    Ok(explain::explain_remediations(&view, &node, now))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "whoever maps an error hands it over"
)]
fn error_text(error: dogwatch_k8s::Error) -> String {
    error.error_chain()
}

/// Simulated coordinators have no pods, so none is read.
async fn explain_node(
    stage: &ScenarioCluster,
    client: &FleetClient,
    node: &str,
    now: Now,
) -> Result<Vec<ScenarioExplanation>, String> {
    let node = NodeName::new(node).map_err(|error| error.to_string())?;
    let fleet = client.read_fleet().await.map_err(error_text)?;
    let rules = fleet.pod_rules_of(&node);
    let on_node = client
        .read_node_contents(&node, &rules)
        .await
        .map_err(error_text)?;
    // A script without a controller tests coordinators only.
    let healer = if stage.controllers.is_empty() {
        None
    } else {
        Some(client.read_healer().await.map_err(error_text)?)
    };
    let forced = explain_remediations(client, &node, now).await?;
    let node_reboots = client.list_node_reboots().await.map_err(error_text)?;
    let view = NodeReportInput {
        node_reboots: node_reboots.open_of_node(&node).unwrap_or_default(),
        node,
        fleet,
        node_pods: Some(on_node),
        coordinator: ObservedCoordinator::Unknown,
        healer,
    };
    let planned = explain::explain_node(&view, now).map(|told| told.beside_remediations(&forced));
    let planned = planned.map(|told| ScenarioExplanation {
        is_first: false,
        summary: told.summary,
        chain: told.chain,
        advice: told.advice,
    });
    if planned.is_none() && forced.is_empty() {
        return Err("there is no such Node".into());
    }
    let forced = forced.into_iter().map(|told| ScenarioExplanation {
        is_first: told.under_way,
        summary: told.summary,
        chain: told.chain,
        advice: told.advice,
    });
    let (mut all, others): (Vec<ScenarioExplanation>, Vec<ScenarioExplanation>) = planned
        .into_iter()
        .chain(forced)
        .partition(|told| told.is_first);
    all.extend(others);
    Ok(all)
}
