//! What `dogwatch explain` would say at this moment.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::explain::{
    self, CoordinatorSeen, HostView, Line, RemedyExplanation, RemedyTarget, View,
};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostName;
use dogwatch_k8s::fleet::{FleetClient, HostFound, RemediesFound};

use super::stage::Stage;
use crate::clock::Clock as _;
use crate::metal::NAMESPACE;

/// What a person is told: a sentence, the chain, and what can be done.
struct Told {
    /// A remediation that is under way is told first.
    is_first: bool,
    summary: String,
    chain: Vec<Line>,
    advice: Vec<String>,
}

/// Its lines; of a node, or of `host/NAME`.
pub(super) async fn explanation(stage: &Stage, subject: &str) -> Result<Vec<String>, String> {
    let client = FleetClient::new(
        stage.server.client("admin"),
        dogwatch_api::DEFAULT_NAMESPACE,
    );
    let now = Now {
        wall: stage.clock.now(),
        mono: Duration::ZERO,
    };
    let all = match subject.strip_prefix("host/") {
        Some(host) => vec![of_host(&client, host, now).await?],
        None => of_node(stage, &client, subject, now).await?,
    };
    Ok(all.into_iter().flat_map(lines).collect())
}

fn lines(told: Told) -> Vec<String> {
    let chain = told.chain.into_iter();
    let chain = chain.map(|line| format!("{}: {}", line.topic.as_str(), line.text));
    let advice = told.advice.into_iter().map(|text| format!("→ {text}"));
    std::iter::once(told.summary)
        .chain(chain)
        .chain(advice)
        .collect()
}

async fn of_host(client: &FleetClient, name: &str, now: Now) -> Result<Told, String> {
    let name = HostName::new(NAMESPACE, name);
    let host = match client.host(&name).await.map_err(failed)? {
        HostFound::There(host) => *host,
        HostFound::NoHost | HostFound::NoKind => return Err("there is no such host".into()),
    };
    let view = HostView {
        node: client.carried().await.map_err(failed)?.node_of(&host),
        shared_with: Vec::new(),
        owner: client.owner(&host, now).await.map_err(failed)?,
        controller: client.controller().await.map_err(failed)?,
        host,
    };
    let told = explain::explain_host(&view, now);
    Ok(Told {
        is_first: true,
        summary: told.summary,
        chain: told.chain,
        advice: told.advice,
    })
}

/// What is forced on a node, where there are hosts.
async fn remediations(
    client: &FleetClient,
    node: &NodeName,
    now: Now,
) -> Result<Vec<RemedyExplanation>, String> {
    let view = match client.remedies().await.map_err(failed)? {
        RemediesFound::There(view) => view,
        RemediesFound::NoKind => return Ok(Vec::new()),
    };
    let node = RemedyTarget::Node(node.clone());
    Ok(explain::explain_remedies(&view, &node, now))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "whoever maps an error hands it over"
)]
fn failed(error: dogwatch_k8s::Error) -> String {
    error.in_words()
}

/// The coordinators here are no pods, so none is looked for.
async fn of_node(
    stage: &Stage,
    client: &FleetClient,
    node: &str,
    now: Now,
) -> Result<Vec<Told>, String> {
    let node = NodeName::new(node).map_err(|error| error.to_string())?;
    let fleet = client.read().await.map_err(failed)?;
    let on_node = client.on_node(&node).await.map_err(failed)?;
    // A script without a controller is about coordinators.
    let healer = if stage.controllers.is_empty() {
        None
    } else {
        Some(client.healer().await.map_err(failed)?)
    };
    let forced = remediations(client, &node, now).await?;
    let view = View {
        node,
        fleet,
        on_node: Some(on_node),
        coordinator: CoordinatorSeen::Unknown,
        healer,
    };
    let planned = explain::explain(&view, now).map(|told| told.beside(&forced));
    let planned = planned.map(|told| Told {
        is_first: false,
        summary: told.summary,
        chain: told.chain,
        advice: told.advice,
    });
    if planned.is_none() && forced.is_empty() {
        return Err("there is no such Node".into());
    }
    let forced = forced.into_iter().map(|told| Told {
        is_first: told.under_way,
        summary: told.summary,
        chain: told.chain,
        advice: told.advice,
    });
    let (mut all, others): (Vec<Told>, Vec<Told>) = planned
        .into_iter()
        .chain(forced)
        .partition(|told| told.is_first);
    all.extend(others);
    Ok(all)
}
