//! What is in the way of cutting a host's power, and what keeps a wish from coming about.

use dogwatch_core::explain::{POWER_CONTROL_READY, host_condition, next_step, some};
use dogwatch_core::name::NodeName;
use dogwatch_core::power::Host;

use super::decide::{is_a_persons, keys};
use super::wish::Wish;
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::person;
use crate::table::printable;

/// How many pods are named.
const NAMED: usize = 3;

/// Goes on if nothing is lost by it, or the person says so.
pub async fn confirm(
    connected: &Connected,
    host: &Host,
    wish: &Wish,
    yes: bool,
) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let question = match wish {
        Wish::On => None,
        Wish::Release { key } => foreign(host, key),
        Wish::Off | Wish::Cycle { .. } | Wish::Hold { .. } => not_drained(connected, host).await,
    };
    match question {
        Some(question) => person::confirm(&printable(&question), false),
        None => Ok(()),
    }
}

fn foreign(host: &Host, key: &str) -> Option<String> {
    if is_a_persons(host, key) {
        return None;
    }
    Some(format!(
        "Key {key} was not written by `dogwatch power hold`: whatever wrote it may rely on {} being off. Remove it all the same?",
        host.name
    ))
}

/// Why its Node is not ready to lose its power; `None` where there is no Node, or it is drained.
async fn not_drained(connected: &Connected, host: &Host) -> Option<String> {
    let (name, fleet) = (&host.name, &connected.fleet);
    let node = match fleet.carried().await {
        Ok(carried) => carried.node_of(host)?,
        Err(error) => {
            let why = error.in_words();
            return Some(format!(
                "Whether {name} carries a Node could not be looked at ({why}). Cut its power all the same?"
            ));
        }
    };
    let state = state_of(connected, &node).await?;
    Some(format!(
        "{name} carries Node {node}, {state}; `dogwatch reboot {node}` drains it first. Cut its power all the same?"
    ))
}

async fn state_of(connected: &Connected, node: &NodeName) -> Option<String> {
    let seen = match connected.fleet.node(node).await {
        Ok(Some(seen)) => seen,
        // The host names a Node that is gone: nothing runs there as far as the cluster knows.
        Ok(None) => return None,
        Err(error) => return Some(format!("which could not be read ({})", error.in_words())),
    };
    if !seen.unschedulable {
        return Some("which is in service".into());
    }
    match connected.fleet.on_node(node).await {
        Ok(on_node) => {
            let pods = on_node.not_drained(now());
            (!pods.is_empty()).then(|| format!("which is not drained: {}", some(&pods, NAMED)))
        }
        Err(error) => Some(format!(
            "whose pods could not be read ({})",
            error.in_words()
        )),
    }
}

/// Says what keeps the wish from coming about, where something does.
pub fn warn(host: &Host, wish: &Wish) {
    let keys = keys(host);
    if matches!(wish, Wish::On | Wish::Release { .. }) && !keys.is_empty() {
        let names = some(&keys, NAMED);
        eprintln!(
            "dogwatch: it stays off until these keys are released: {}",
            printable(&names)
        );
    }
    if matches!(wish, Wish::Release { .. }) && keys.is_empty() && !host.online {
        eprintln!("dogwatch: it stays off: spec.online is false");
    }
    if let Some(ready) = host_condition(host, POWER_CONTROL_READY)
        && ready.status == "False"
    {
        let why = format!("{}: {}", ready.reason, ready.message);
        eprintln!(
            "dogwatch: power control does not work now: {}",
            printable(&why)
        );
        if let Some(next) = next_step(&ready.reason) {
            eprintln!("  → {next}");
        }
    }
    if host.status.power.state.is_none() {
        eprintln!(
            "dogwatch: no power controller has looked at this host yet\n  → dogwatch explain host/{}",
            host.name
        );
    }
}
