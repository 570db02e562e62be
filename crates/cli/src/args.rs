//! The command line.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

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

The cluster is chosen as kubectl chooses it: KUBECONFIG, else ~/.kube/config, else the pod's service account.";

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

impl Args {
    /// Of this command line; one that is wrong ends the process with code 2.
    pub fn of(words: &[OsString]) -> Self {
        let matches = command(words).get_matches_from(words);
        let mut args = match Self::from_arg_matches(&matches) {
            Ok(args) => args,
            Err(error) => error.format(&mut command(words)).exit(),
        };
        let source = matches.value_source("namespace");
        args.cluster.namespace_given = source == Some(ValueSource::CommandLine);
        args
    }
}

/// The command line, which calls itself as it was called: kubectl runs a program `kubectl-dogwatch`
/// as `kubectl dogwatch`.
pub fn command(words: &[OsString]) -> clap::Command {
    let command = Args::command();
    let program = words.first().map(std::path::Path::new);
    let name = program.and_then(|path| path.file_stem());
    match name.and_then(|name| name.to_str()) {
        Some("kubectl-dogwatch") => command.bin_name(PLUGIN).display_name(PLUGIN),
        Some(_) | None => command,
    }
}

/// How a kubectl plugin of our name is called.
const PLUGIN: &str = "kubectl dogwatch";

/// Names Dogwatch's namespace where the command line does not.
pub const NAMESPACE_VARIABLE: &str = "DOGWATCH_NAMESPACE";

/// Which cluster.
#[derive(Debug, clap::Args)]
pub struct Cluster {
    /// Dogwatch's namespace, where its Leases are; for hosts, machines, remediations and schedules that are
    /// named without a namespace, the namespace of those
    #[arg(
        long,
        short,
        global = true,
        env = NAMESPACE_VARIABLE,
        value_name = "NAME",
        default_value = dogwatch_api::DEFAULT_NAMESPACE
    )]
    pub namespace: String,

    /// Whether `--namespace` stands on the command line. Commands for which a namespace is that of the
    /// objects they are given must not take Dogwatch's own, which is the flag's default.
    #[arg(skip)]
    pub namespace_given: bool,

    /// The kubeconfig's context; its current one where it is not given
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
}
