//! The bare-metal hosts of a script: BMCs, kubelets, and processes that write to a volume.

use std::time::Duration;

use dogwatch_core::power::{CONFIRMED_OFF_ANNOTATION, HostSnapshot, OffConfirmation, PowerConfig};
use dogwatch_kubesim::clock::ClusterClock as _;
use dogwatch_kubesim::machine::SimMachine;

use super::command::ScenarioSetup;
use super::line_words::LineWords;
use super::scenario_cluster::{ScenarioBuildError, ScenarioCluster};
use crate::bare_metal::{BareMetalLab, SharedVolume};
use crate::bmc::SimBmcFault;
use crate::observer::{ObservedKind, ObserverEntry, PromiseViolation, parse_host};

/// How often each writer writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The hosts, and one volume to which their machines can write.
pub(super) struct ScenarioHosts {
    pub(super) lab: BareMetalLab,
    volume: SharedVolume,
}

impl ScenarioHosts {
    /// Starts the script's hosts, if it has any.
    pub(super) fn build_hosts(
        setup: &ScenarioSetup,
        stage: &ScenarioCluster,
    ) -> Result<Option<Self>, ScenarioBuildError> {
        if setup.hosts.is_empty() {
            return Ok(None);
        }
        let (server, clock, seed) = (&stage.server, &stage.clock, setup.cluster.seed);
        let mut yard = BareMetalLab::open_lab(server, clock, seed, PowerConfig::default())?;
        for host in &setup.hosts {
            let kubelet = match &host.node {
                Some(node) => Some(
                    stage
                        .cluster
                        .find_kubelet(node)
                        .ok_or_else(|| ScenarioBuildError::NoNode(node.clone()))?,
                ),
                None => None,
            };
            let boots_after = setup.cluster.reboot_takes;
            yard.add_host(&host.name, kubelet, |machine, _| {
                machine.boots_after = boots_after;
            })?;
            if let Some(node) = host.node.as_ref().filter(|_| host.is_linked) {
                yard.annotate_host(&host.name, dogwatch_api::annotation::NODE, Some(node))?;
            }
        }
        let volume = SharedVolume::open_volume(WRITE_INTERVAL);
        Ok(Some(Self { lab: yard, volume }))
    }

    fn machine_of_host(&self, host: &str) -> Result<SimMachine, String> {
        let machine = self.lab.machine_of_host(host);
        machine.ok_or_else(|| format!("there is no host {host:?}"))
    }
}

impl ScenarioCluster {
    pub(super) fn scenario_hosts(&self) -> Result<&ScenarioHosts, String> {
        self.bare_metal_hosts
            .as_ref()
            .ok_or_else(|| "there are no hosts".into())
    }

    pub(super) fn bare_metal_host(&self, name: &str) -> Option<HostSnapshot> {
        self.observer
            .get_object(ObservedKind::Host, name)
            .and_then(parse_host)
    }

    /// Returns what the hosts' machines did since the last call.
    pub(super) fn take_machine_entries(&mut self) -> Vec<ObserverEntry> {
        let metal = self.bare_metal_hosts.as_mut();
        metal.map_or_else(Vec::new, |metal| metal.lab.take_entries())
    }

    /// Reports a volume to which two boots wrote at once, and a proof of "off" on a machine whose
    /// processes live.
    pub(super) fn judge_hosts(&self) -> Vec<PromiseViolation> {
        let Some(metal) = &self.bare_metal_hosts else {
            return Vec::new();
        };
        let doubles = metal.volume.count_writes().doubles;
        let text = || format!("two machines wrote to the volume at the same time {doubles} times");
        let double = (doubles > 0).then(|| PromiseViolation(text()));
        let hosts = self.observer.list_objects(ObservedKind::Host);
        let hosts = hosts.filter_map(|(_, host)| parse_host(host));
        let stale = hosts.filter_map(|host| metal.lab.judge_host(&host));
        let traced = metal.lab.trace.judge_lines();
        double.into_iter().chain(stale).chain(traced).collect()
    }

    /// The final lines about the hosts; `None`: the script has none.
    pub(super) fn hosts_summary(&self) -> Option<String> {
        let metal = self.bare_metal_hosts.as_ref()?;
        let one = |(name, machine): (&str, &SimMachine)| {
            let log = machine.transition_log();
            format!(
                "{name} {}, {}",
                log.count_power_offs(),
                log.count_power_ons()
            )
        };
        let hosts: Vec<String> = metal.lab.list_hosts().map(one).collect();
        let writes = metal.volume.count_writes();
        let by = writes.by.iter();
        let by: Vec<String> = by.map(|(name, count)| format!("{name} {count}")).collect();
        let wrote = match by.as_slice() {
            [] => String::new(),
            some => format!("; writes: {}", some.join(", ")),
        };
        let hosts = hosts.join("; ");
        Some(format!("power-offs and power-ons: {hosts}{wrote}"))
    }
}

#[derive(Debug, Clone)]
pub struct HostSetup {
    pub name: String,
    /// The cluster's node on this host, if any.
    pub node: Option<String>,
    /// Whether the BareMetalHost names the node.
    pub is_linked: bool,
}

/// Something that happens to a host or its BMC.
#[derive(Debug, Clone)]
pub enum BareMetalCommand {
    /// Adds a fault to a BMC.
    Breaks { host: String, fault: SimBmcFault },
    /// Cures a BMC's faults.
    Mended { host: String },
    /// A person confirms that a host is off, as `dogwatch confirm-off` does.
    ConfirmedOff { host: String, reason: String },
    /// A kubelet dies; its machine keeps running.
    KubeletDies { node: String },
    /// A process on this machine writes to the volume until its boot ends.
    Writes {
        /// The host of the machine.
        host: String,
    },
}

/// The commands that this file parses.
pub(super) const BARE_METAL_COMMANDS: [&str; 4] = ["bmc", "confirm-off", "kubelet-dies", "writes"];

/// `host NAME [node=NODE] [unlinked]`.
pub(super) fn parse_host_setup(words: &mut LineWords) -> Result<HostSetup, String> {
    Ok(HostSetup {
        name: words.next_word("the host's name")?,
        node: words.take_option("node"),
        is_linked: !words.take_if_next("unlinked"),
    })
}

/// Parses a line that begins with `name`, one of [`BARE_METAL_COMMANDS`].
pub(super) fn parse_bare_metal_command(
    name: &str,
    words: &mut LineWords,
) -> Result<BareMetalCommand, String> {
    let host = words.next_word("the host or node")?;
    Ok(match name {
        "confirm-off" => BareMetalCommand::ConfirmedOff {
            host,
            reason: words
                .take_option("reason")
                .ok_or("reason=TEXT is missing")?,
        },
        "kubelet-dies" => BareMetalCommand::KubeletDies { node: host },
        "writes" => BareMetalCommand::Writes { host },
        _ if words.take_if_next("well") => BareMetalCommand::Mended { host },
        _ => {
            let fault = words.take_rest().join(" ");
            let fault = SimBmcFault::parse(&fault).map_err(|error| error.to_string())?;
            BareMetalCommand::Breaks { host, fault }
        }
    })
}

pub(super) fn apply_bare_metal_command(
    stage: &ScenarioCluster,
    deed: &BareMetalCommand,
) -> Result<(), String> {
    let metal = stage.scenario_hosts();
    let bmc = |host: &str| {
        let bmc = metal.clone()?.lab.bmc_fleet.find_bmc(host);
        bmc.ok_or_else(|| format!("there is no host {host:?}"))
    };
    match deed {
        BareMetalCommand::Breaks { host, fault } => bmc(host)?.add_fault(fault.clone()),
        BareMetalCommand::Mended { host } => bmc(host)?.cure_all_faults(),
        BareMetalCommand::ConfirmedOff { host, reason } => {
            let as_read = stage.bare_metal_host(host).ok_or("there is no such host")?;
            let word = OffConfirmation::for_host(&as_read, "admin", stage.clock.now(), reason);
            let value = word.annotation_value();
            return metal?
                .lab
                .annotate_host(host, CONFIRMED_OFF_ANNOTATION, Some(&value))
                .map_err(|error| error.to_string());
        }
        BareMetalCommand::KubeletDies { node } => stage
            .cluster
            .find_kubelet(node)
            .ok_or_else(|| format!("there is no machine {node:?}"))?
            .kill_kubelet(),
        BareMetalCommand::Writes { host } => {
            let metal = metal?;
            if !metal
                .volume
                .mount_on_machine(host, &metal.machine_of_host(host)?)
            {
                return Err(format!("host {host} is not running"));
            }
        }
    }
    Ok(())
}
