//! Reads what a check is made from; what cannot be read says why.

use dogwatch_core::check::{CheckView, GateAnswer, GateState};
use dogwatch_core::explain::{Fleet, RemedyView, foreseen, gate_in_words};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Gate;
use dogwatch_k8s::fleet::RemediesFound;
use dogwatch_k8s::{Error, Kind};
use dogwatch_prometheus::{Prometheus, Settings};

use crate::cluster::{Connected, now};

/// Everything about one node.
pub async fn view(
    connected: &Connected,
    fleet: &Fleet,
    remedies: &Remedies,
    admission: &Admission,
    node: &NodeName,
) -> CheckView {
    let hand = &connected.fleet;
    let pods = hand.pods_on(node).await.map_err(said);
    let daemonsets = match &pods {
        Ok(pods) => hand.daemonsets(pods).await.map_err(said),
        Err(why) => Err(why.clone()),
    };
    CheckView {
        node: node.clone(),
        fleet: fleet.clone(),
        daemonsets,
        pods,
        budgets: hand.budgets().await.map_err(said),
        terminating: hand.terminating().await.map_err(said),
        gates: gates(connected, fleet, node).await,
        coordinator: hand.coordinator(node).await.map_err(said),
        admission: admission.clone(),
        forced: match remedies {
            Ok(None) => None,
            Ok(Some(view)) => foreseen(view, node, now()).map(Ok),
            Err(why) => Some(Err(why.clone())),
        },
    }
}

/// What remediations are foreseen from, for all nodes; nothing where there are no hosts.
pub type Remedies = Result<Option<Box<RemedyView>>, String>;

/// Reads it.
pub async fn remedies(connected: &Connected) -> Remedies {
    match connected.fleet.remedies().await.map_err(said)? {
        RemediesFound::There(view) if !view.world.hosts.is_empty() => Ok(Some(view)),
        RemediesFound::There(_) | RemediesFound::NoKind => Ok(None),
    }
}

/// What keeps the admission policies from being in force, for all nodes.
pub type Admission = Result<Vec<String>, String>;

/// Reads it.
pub async fn admission(connected: &Connected) -> Admission {
    connected.fleet.admission_gaps().await.map_err(said)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn said(error: Error) -> String {
    let words = error.in_words();
    if error.kind() == Kind::Forbidden {
        return format!("not allowed to: {words}");
    }
    words
}

/// The gates of the policy that rules the node, asked from here.
async fn gates(connected: &Connected, fleet: &Fleet, node: &NodeName) -> Vec<GateAnswer> {
    let policy = fleet.node(node).and_then(|seen| fleet.rule(seen).policy);
    let mut answers = Vec::new();
    for gate in policy.iter().flat_map(|policy| &policy.gates) {
        answers.push(GateAnswer {
            gate: format!("\"{}\"", gate_in_words(gate)),
            state: ask(connected, node, gate).await,
        });
    }
    answers
}

async fn ask(connected: &Connected, node: &NodeName, gate: &Gate) -> GateState {
    let answer = match gate {
        Gate::Pods { selector } => connected
            .fleet
            .gate_pods(node, selector)
            .await
            .map_err(said),
        // Without the token and certificates of a coordinator: those are not for a person's machine.
        Gate::Prometheus(gate) => Prometheus::new(Settings::default())
            .asked(gate)
            .await
            .map_err(|why| format!("{why} (from here; a coordinator may reach it)")),
    };
    match answer {
        Ok(shut) if shut.is_empty() => GateState::Open,
        Ok(shut) => GateState::Shut(shut),
        Err(why) => GateState::Unknown(why),
    }
}
