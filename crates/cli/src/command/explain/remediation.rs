//! Implements `dogwatch explain machine/NAMESPACE/NAME`, `remediation/NAMESPACE/NAME`, and the
//! remediation part of a node.

use dogwatch_core::explain::{
    ExplainRemediationTarget, RemediationExplanation, explain_remediations,
};
use dogwatch_core::name::NodeName;
use dogwatch_core::remediation::ObjectName;
use dogwatch_k8s::fleet::RemediationsFound;

use super::{ExplanationText, print_explanation, warn_left_out};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::command::remediations::read_remediations;
use crate::exit::CommandFailure;
use crate::output::OutputFormat;
use crate::resource::{ObjectArg, object_not_found};

pub async fn run(
    cluster: &ClusterArgs,
    named: &ObjectArg,
    make_target: impl FnOnce(ObjectName) -> ExplainRemediationTarget,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let name = named.resolve_name(cluster, &connected, ObjectName::new);
    let view = read_remediations(&connected).await?;
    let target = make_target(name.clone());
    // Machines of both APIs can have this name; the one under remediation is explained.
    let mut found = explain_remediations(&view, &target, current_time()).into_iter();
    let Some(explanation) = found.next() else {
        return Err(object_not_found(&connected, named.kind, &name.to_string()).await);
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
