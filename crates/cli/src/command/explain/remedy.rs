//! `dogwatch explain machine/NAMESPACE/NAME`, `remediation/NAMESPACE/NAME`, and the part of a node.

use dogwatch_core::explain::{RemedyExplanation, RemedyTarget, explain_remedies};
use dogwatch_core::name::NodeName;
use dogwatch_k8s::fleet::RemediesFound;

use super::{Told, print, without};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::command::hosts::connect;
use crate::command::remedies::{self, Kind, Named};
use crate::exit::Failure;
use crate::output::Format;

/// Reads, explains, prints.
pub async fn run(cluster: &Cluster, named: &Named, format: Format) -> Result<(), Failure> {
    let connected = connect(cluster).await?;
    let name = named.in_cluster(cluster, &connected);
    let view = remedies::look(&connected).await?;
    let target = match named.kind {
        Kind::Machine => RemedyTarget::Machine(name.clone()),
        Kind::Request => RemedyTarget::Request(name.clone()),
    };
    // One name may be a Machine of either API: that is told of the one that is remediated.
    let mut found = explain_remedies(&view, &target, now()).into_iter();
    let Some(explanation) = found.next() else {
        return Err(remedies::not_found(&view, named.kind, &name));
    };
    print(&explanation, &Told::of_remedy(&explanation), format)
}

/// What is forced on a node; nothing where there are no hosts, and said where it cannot be read.
pub async fn of_node(connected: &Connected, node: &NodeName) -> Vec<RemedyExplanation> {
    match connected.fleet.remedies().await {
        Ok(RemediesFound::There(view)) => {
            let target = RemedyTarget::Node(node.clone());
            explain_remedies(&view, &target, now())
        }
        Ok(RemediesFound::NoKind) => Vec::new(),
        Err(error) => {
            without("remediations", &error);
            Vec::new()
        }
    }
}
