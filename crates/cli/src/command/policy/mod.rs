//! Implements `dogwatch policy`.

mod check;
mod cluster_nodes;
mod conflicts;
mod description;
mod located_yaml;
mod policy_files;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Subcommand;

use crate::args::ClusterArgs;
use crate::exit::CommandFailure;
use crate::output::OutputArgs;

#[derive(Debug, Subcommand)]
pub enum PolicySubcommand {
    /// Check RebootPolicies in files before they are applied: mistakes with their lines, what each
    /// policy means, its next windows, and which nodes it would rule
    Check(PolicyCheckArgs),
}

#[derive(Debug, clap::Args)]
pub struct PolicyCheckArgs {
    /// Files with RebootPolicies in YAML or JSON; - reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Ask no cluster which nodes the policies would rule
    #[arg(long)]
    no_cluster: bool,

    #[command(flatten)]
    output: OutputArgs,
}

pub async fn run(cluster: &ClusterArgs, command: &PolicySubcommand) -> Result<(), CommandFailure> {
    match command {
        PolicySubcommand::Check(args) => check::run(cluster, args).await,
    }
}
