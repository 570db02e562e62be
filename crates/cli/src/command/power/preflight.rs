//! Checks for obstacles before a host's power is cut, and for what keeps a request from being
//! carried out.

use dogwatch_core::drain::PodRules;
use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, join_first_names, next_step};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;

use super::decide::{is_written_by_person, obeyed_keys};
use super::request::PowerOperation;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::person;
use dogwatch_core::printable::printable_text;

const MAX_NAMED_PODS: usize = 3;

/// Returns if nothing would be lost, or if the person confirms.
pub async fn confirm_power_cut(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
    wish: &PowerOperation,
    yes: bool,
) -> Result<(), CommandFailure> {
    if yes {
        return Ok(());
    }
    let question = match wish {
        PowerOperation::On => None,
        PowerOperation::Release { key } => foreign_key_question(host, key),
        PowerOperation::Off | PowerOperation::Cycle { .. } | PowerOperation::Hold { .. } => {
            undrained_node_question(connected, host).await
        }
    };
    match question {
        Some(question) => person::ask_confirmation(&printable_text(&question), false),
        None => Ok(()),
    }
}

fn foreign_key_question(host: &HostSnapshot, key: &str) -> Option<String> {
    if is_written_by_person(host, key) {
        return None;
    }
    Some(format!(
        "Key {key} was not written by `dogwatch power hold`. The program that wrote it may need {} to stay off. Remove the key anyway?",
        host.name
    ))
}

/// Asks about a Node that is not drained; `None` when the host has no Node or it is drained.
async fn undrained_node_question(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
) -> Option<String> {
    let (name, fleet) = (&host.name, &connected.fleet);
    let node = match fleet.read_nodes_by_host().await {
        Ok(carried) => carried.node_of_host(host)?,
        Err(error) => {
            let why = error.error_chain();
            return Some(format!(
                "Dogwatch could not find out whether {name} carries a Node ({why}). Cut its power anyway?"
            ));
        }
    };
    let state = node_state_text(connected, &node).await?;
    Some(format!(
        "{name} carries Node {node}, {state}; `dogwatch reboot {node}` drains it first. Cut its power anyway?"
    ))
}

async fn node_state_text(connected: &ConnectedCluster, node: &NodeName) -> Option<String> {
    let seen = match connected.fleet.read_node(node).await {
        Ok(Some(seen)) => seen,
        // The host names a Node that no longer exists, so the cluster runs nothing there.
        Ok(None) => return None,
        Err(error) => return Some(format!("which could not be read ({})", error.error_chain())),
    };
    if !seen.unschedulable {
        return Some("which is in service".into());
    }
    let rules = PodRules::default();
    match connected.fleet.read_node_contents(node, &rules).await {
        Ok(on_node) => {
            let pods = on_node.undrained_pod_names(current_time());
            (!pods.is_empty()).then(|| {
                format!(
                    "which is not drained: {}",
                    join_first_names(&pods, MAX_NAMED_PODS)
                )
            })
        }
        Err(error) => Some(format!(
            "whose pods could not be read ({})",
            error.error_chain()
        )),
    }
}

/// Prints what would keep the request from being carried out.
pub fn warn_of_blockers(host: &HostSnapshot, wish: &PowerOperation) {
    let keys = obeyed_keys(host);
    if matches!(wish, PowerOperation::On | PowerOperation::Release { .. }) && !keys.is_empty() {
        let names = join_first_names(&keys, MAX_NAMED_PODS);
        eprintln!(
            "dogwatch: the host stays off until these keys are released: {}",
            printable_text(&names)
        );
    }
    if matches!(wish, PowerOperation::Release { .. }) && keys.is_empty() && !host.online {
        eprintln!("dogwatch: the host stays off, because spec.online is false");
    }
    if let Some(ready) = host_condition(host, POWER_CONTROL_READY)
        && ready.status == "False"
    {
        let why = format!("{}: {}", ready.reason, ready.message);
        eprintln!(
            "dogwatch: power control does not work now: {}",
            printable_text(&why)
        );
        if let Some(next) = next_step(&ready.reason) {
            eprintln!("  → {next}");
        }
    }
    if host.status.power.state.is_none() {
        eprintln!(
            "dogwatch: no power controller has read this host yet\n  → dogwatch explain host/{}",
            host.name
        );
    }
}
