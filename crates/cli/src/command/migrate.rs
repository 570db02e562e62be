//! Implements `dogwatch migrate`.

mod daemonset;
mod kured;
mod policy;
mod print;

use crate::args::ClusterArgs;
use crate::exit::CommandFailure;

#[derive(Debug, clap::Subcommand)]
pub enum MigrateCommand {
    /// Print a paused RebootPolicy that replaces a kured, the coordinator's flags, and what has no
    /// equivalent
    Kured(kured::MigrateKuredArgs),
}

pub async fn run(cluster: &ClusterArgs, migrate: &MigrateCommand) -> Result<(), CommandFailure> {
    match migrate {
        MigrateCommand::Kured(args) => kured::run(cluster, args).await,
    }
}
