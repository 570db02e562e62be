//! Implements `dogwatch check hosts`: would power control work now?

mod device_check;
mod probe;
mod render;

use std::path::PathBuf;
use std::time::Duration;

use device_check::{DeviceCheck, PowerControlWorks, power_control_verdict};
use dogwatch_bmc::DriverOptions;
use dogwatch_core::duration;
use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, next_step};
use dogwatch_core::power::{HostName, HostSnapshot, PowerReason, PowerState};
use dogwatch_k8s::fleet::HostsFound;
use futures::stream::{self, StreamExt as _};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::command::hosts as which;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::OutputArgs;
use crate::resource::{ObjectArg, ObjectKind, kind_missing, parse_host};

const MAX_CONCURRENT_BMCS: usize = 32;

#[derive(Debug, clap::Args)]
pub struct CheckHostsArgs {
    /// Hosts to check (NAMESPACE/NAME); defaults to all hosts of -n, or of all namespaces
    #[arg(value_name = "NAMESPACE/NAME", value_parser = parse_host)]
    hosts: Vec<ObjectArg>,

    /// Use the power controller's last result (condition PowerControlReady); needs no Secret and no
    /// network path to the BMCs
    #[arg(long)]
    from_status: bool,

    /// How long one call to a BMC may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse_duration)]
    bmc_timeout: Duration,

    /// Path or name of the program ipmitool
    #[arg(long, value_name = "PATH", default_value = "ipmitool")]
    ipmitool: PathBuf,

    /// Folder of the fence agents
    #[arg(long, value_name = "PATH", default_value = "/usr/sbin")]
    fence_agents: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
}

/// Prints the checks; the exit code says whether power control of every host would work.
pub async fn run(cluster: &ClusterArgs, args: &CheckHostsArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let (hosts, missing) = find_chosen_hosts(cluster, &connected, &args.hosts).await?;
    let checked = if args.from_status {
        hosts.iter().map(check_from_status).collect()
    } else {
        probe_all_hosts(&connected, &hosts, args).await
    };
    render::print_checks(&checked, args.output.format)?;
    match missing {
        Some(missing) => Err(missing),
        None => power_control_verdict(&checked, hosts.len()),
    }
}

/// Finds the hosts, or fails with the first one that does not exist.
async fn find_chosen_hosts(
    cluster: &ClusterArgs,
    connected: &ConnectedCluster,
    named: &[ObjectArg],
) -> Result<(Vec<HostSnapshot>, Option<CommandFailure>), CommandFailure> {
    let (mut hosts, mut missing) = (Vec::new(), None);
    for named in named {
        let name = named.resolve_name(cluster, connected, HostName::new);
        match which::read_host(connected, &name).await {
            Ok(host) => hosts.push(host),
            Err(failure) => missing = missing.or(Some(failure)),
        }
    }
    if named.is_empty() {
        hosts = list_all_hosts(cluster, connected).await?;
    }
    Ok((hosts, missing))
}

async fn list_all_hosts(
    cluster: &ClusterArgs,
    connected: &ConnectedCluster,
) -> Result<Vec<HostSnapshot>, CommandFailure> {
    let namespace = cluster
        .namespace_given
        .then_some(cluster.namespace.as_str());
    let found = connected.fleet.list_hosts(namespace).await;
    match found.map_err(|error| connected.api_failure("list BareMetalHosts", &error))? {
        HostsFound::Hosts(hosts) if hosts.is_empty() => {
            let text = "there are no BareMetalHosts to check";
            Err(CommandFailure::new(CliExitCode::NotFound, text)
                .with_next_step("`dogwatch status hosts` lists them"))
        }
        HostsFound::Hosts(hosts) => Ok(hosts),
        HostsFound::NoKind => Err(kind_missing(ObjectKind::Host)),
    }
}

async fn probe_all_hosts(
    connected: &ConnectedCluster,
    hosts: &[HostSnapshot],
    args: &CheckHostsArgs,
) -> Vec<DeviceCheck> {
    let options = DriverOptions {
        ipmitool: args.ipmitool.clone(),
        fence_agents: args.fence_agents.clone(),
        ..DriverOptions::default()
    };
    let around = match connected.fleet.list_hosts(None).await {
        Ok(HostsFound::Hosts(all)) => which::find_shared_bmcs(&all),
        // Without the right to list all hosts, only the checked ones are compared.
        Ok(HostsFound::NoKind) | Err(_) => which::find_shared_bmcs(hosts),
    };
    let asked = hosts.iter().map(|host| async {
        match around.get(&host.name) {
            Some(others) => vec![shared_bmc_check(host, others)],
            None => probe::probe_host(connected, host, &options, args.bmc_timeout).await,
        }
    });
    // Collected first: a future that keeps the closure is `Send` for no caller (the dashboard).
    let asked: Vec<_> = asked.collect();
    let answers: Vec<Vec<DeviceCheck>> = stream::iter(asked)
        .buffered(MAX_CONCURRENT_BMCS)
        .collect()
        .await;
    answers.into_iter().flatten().collect()
}

fn shared_bmc_check(host: &HostSnapshot, others: &[HostName]) -> DeviceCheck {
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let message = format!(
        "host {} uses the same BMC; Dogwatch controls only the host that used it first",
        others.join(", ")
    );
    DeviceCheck::not_working(host, None, PowerReason::SharedBMC, message)
}

/// Takes the result from the host's condition PowerControlReady.
fn check_from_status(host: &HostSnapshot) -> DeviceCheck {
    let Some(ready) = host_condition(host, POWER_CONTROL_READY) else {
        let message = "no power controller has checked this host yet";
        return DeviceCheck {
            works: PowerControlWorks::Unknown,
            next: Some(format!("dogwatch explain host/{}", host.name)),
            ..DeviceCheck::not_working(host, Some(0), PowerReason::NotCheckedYet, message)
        };
    };
    let works = match ready.status.as_str() {
        "True" => PowerControlWorks::Yes,
        "False" => PowerControlWorks::No,
        _ => PowerControlWorks::Unknown,
    };
    DeviceCheck {
        works,
        power: host.status.power.state.map(PowerState::as_str),
        next: next_step(&ready.reason).map(str::to_owned),
        ..DeviceCheck::without_reading(host, Some(0), &ready.reason, &ready.message)
    }
}
