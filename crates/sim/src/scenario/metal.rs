//! Bare-metal hosts of a script: their BMCs, their kubelets, and who writes to the volume.

use std::time::Duration;

use dogwatch_core::power::{Config, Host};

use super::command::Setup;
use super::stage::{NotBuilt, Stage};
use super::words::Words;
use crate::bmc::{Fault, Machine};
use crate::chronicle::{Entry, Kind, Violation, host_of};
use crate::metal::{Volume, Yard};

/// So often a writer writes.
const WRITES_EVERY: Duration = Duration::from_secs(1);

/// The hosts, and one volume that their machines can write to.
pub(super) struct Metal {
    pub(super) yard: Yard,
    volume: Volume,
}

impl Metal {
    /// Puts the script's hosts up, if it has any.
    pub(super) fn build(setup: &Setup, stage: &Stage) -> Result<Option<Self>, NotBuilt> {
        if setup.hosts.is_empty() {
            return Ok(None);
        }
        let (server, clock, seed) = (&stage.server, &stage.clock, setup.cluster.seed);
        let mut yard = Yard::open(server, clock, seed, Config::default())?;
        for host in &setup.hosts {
            let kubelet = match &host.node {
                Some(node) => Some(
                    stage
                        .cluster
                        .kubelet(node)
                        .ok_or_else(|| NotBuilt::NoNode(node.clone()))?,
                ),
                None => None,
            };
            let boots_after = setup.cluster.reboot_takes;
            yard.add(&host.name, kubelet, |machine, _| {
                machine.boots_after = boots_after;
            })?;
            if let Some(node) = host.node.as_ref().filter(|_| host.is_linked) {
                yard.annotate(&host.name, dogwatch_api::annotation::NODE, Some(node))?;
            }
        }
        let volume = Volume::open(WRITES_EVERY);
        Ok(Some(Self { yard, volume }))
    }

    fn machine(&self, host: &str) -> Result<Machine, String> {
        let machine = self.yard.machine(host);
        machine.ok_or_else(|| format!("there is no host {host:?}"))
    }
}

impl Stage {
    /// The hosts.
    pub(super) fn metal(&self) -> Result<&Metal, String> {
        self.metal
            .as_ref()
            .ok_or_else(|| "there are no hosts".into())
    }

    /// A BareMetalHost, as it stands.
    pub(super) fn bare_metal_host(&self, name: &str) -> Option<Host> {
        self.observer.get(Kind::Host, name).and_then(host_of)
    }

    /// What the hosts' machines did since the last time.
    pub(super) fn machine_news(&mut self) -> Vec<Entry> {
        let metal = self.metal.as_mut();
        metal.map_or_else(Vec::new, |metal| metal.yard.news())
    }

    /// Two boots wrote to the volume at once; a proof of off stands over a machine that lives.
    pub(super) fn judge_metal(&self) -> Vec<Violation> {
        let Some(metal) = &self.metal else {
            return Vec::new();
        };
        let doubles = metal.volume.writes().doubles;
        let text = || format!("{doubles} times two machines wrote to the volume at once");
        let double = (doubles > 0).then(|| Violation(text()));
        let hosts = self.observer.all(Kind::Host);
        let hosts = hosts.filter_map(|(_, host)| host_of(host));
        let stale = hosts.filter_map(|host| metal.yard.judge_now(&host));
        double.into_iter().chain(stale).collect()
    }

    /// What is told of the hosts at the end; `None`: there are none.
    pub(super) fn hosts_end(&self) -> Option<String> {
        let metal = self.metal.as_ref()?;
        let one = |(name, machine): (&str, &Machine)| {
            let log = machine.log();
            format!("{name} {}, {}", log.power_offs(), log.power_ons())
        };
        let hosts: Vec<String> = metal.yard.hosts().map(one).collect();
        let writes = metal.volume.writes();
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

/// A host that there is from the start.
#[derive(Debug, Clone)]
pub struct HostSetup {
    /// Its name.
    pub name: String,
    /// The node that it carries, if it carries one of the cluster.
    pub node: Option<String>,
    /// Whether the BareMetalHost names that node.
    pub is_linked: bool,
}

/// What happens to a host or its BMC.
#[derive(Debug, Clone)]
pub enum MetalDeed {
    /// A BMC goes wrong.
    Breaks {
        /// Whose.
        host: String,
        /// How.
        fault: Fault,
    },
    /// A BMC is well again.
    Mended {
        /// Whose.
        host: String,
    },
    /// A kubelet dies; the machine runs on.
    KubeletDies {
        /// Whose.
        node: String,
    },
    /// A process of this machine begins to write to the one volume, until its boot ends.
    Writes {
        /// Which machine: a host's.
        host: String,
    },
}

/// The commands of this file.
pub(super) const NAMES: [&str; 3] = ["bmc", "kubelet-dies", "writes"];

/// `host NAME [node=NODE] [unlinked]`.
pub(super) fn host(words: &mut Words) -> Result<HostSetup, String> {
    Ok(HostSetup {
        name: words.next("the host's name")?,
        node: words.option("node"),
        is_linked: !words.is_next("unlinked"),
    })
}

/// What a line says that begins with `name`, one of [`NAMES`].
pub(super) fn read(name: &str, words: &mut Words) -> Result<MetalDeed, String> {
    let host = words.next("the host or node")?;
    Ok(match name {
        "kubelet-dies" => MetalDeed::KubeletDies { node: host },
        "writes" => MetalDeed::Writes { host },
        _ if words.is_next("well") => MetalDeed::Mended { host },
        _ => {
            let fault = words.rest().join(" ");
            let fault = Fault::parse(&fault).map_err(|error| error.to_string())?;
            MetalDeed::Breaks { host, fault }
        }
    })
}

/// Does it.
pub(super) fn perform(stage: &Stage, deed: &MetalDeed) -> Result<(), String> {
    let metal = stage.metal();
    let bmc = |host: &str| {
        let bmc = metal.clone()?.yard.park.named(host);
        bmc.ok_or_else(|| format!("there is no host {host:?}"))
    };
    match deed {
        MetalDeed::Breaks { host, fault } => bmc(host)?.add(fault.clone()),
        MetalDeed::Mended { host } => bmc(host)?.cure_all(),
        MetalDeed::KubeletDies { node } => stage
            .cluster
            .kubelet(node)
            .ok_or_else(|| format!("there is no machine {node:?}"))?
            .kubelet_dies(),
        MetalDeed::Writes { host } => {
            let metal = metal?;
            if !metal.volume.mount(host, &metal.machine(host)?) {
                return Err(format!("{host} does not run"));
            }
        }
    }
    Ok(())
}
