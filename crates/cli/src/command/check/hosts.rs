//! `dogwatch check hosts`: would power control work now?

mod ask;
mod checked;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use checked::{Checked, Works, verdict};
use dogwatch_bmc::Options;
use dogwatch_core::duration;
use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, next_step};
use dogwatch_core::power::{Host, HostName, State, reason};
use dogwatch_k8s::fleet::HostsFound;
use futures::stream::{self, StreamExt as _};

use crate::args::Cluster;
use crate::cluster::Connected;
use crate::command::hosts::{self as which, Named, named};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// How many BMCs are asked at once.
const AT_ONCE: usize = 32;

/// Which hosts, and how they are asked.
#[derive(Debug, clap::Args)]
pub struct HostsArgs {
    /// The hosts (NAMESPACE/NAME); all of -n, or of all namespaces, where none is named
    #[arg(value_name = "NAMESPACE/NAME", value_parser = named)]
    hosts: Vec<Named>,

    /// Goes by what the power controller found last (condition PowerControlReady): needs no Secret and
    /// no way to the BMCs
    #[arg(long)]
    from_status: bool,

    /// How long one call to a BMC may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    bmc_timeout: Duration,

    /// The program ipmitool
    #[arg(long, value_name = "PATH", default_value = "ipmitool")]
    ipmitool: PathBuf,

    /// The folder of the fence agents
    #[arg(long, value_name = "PATH", default_value = "/usr/sbin")]
    fence_agents: PathBuf,

    /// How it is printed
    #[command(flatten)]
    output: Output,
}

/// Looks, prints; the exit code tells whether each would work.
pub async fn run(cluster: &Cluster, args: &HostsArgs) -> Result<(), Failure> {
    let connected = which::connect(cluster).await?;
    let (hosts, missing) = chosen(cluster, &connected, &args.hosts).await?;
    let checked = if args.from_status {
        hosts.iter().map(from_status).collect()
    } else {
        ask_all(&connected, &hosts, args).await
    };
    show::print(&checked, args.output.format)?;
    match missing {
        Some(missing) => Err(missing),
        None => verdict(&checked, hosts.len()),
    }
}

/// The hosts, and the trouble of the first that is not there.
async fn chosen(
    cluster: &Cluster,
    connected: &Connected,
    named: &[Named],
) -> Result<(Vec<Host>, Option<Failure>), Failure> {
    let (mut hosts, mut missing) = (Vec::new(), None);
    for named in named {
        let name = named.in_cluster(cluster, connected);
        match which::one(connected, &name).await {
            Ok(host) => hosts.push(host),
            Err(failure) => missing = missing.or(Some(failure)),
        }
    }
    if named.is_empty() {
        hosts = all(cluster, connected).await?;
    }
    Ok((hosts, missing))
}

async fn all(cluster: &Cluster, connected: &Connected) -> Result<Vec<Host>, Failure> {
    let namespace = cluster
        .namespace_given
        .then_some(cluster.namespace.as_str());
    let found = connected.fleet.hosts(namespace).await;
    match found.map_err(|error| connected.failed("list BareMetalHosts", &error))? {
        HostsFound::Hosts(hosts) if hosts.is_empty() => {
            let text = "there are no BareMetalHosts to check";
            Err(Failure::new(Exit::NotFound, text).next("`dogwatch status hosts` lists them"))
        }
        HostsFound::Hosts(hosts) => Ok(hosts),
        HostsFound::NoKind => Err(which::no_kind()),
    }
}

async fn ask_all(connected: &Connected, hosts: &[Host], args: &HostsArgs) -> Vec<Checked> {
    let options = Options {
        ipmitool: args.ipmitool.clone(),
        fence_agents: args.fence_agents.clone(),
        ..Options::default()
    };
    let around = match connected.fleet.hosts(None).await {
        Ok(HostsFound::Hosts(all)) => which::sharing(&all),
        // Of whoever may not list them all, those that are checked are compared.
        Ok(HostsFound::NoKind) | Err(_) => which::sharing(hosts),
    };
    let asked = hosts.iter().map(|host| async {
        match around.get(&host.name) {
            Some(others) => vec![shared(host, others)],
            None => ask::host(connected, host, &options, args.bmc_timeout).await,
        }
    });
    let answers: Vec<Vec<Checked>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    answers.into_iter().flatten().collect()
}

fn shared(host: &Host, others: &[HostName]) -> Checked {
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let message = format!(
        "its BMC is that of {}, which had it first and keeps it",
        others.join(", ")
    );
    Checked::no(host, None, reason::SHARED_BMC, message)
}

/// The controller's own word.
fn from_status(host: &Host) -> Checked {
    let Some(ready) = host_condition(host, POWER_CONTROL_READY) else {
        let message = "no power controller has checked it yet";
        return Checked {
            works: Works::Unknown,
            next: Some(format!("dogwatch explain host/{}", host.name)),
            ..Checked::no(host, Some(0), reason::NOT_CHECKED, message)
        };
    };
    let works = match ready.status.as_str() {
        "True" => Works::Yes,
        "False" => Works::No,
        _ => Works::Unknown,
    };
    Checked {
        works,
        power: host.status.power.state.map(State::as_str),
        next: next_step(&ready.reason).map(str::to_owned),
        ..Checked::no(host, Some(0), &ready.reason, &ready.message)
    }
}
