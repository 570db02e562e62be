//! Which nodes a command is for.

use std::collections::BTreeSet;

use dogwatch_core::name::NodeName;

use crate::cluster::Connected;
use crate::exit::{Exit, Failure};

/// By name, by label, or all of them.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct Which {
    /// The nodes (NAME or node/NAME); each in its turn
    #[arg(value_name = "NODE", value_parser = super::explain::node)]
    pub nodes: Vec<NodeName>,

    /// All nodes with these labels, as kubectl takes them (zone=a,!gpu)
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<String>,

    /// All nodes
    #[arg(long)]
    pub all: bool,
}

impl Which {
    /// Whether any was chosen: none is never all.
    pub fn chosen(&self) -> Result<(), Failure> {
        if self.nodes.is_empty() && self.selector.is_none() && !self.all {
            return Err(Failure::new(Exit::Usage, "no node is named")
                .next("name the nodes, or choose them by --selector LABELS or --all"));
        }
        Ok(())
    }

    /// Their names, each once: in the order in which they were named, else by name. Those that are
    /// named need not exist.
    pub async fn names(&self, connected: &Connected) -> Result<Vec<NodeName>, Failure> {
        if !self.nodes.is_empty() {
            let mut seen = BTreeSet::new();
            let first = |node: &&NodeName| seen.insert((*node).clone());
            return Ok(self.nodes.iter().filter(first).cloned().collect());
        }
        let names = connected
            .fleet
            .names(self.selector.as_deref())
            .await
            .map_err(|error| connected.failed("list Nodes", &error))?;
        if names.is_empty() {
            let which = match &self.selector {
                Some(labels) => format!("no Node of this cluster has the labels {labels}"),
                None => "this cluster has no Nodes".into(),
            };
            return Err(Failure::new(Exit::NotFound, which).next("`dogwatch status` lists them"));
        }
        Ok(names)
    }
}
