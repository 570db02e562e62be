//! What a script says of its cluster, before `start`.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::limit::Limit;
use dogwatch_core::reboot::{Config, OnGateTimeout, OnTimeout};

use super::command::Setup;
use super::words::Words;
use super::{metal, policy};
use crate::seed::Seed;
use crate::world::cluster::{Budget, Workload, WorkloadKind};

/// What stands before `start`.
pub(super) const NAMES: [&str; 7] = [
    "cluster", "workload", "config", "node", "host", "policy", "policies",
];

/// Takes in one line that stands before `start`.
pub(super) fn setup(setup: &mut Setup, mut all: Vec<String>) -> Result<(), String> {
    let name = all.remove(0);
    let mut words = Words::new(all);
    match name.as_str() {
        "cluster" => cluster(setup, &mut words)?,
        "workload" => setup.cluster.workloads.push(workload(&mut words)?),
        "node" => setup.labels.push(node(&mut words)?),
        "host" => setup.hosts.push(metal::host(&mut words)?),
        "policies" => {
            words.expect("installed")?;
            setup.policies_installed = true;
        }
        "policy" => {
            setup.policies_installed = true;
            setup.policies.push(policy::policy(&mut words)?);
        }
        _ => config(setup, &mut words)?,
    }
    words.end()
}

fn cluster(setup: &mut Setup, words: &mut Words) -> Result<(), String> {
    let spec = &mut setup.cluster;
    spec.nodes = words.number("nodes")?.unwrap_or(spec.nodes);
    spec.control_plane = words.number("control-plane")?.unwrap_or(spec.control_plane);
    spec.seed = words
        .read("seed", str::parse::<u64>)?
        .map_or(spec.seed, Seed);
    spec.reboot_takes = words.duration("boot")?.unwrap_or(spec.reboot_takes);
    spec.ready_after = words.duration("ready-after")?.unwrap_or(spec.ready_after);
    setup.start = words.read("start", policy::moment)?;
    Ok(())
}

/// `node NODE KEY=VALUE…`: its labels.
fn node(words: &mut Words) -> Result<(String, BTreeMap<String, String>), String> {
    let node = words.next("the node")?;
    let labels = words.rest();
    let labels = labels.iter().map(|label| {
        let (key, value) = label.split_once('=').ok_or("a value is missing")?;
        Ok((key.to_owned(), value.to_owned()))
    });
    Ok((node, labels.collect::<Result<_, String>>()?))
}

fn workload(words: &mut Words) -> Result<Workload, String> {
    let name = words.next("the workload's name")?;
    let replicas = words.number("replicas")?.unwrap_or(1);
    let kind = match words.option("kind").as_deref() {
        Some("daemonset") => WorkloadKind::DaemonSet,
        Some("deployment") => WorkloadKind::Deployment { replicas },
        None | Some("replicaset") => WorkloadKind::ReplicaSet { replicas },
        Some(other) => return Err(format!("{other:?} is no kind of workload here")),
    };
    let mut workload = Workload::new(kind, &name);
    workload.tolerates_all = kind == WorkloadKind::DaemonSet;
    workload.stops_after = words.duration("stops-after")?;
    workload.starts_after = words.duration("starts-after")?;
    workload.grace = words.duration("grace")?.unwrap_or(workload.grace);
    workload.budget = match words.option("pdb").as_deref().and_then(|pdb| {
        pdb.split_once(':')
            .map(|(rule, value)| (rule.to_owned(), value.to_owned()))
    }) {
        None => None,
        Some((rule, value)) if rule == "min" => Some(Budget::MinAvailable(value)),
        Some((rule, value)) if rule == "max" => Some(Budget::MaxUnavailable(value)),
        Some((rule, _)) => return Err(format!("pdb={rule}:… is neither min nor max")),
    };
    workload.volume = words.is_next("volume");
    workload.apart = words.is_next("apart");
    Ok(workload)
}

fn config(setup: &mut Setup, words: &mut Words) -> Result<(), String> {
    let config: &mut Config = &mut setup.config;
    if let Some(limit) = words.read("max-unavailable", str::parse::<Limit>)? {
        config.max_unavailable = limit;
    }
    let mut set = |name: &str, value: &mut Duration| -> Result<(), String> {
        *value = words.duration(name)?.unwrap_or(*value);
        Ok(())
    };
    set("drain-timeout", &mut config.drain_timeout)?;
    set("settle", &mut config.settle)?;
    set("reboot-timeout", &mut config.reboot_timeout)?;
    set("gate-timeout", &mut config.gate_timeout)?;
    set("volume-detach-timeout", &mut config.volume_detach_timeout)?;
    config.reboot_attempts = words
        .number("reboot-attempts")?
        .unwrap_or(config.reboot_attempts);
    config.on_drain_timeout = match words.option("on-drain-timeout").as_deref() {
        None => config.on_drain_timeout,
        Some("abort") => OnTimeout::Abort,
        Some("delete") => OnTimeout::Delete,
        Some("force") => OnTimeout::Force,
        Some(other) => {
            return Err(format!(
                "on-drain-timeout={other} is none of abort, delete, force"
            ));
        }
    };
    config.on_gate_timeout = match words.option("on-gate-timeout").as_deref() {
        None => config.on_gate_timeout,
        Some("keep") => OnGateTimeout::Keep,
        Some("release") => OnGateTimeout::Release,
        Some(other) => {
            return Err(format!(
                "on-gate-timeout={other} is neither keep nor release"
            ));
        }
    };
    Ok(())
}
