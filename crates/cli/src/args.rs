//! The `dogwatch` command line.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use dogwatch_k8s::ClusterConnection;

use crate::command::DogwatchCommand;

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  a named object does not exist
  4  no cluster is configured, or it cannot be reached
  5  not allowed
  6  check: something blocks a reboot or power control
  130  ended by ctrl-C

The cluster is chosen as kubectl chooses it: KUBECONFIG, else ~/.kube/config, else the pod's service account.";

/// Take Kubernetes nodes out of service safely, reboot them and bring them back
#[derive(Debug, Parser)]
#[command(name = "dogwatch", version, after_help = AFTER_HELP, propagate_version = true)]
pub struct Args {
    #[command(flatten)]
    pub cluster: ClusterArgs,

    #[command(subcommand)]
    pub command: DogwatchCommand,
}

impl Args {
    /// Exits the process with code 2 when the command line is wrong.
    pub fn parse_or_exit(words: &[OsString]) -> Self {
        let matches = build_clap_command(words).get_matches_from(words);
        let mut args = match Self::from_arg_matches(&matches) {
            Ok(args) => args,
            Err(error) => error.format(&mut build_clap_command(words)).exit(),
        };
        let source = matches.value_source("namespace");
        args.cluster.namespace_given = source == Some(ValueSource::CommandLine);
        args
    }
}

/// Builds the clap command under the name it was called by: kubectl runs a program
/// `kubectl-dogwatch` as `kubectl dogwatch`.
pub fn build_clap_command(words: &[OsString]) -> clap::Command {
    let command = Args::command();
    let program = words.first().map(std::path::Path::new);
    let name = program.and_then(|path| path.file_stem());
    match name.and_then(|name| name.to_str()) {
        Some("kubectl-dogwatch") => command.bin_name(PLUGIN_NAME).display_name(PLUGIN_NAME),
        Some(_) | None => command,
    }
}

const PLUGIN_NAME: &str = "kubectl dogwatch";

/// Environment variable that names Dogwatch's namespace when the command line does not.
pub const NAMESPACE_VARIABLE: &str = "DOGWATCH_NAMESPACE";

/// An address on loopback; `why` says what an address of the network would mean.
pub fn parse_loopback_address(text: &str, why: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .replace("localhost", "127.0.0.1")
        .parse()
        .map_err(|_| "write it like 127.0.0.1:8001".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(format!(
            "{} is not loopback: {why}, so write an address like 127.0.0.1:8001",
            address.ip()
        ))
    }
}

#[derive(Debug, Clone, clap::Args)]
pub struct ClusterArgs {
    /// Dogwatch's namespace, which holds its Leases; also the namespace of hosts, machines,
    /// remediations and schedules that are named without one
    #[arg(
        long,
        short,
        global = true,
        env = NAMESPACE_VARIABLE,
        value_name = "NAME",
        default_value = dogwatch_api::DEFAULT_NAMESPACE
    )]
    pub namespace: String,

    /// True when `--namespace` is on the command line. Commands that read `-n` as the namespace
    /// of the named objects must not use Dogwatch's own namespace, which is the flag's default.
    #[arg(skip)]
    pub namespace_given: bool,

    /// Context of the kubeconfig; defaults to its current context
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// The connection to use in place of one to the context. The dashboard runs commands for its
    /// viewers, whose rights differ.
    #[arg(skip)]
    pub given_connection: Option<GivenConnection>,
}

#[derive(Clone)]
pub struct GivenConnection(pub ClusterConnection);

impl fmt::Debug for GivenConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GivenConnection({})", self.0.server)
    }
}
