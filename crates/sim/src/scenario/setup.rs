//! Parses the setup part of a script, before `start`.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::reboot::{DrainTimeoutAction, GateTimeoutAction, RebootConfig};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::cluster::{SimulatedWorkload, WorkloadBudget, WorkloadKind};

use super::command::ScenarioSetup;
use super::line_words::LineWords;
use super::{bare_metal_hosts, cluster_api_objects, policy, remediation_objects};

/// Commands that come before `start`.
pub(super) const SETUP_COMMANDS: [&str; 14] = [
    "cluster",
    "workload",
    "config",
    "node",
    "host",
    "machine",
    "policy",
    "policies",
    "remediations",
    "node-reboots",
    "schedules",
    "cluster-api",
    "cluster-api-machine",
    "machine-drain-rule",
];

/// Applies one line of the setup.
pub(super) fn parse_setup_line(
    setup: &mut ScenarioSetup,
    mut all: Vec<String>,
) -> Result<(), String> {
    let name = all.remove(0);
    let mut words = LineWords::new(all);
    match name.as_str() {
        "cluster" => parse_cluster(setup, &mut words)?,
        "workload" => setup.cluster.workloads.push(parse_workload(&mut words)?),
        "node" => setup.labels.push(parse_node_labels(&mut words)?),
        "host" => setup
            .hosts
            .push(bare_metal_hosts::parse_host_setup(&mut words)?),
        "machine" => setup
            .machines
            .push(remediation_objects::parse_machine_setup(&mut words)?),
        "remediations" => {
            words.expect_word("installed")?;
            setup.remediations_installed = true;
        }
        "node-reboots" => {
            words.expect_word("installed")?;
            setup.node_reboots_installed = true;
        }
        "schedules" => {
            words.expect_word("installed")?;
            setup.schedules_installed = true;
        }
        "cluster-api" | "cluster-api-machine" | "machine-drain-rule" => {
            let setup = &mut setup.cluster_api;
            cluster_api_objects::parse_cluster_api_line(setup, &name, &mut words)?;
        }
        "policies" => {
            words.expect_word("installed")?;
            setup.policies_installed = true;
        }
        "policy" => {
            setup.policies_installed = true;
            setup.policies.push(policy::parse_policy(&mut words)?);
        }
        _ => parse_config(setup, &mut words)?,
    }
    words.expect_end()
}

fn parse_cluster(setup: &mut ScenarioSetup, words: &mut LineWords) -> Result<(), String> {
    let spec = &mut setup.cluster;
    spec.nodes = words.number_option("nodes")?.unwrap_or(spec.nodes);
    spec.control_plane = words
        .number_option("control-plane")?
        .unwrap_or(spec.control_plane);
    spec.seed = words
        .read_option("seed", str::parse::<u64>)?
        .map_or(spec.seed, SimulationSeed);
    spec.reboot_takes = words.duration_option("boot")?.unwrap_or(spec.reboot_takes);
    spec.ready_after = words
        .duration_option("ready-after")?
        .unwrap_or(spec.ready_after);
    setup.start = words.read_option("start", policy::parse_moment)?;
    Ok(())
}

/// `node NODE KEY=VALUE…`: its labels.
fn parse_node_labels(words: &mut LineWords) -> Result<(String, BTreeMap<String, String>), String> {
    let node = words.next_word("the node")?;
    let labels = words.take_rest();
    let labels = labels.iter().map(|label| {
        let (key, value) = label.split_once('=').ok_or("a value is missing")?;
        Ok((key.to_owned(), value.to_owned()))
    });
    Ok((node, labels.collect::<Result<_, String>>()?))
}

fn parse_workload(words: &mut LineWords) -> Result<SimulatedWorkload, String> {
    let name = words.next_word("the workload's name")?;
    let replicas = words.number_option("replicas")?.unwrap_or(1);
    let kind = match words.take_option("kind").as_deref() {
        Some("daemonset") => WorkloadKind::DaemonSet,
        Some("deployment") => WorkloadKind::Deployment { replicas },
        None | Some("replicaset") => WorkloadKind::ReplicaSet { replicas },
        Some(other) => return Err(format!("{other:?} is not a kind of workload")),
    };
    let mut workload = SimulatedWorkload::new(kind, &name);
    workload.tolerates_all = kind == WorkloadKind::DaemonSet;
    workload.stops_after = words.duration_option("stops-after")?;
    workload.starts_after = words.duration_option("starts-after")?;
    workload.grace = words.duration_option("grace")?.unwrap_or(workload.grace);
    workload.budget = match words.take_option("pdb").as_deref().and_then(|pdb| {
        pdb.split_once(':')
            .map(|(rule, value)| (rule.to_owned(), value.to_owned()))
    }) {
        None => None,
        Some((rule, value)) if rule == "min" => Some(WorkloadBudget::MinAvailable(value)),
        Some((rule, value)) if rule == "max" => Some(WorkloadBudget::MaxUnavailable(value)),
        Some((rule, _)) => return Err(format!("pdb={rule}:… is not known: write min or max")),
    };
    workload.volume = words.take_if_next("volume");
    workload.anti_affinity = words.take_if_next("apart");
    Ok(workload)
}

fn parse_config(setup: &mut ScenarioSetup, words: &mut LineWords) -> Result<(), String> {
    let config: &mut RebootConfig = &mut setup.config;
    if let Some(limit) = words.read_option("max-unavailable", str::parse::<UnavailabilityLimit>)? {
        config.max_unavailable = limit;
    }
    let mut set = |name: &str, value: &mut Duration| -> Result<(), String> {
        *value = words.duration_option(name)?.unwrap_or(*value);
        Ok(())
    };
    set("drain-timeout", &mut config.drain_timeout)?;
    set("settle", &mut config.settle)?;
    set("reboot-timeout", &mut config.reboot_timeout)?;
    set("gate-timeout", &mut config.gate_timeout)?;
    set("volume-detach-timeout", &mut config.volume_detach_timeout)?;
    config.request_label = words.take_option("request-label");
    config.reboot_attempts = words
        .number_option("reboot-attempts")?
        .unwrap_or(config.reboot_attempts);
    config.on_drain_timeout = match words.take_option("on-drain-timeout").as_deref() {
        None => config.on_drain_timeout,
        Some("abort") => DrainTimeoutAction::Abort,
        Some("delete") => DrainTimeoutAction::Delete,
        Some("force") => DrainTimeoutAction::Force,
        Some(other) => {
            return Err(format!(
                "on-drain-timeout={other} is not known: write abort, delete or force"
            ));
        }
    };
    config.on_gate_timeout = match words.take_option("on-gate-timeout").as_deref() {
        None => config.on_gate_timeout,
        Some("keep") => GateTimeoutAction::Keep,
        Some("release") => GateTimeoutAction::Release,
        Some(other) => {
            return Err(format!(
                "on-gate-timeout={other} is not known: write keep or release"
            ));
        }
    };
    Ok(())
}
