//! The command line.

use clap::Parser;

use crate::command::Command;

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  what was named does not exist
  4  no cluster is named, or it cannot be reached
  5  not allowed
  6  check: something is in the way
  130  ended by ctrl-C

The cluster is chosen as kubectl chooses it: KUBECONFIG, else ~/.kube/config, else the pod's own.";

/// Takes Kubernetes nodes out of service safely, reboots them and brings them back
#[derive(Debug, Parser)]
#[command(name = "dogwatch", version, after_help = AFTER_HELP, propagate_version = true)]
pub struct Args {
    /// What every command takes.
    #[command(flatten)]
    pub cluster: Cluster,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Which cluster.
#[derive(Debug, clap::Args)]
pub struct Cluster {
    /// Dogwatch's namespace, where its Leases are
    #[arg(
        long,
        short,
        global = true,
        env = "DOGWATCH_NAMESPACE",
        value_name = "NAME",
        default_value = dogwatch_api::DEFAULT_NAMESPACE
    )]
    pub namespace: String,

    /// The kubeconfig's context; its current one where it is not given
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
}
