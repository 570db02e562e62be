//! Reads the input of a check; a failed read carries its error text.

use dogwatch_core::check::{CheckView, ForcedWork, GateAnswer, GateState};
use dogwatch_core::drain::ObservedPod;
use dogwatch_core::explain::{FleetSnapshot, RemediationReportInput, describe_gate, forecast_node};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::PolicyGate;
use dogwatch_k8s::fleet::{AdmissionFindings, NodeRebootsFound, RemediationsFound};
use dogwatch_k8s::{ApiErrorKind, Error};
use dogwatch_prometheus::{PrometheusClient, PrometheusSettings};

use crate::cluster::{ConnectedCluster, current_time};

/// What was read once for all nodes.
pub struct SharedReads {
    fleet: FleetSnapshot,
    remedies: RemediationReadResult,
    admission: AdmissionReadResult,
    node_reboot_kind: Option<Result<bool, String>>,
}

impl SharedReads {
    pub async fn read_cluster(connected: &ConnectedCluster, fleet: FleetSnapshot) -> Self {
        Self {
            remedies: read_remediations(connected).await,
            admission: connected.fleet.read_admission().await.map_err(error_text),
            node_reboot_kind: read_node_reboot_kind(connected, &fleet).await,
            fleet,
        }
    }
}

/// Whether the kind NodeReboot is installed; not read while a controller leads.
async fn read_node_reboot_kind(
    connected: &ConnectedCluster,
    fleet: &FleetSnapshot,
) -> Option<Result<bool, String>> {
    if !fleet.controller.is_without_leader(current_time()) {
        return None;
    }
    let listed = connected.fleet.list_node_reboots().await;
    let is_installed = |found| matches!(found, NodeRebootsFound::There(_));
    Some(listed.map(is_installed).map_err(error_text))
}

/// What `check --after-restore` reads beside the fleet.
pub async fn read_forced_work(connected: &ConnectedCluster) -> ForcedWork {
    let node_reboots = connected.fleet.list_node_reboots().await;
    ForcedWork {
        remediations: read_remediations(connected).await,
        node_reboots: node_reboots
            .map(NodeRebootsFound::into_reboots)
            .map_err(error_text),
    }
}

pub async fn read_check_view(
    connected: &ConnectedCluster,
    shared: &SharedReads,
    node: &NodeName,
) -> CheckView {
    let SharedReads {
        fleet,
        remedies,
        admission,
        node_reboot_kind,
    } = shared;
    let hand = &connected.fleet;
    let pods = hand.list_pods_on(node).await.map_err(error_text);
    let daemonsets = match &pods {
        Ok(pods) => hand.list_daemonsets(pods).await.map_err(error_text),
        Err(why) => Err(why.clone()),
    };
    let namespaces = hand.list_namespaces().await.map_err(error_text);
    let rules = fleet
        .find_node(node)
        .map(|seen| fleet.rule_of_node(seen).config.pod_rules);
    let seen = pods.iter().flatten().map(|pod| pod.observed.clone());
    let seen: Vec<ObservedPod> = seen.collect();
    let rules = rules.unwrap_or_default();
    let deployments = hand.read_deployments_of(&seen, &rules).await;
    CheckView {
        node: node.clone(),
        fleet: fleet.clone(),
        daemonsets,
        deployments,
        machine_rules: hand.read_machine_rules(node, &rules).await,
        pods,
        budgets: hand.list_budgets().await.map_err(error_text),
        terminating: namespaces.clone().map(|facts| facts.terminating),
        namespace_labels: namespaces.map(|facts| facts.labels),
        gates: query_gates(connected, fleet, node).await,
        coordinator: hand.read_coordinator(node).await.map_err(error_text),
        admission: admission.clone().map(|found| found.gaps),
        protected_namespace: admission
            .as_ref()
            .ok()
            .and_then(|found| found.protected_namespace.clone()),
        node_reboot_kind: node_reboot_kind.clone(),
        remediation: match remedies {
            Ok(None) => None,
            Ok(Some(view)) => forecast_node(view, node, current_time()).map(Ok),
            Err(why) => Some(Err(why.clone())),
        },
    }
}

/// Input of the remediation forecast for all nodes; `None` when the cluster has no hosts.
type RemediationReadResult = Result<Option<Box<RemediationReportInput>>, String>;

async fn read_remediations(connected: &ConnectedCluster) -> RemediationReadResult {
    match connected
        .fleet
        .read_remediations()
        .await
        .map_err(error_text)?
    {
        RemediationsFound::There(view) if !view.snapshot.hosts.is_empty() => Ok(Some(view)),
        RemediationsFound::There(_) | RemediationsFound::NoKind => Ok(None),
    }
}

/// What the admission policies do, for all nodes.
type AdmissionReadResult = Result<AdmissionFindings, String>;

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn error_text(error: Error) -> String {
    let words = error.error_chain();
    if error.kind() == ApiErrorKind::Forbidden {
        return format!("not allowed: {words}");
    }
    words
}

/// Queries the gates of the node's policy from this machine.
async fn query_gates(
    connected: &ConnectedCluster,
    fleet: &FleetSnapshot,
    node: &NodeName,
) -> Vec<GateAnswer> {
    let policy = fleet
        .find_node(node)
        .and_then(|seen| fleet.rule_of_node(seen).policy);
    let mut answers = Vec::new();
    for gate in policy.iter().flat_map(|policy| &policy.gates) {
        answers.push(GateAnswer {
            gate: format!("\"{}\"", describe_gate(gate)),
            state: query_gate(connected, node, gate).await,
        });
    }
    answers
}

async fn query_gate(connected: &ConnectedCluster, node: &NodeName, gate: &PolicyGate) -> GateState {
    let answer = match gate {
        PolicyGate::Pods { selector } => connected
            .fleet
            .list_gate_pods(node, selector)
            .await
            .map_err(error_text),
        // Without the coordinator's token and certificates, which do not belong on a person's
        // machine.
        PolicyGate::Prometheus(gate) => PrometheusClient::new(PrometheusSettings::default())
            .check_gate(gate)
            .await
            .map_err(|why| {
                format!("{why} (the check ran on this machine; a coordinator may reach it)")
            }),
    };
    match answer {
        Ok(shut) if shut.is_empty() => GateState::Open,
        Ok(shut) => GateState::Shut(shut),
        Err(why) => GateState::Unknown(why),
    }
}
