//! Checks for obstacles before a host's power is cut, and for what keeps a request from being
//! carried out.

use dogwatch_core::drain::PodRules;
use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, join_first_names, next_step};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::{HostName, HostSnapshot};

use super::decide::{is_written_by_person, obeyed_keys};
use super::request::PowerOperation;
use crate::cluster::{ConnectedCluster, current_time};
use crate::command::hosts;
use crate::exit::{CliExitCode, CommandFailure};
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
    match wish {
        PowerOperation::On => Ok(()),
        PowerOperation::Release { key } => match foreign_key_question(host, key) {
            Some(question) => person::ask_confirmation(&printable_text(&question), false),
            None => Ok(()),
        },
        PowerOperation::Off | PowerOperation::Cycle { .. } | PowerOperation::Hold { .. } => {
            confirm_undrained_node(connected, host).await
        }
    }
}

/// Asks about a Node that is not drained, and looks again after the answer, because the person may
/// have thought for long.
async fn confirm_undrained_node(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
) -> Result<(), CommandFailure> {
    let Some(asked) = find_undrained_node(connected, host).await else {
        return Ok(());
    };
    let question = asked.question(&host.name);
    person::ask_confirmation(&printable_text(&question), false)?;
    let host = hosts::read_host(connected, &host.name).await?;
    let Some(now) = find_undrained_node(connected, &host).await else {
        return Ok(());
    };
    if asked.covers(&now) {
        return Ok(());
    }
    let text = format!(
        "host {} has changed since you were asked, so nothing was done; the question would be now: {}",
        host.name,
        now.question(&host.name)
    );
    Err(
        CommandFailure::new(CliExitCode::Failed, printable_text(&text))
            .with_next_step("run the command again if you still want it"),
    )
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

/// Why cutting a host's power may kill pods.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UndrainedNode {
    /// Nobody knows whether the host has a Node.
    UnknownNode { why: String },
    Node {
        name: NodeName,
        state: UndrainedState,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UndrainedState {
    InService,
    HasPods(Vec<String>),
    /// What could not be read.
    Unknown(String),
}

impl UndrainedNode {
    fn question(&self, host: &HostName) -> String {
        match self {
            UndrainedNode::UnknownNode { why } => format!(
                "Dogwatch could not find out whether {host} carries a Node ({why}). Cut its power anyway?"
            ),
            UndrainedNode::Node { name, state } => format!(
                "{host} carries Node {name}, {}; `dogwatch reboot {name}` drains it first. Cut its power anyway?",
                state.text()
            ),
        }
    }

    /// Whether who agreed to this has agreed to what is there now.
    fn covers(&self, now: &Self) -> bool {
        match (self, now) {
            (UndrainedNode::UnknownNode { .. }, UndrainedNode::UnknownNode { .. }) => true,
            (
                UndrainedNode::Node { name, state },
                UndrainedNode::Node {
                    name: name_now,
                    state: state_now,
                },
            ) => name == name_now && state.covers(state_now),
            (UndrainedNode::UnknownNode { .. }, UndrainedNode::Node { .. })
            | (UndrainedNode::Node { .. }, UndrainedNode::UnknownNode { .. }) => false,
        }
    }
}

impl UndrainedState {
    fn text(&self) -> String {
        match self {
            UndrainedState::InService => "which is in service".into(),
            UndrainedState::HasPods(pods) => format!(
                "which is not drained: {}",
                join_first_names(pods, MAX_NAMED_PODS)
            ),
            UndrainedState::Unknown(what) => what.clone(),
        }
    }

    fn covers(&self, now: &Self) -> bool {
        match (self, now) {
            (UndrainedState::InService, _)
            | (UndrainedState::Unknown(_), UndrainedState::Unknown(_)) => true,
            (UndrainedState::HasPods(asked), UndrainedState::HasPods(now)) => {
                now.iter().all(|pod| asked.contains(pod))
            }
            (
                UndrainedState::HasPods(_) | UndrainedState::Unknown(_),
                UndrainedState::InService,
            )
            | (UndrainedState::HasPods(_), UndrainedState::Unknown(_))
            | (UndrainedState::Unknown(_), UndrainedState::HasPods(_)) => false,
        }
    }
}

/// `None` when the host has no Node or it is drained.
async fn find_undrained_node(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
) -> Option<UndrainedNode> {
    let name = match connected.fleet.read_nodes_by_host().await {
        Ok(carried) => carried.node_of_host(host)?,
        Err(error) => {
            let why = error.error_chain();
            return Some(UndrainedNode::UnknownNode { why });
        }
    };
    let state = find_undrained_state(connected, &name).await?;
    Some(UndrainedNode::Node { name, state })
}

async fn find_undrained_state(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Option<UndrainedState> {
    let seen = match connected.fleet.read_node(node).await {
        Ok(Some(seen)) => seen,
        // The host names a Node that no longer exists, so the cluster runs nothing there.
        Ok(None) => return None,
        Err(error) => {
            let what = format!("which could not be read ({})", error.error_chain());
            return Some(UndrainedState::Unknown(what));
        }
    };
    if !seen.unschedulable {
        return Some(UndrainedState::InService);
    }
    let rules = PodRules::default();
    match connected.fleet.read_node_contents(node, &rules).await {
        Ok(on_node) => {
            let pods = on_node.undrained_pod_names(current_time());
            (!pods.is_empty()).then_some(UndrainedState::HasPods(pods))
        }
        Err(error) => {
            let what = format!("whose pods could not be read ({})", error.error_chain());
            Some(UndrainedState::Unknown(what))
        }
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
