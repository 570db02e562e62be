//! Implements `dogwatch explain machine/NAMESPACE/NAME`, `remediation/NAMESPACE/NAME`, and the
//! remediation part of a node.

use dogwatch_core::explain::{
    ExplainRemediationTarget, RemediationExplanation, explain_remediations,
};
use dogwatch_core::name::NodeName;
use dogwatch_k8s::fleet::RemediationsFound;

use super::{ExplanationText, print_explanation, warn_left_out};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::command::hosts::connect_for_hosts;
use crate::command::remediations::{self, RemediationArg, RemediationArgKind};
use crate::exit::CommandFailure;
use crate::output::OutputFormat;

pub async fn run(
    cluster: &ClusterArgs,
    named: &RemediationArg,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    let connected = connect_for_hosts(cluster).await?;
    let name = named.resolve_name(cluster, &connected);
    let view = remediations::read_remediations(&connected).await?;
    let target = match named.kind {
        RemediationArgKind::Machine => ExplainRemediationTarget::Machine(name.clone()),
        RemediationArgKind::Request => ExplainRemediationTarget::Request(name.clone()),
    };
    // Machines of both APIs can have this name; the one under remediation is explained.
    let mut found = explain_remediations(&view, &target, current_time()).into_iter();
    let Some(explanation) = found.next() else {
        return Err(remediations::not_found_failure(&view, named.kind, &name));
    };
    print_explanation(
        &explanation,
        &ExplanationText::of_remediation(&explanation),
        format,
    )
}

/// Explains the remediations of a node. Returns nothing when the cluster has no hosts, and warns
/// when they cannot be read.
pub async fn explain_node_remediations(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Vec<RemediationExplanation> {
    match connected.fleet.read_remediations().await {
        Ok(RemediationsFound::There(view)) => {
            let target = ExplainRemediationTarget::Node(node.clone());
            explain_remediations(&view, &target, current_time())
        }
        Ok(RemediationsFound::NoKind) => Vec::new(),
        Err(error) => {
            warn_left_out("remediations", &error);
            Vec::new()
        }
    }
}
