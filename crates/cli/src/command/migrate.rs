//! `dogwatch migrate`.

mod daemonset;
mod kured;
mod policy;
mod print;

use crate::args::Cluster;
use crate::exit::Failure;

/// From what.
#[derive(Debug, clap::Subcommand)]
pub enum Migrate {
    /// Prints the RebootPolicy that replaces a kured, paused; the coordinator's flags; and what has no equal
    Kured(kured::KuredArgs),
}

/// Translates.
pub async fn run(cluster: &Cluster, migrate: &Migrate) -> Result<(), Failure> {
    match migrate {
        Migrate::Kured(args) => kured::run(cluster, args).await,
    }
}
