//! Selects the nodes of a command.

use std::collections::BTreeSet;

use dogwatch_core::name::NodeName;

use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::resource::parse_node;

/// By name, by label, or all of them.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct NodeSelectionArgs {
    /// Nodes (NAME or node/NAME), handled one after the other
    #[arg(value_name = "NODE", value_parser = parse_node)]
    pub nodes: Vec<NodeName>,

    /// Nodes with these labels, in kubectl's syntax (zone=a,!gpu)
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<String>,

    /// All nodes
    #[arg(long)]
    pub all: bool,
}

impl NodeSelectionArgs {
    /// Fails if nothing is selected: an empty selection never means all nodes.
    pub fn require_selection(&self) -> Result<(), CommandFailure> {
        if self.nodes.is_empty() && self.selector.is_none() && !self.all {
            return Err(CommandFailure::new(CliExitCode::Usage, "no node is given")
                .with_next_step("name the nodes, or choose them by --selector LABELS or --all"));
        }
        Ok(())
    }

    /// The names without duplicates, in the order given, else sorted by name. Named nodes need not
    /// exist.
    pub async fn list_node_names(
        &self,
        connected: &ConnectedCluster,
    ) -> Result<Vec<NodeName>, CommandFailure> {
        if !self.nodes.is_empty() {
            let mut seen = BTreeSet::new();
            let first = |node: &&NodeName| seen.insert((*node).clone());
            return Ok(self.nodes.iter().filter(first).cloned().collect());
        }
        let names = connected
            .fleet
            .list_node_names(self.selector.as_deref())
            .await
            .map_err(|error| connected.api_failure("list Nodes", &error))?;
        if names.is_empty() {
            let which = match &self.selector {
                Some(labels) => format!("no Node of this cluster has the labels {labels}"),
                None => "this cluster has no Nodes".into(),
            };
            return Err(CommandFailure::new(CliExitCode::NotFound, which)
                .with_next_step("`dogwatch status` lists them"));
        }
        Ok(names)
    }
}
