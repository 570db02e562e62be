//! Prints the state of a host before a person confirms that it is off.

use dogwatch_core::explain::format_age;
use dogwatch_core::power::{HostSnapshot, PowerState};
use dogwatch_core::remediation::{
    KeyOwner, Remediation, RemediationKey, discover_remediations, record_on_host,
};
use dogwatch_k8s::fleet::RemediationsFound;

use super::eligibility::is_held_off;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::output::print_line;

/// The remediations that are linked to the host. On an error the confirmation goes on if the host
/// carries a key.
pub async fn linked_remediations(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
) -> Result<Vec<Remediation>, CommandFailure> {
    match connected.fleet.read_remediations().await {
        Ok(RemediationsFound::There(view)) => Ok(discover_remediations(&view.snapshot)),
        Ok(RemediationsFound::NoKind) => Ok(Vec::new()),
        Err(error) if is_held_off(host) => {
            let why = error.error_chain();
            eprintln!("dogwatch: the Node and Machine of the host cannot be shown: {why}");
            Ok(Vec::new())
        }
        Err(error) => Err(connected.api_failure("find the Node and Machine of the host", &error)),
    }
}

/// Prints the summary and returns the names of what would be released. `new` is the key that is
/// written with the confirmation.
pub fn print_host_summary(
    host: &HostSnapshot,
    cases: &[Remediation],
    new: Option<&KeyOwner>,
) -> Result<String, CommandFailure> {
    let is_shown = |case: &&Remediation| is_linked_to_host(case, host, new);
    let cases: Vec<&Remediation> = cases.iter().filter(is_shown).collect();
    for key in RemediationKey::keys_on_host(host) {
        let mut cases = cases.iter();
        let case = cases.find(|case| case.key == key.owner);
        let whose = case.map(|case| format!(", of {}", case.subject));
        let is_new = new == Some(&key.owner);
        let when = if is_new {
            ", which your confirmation adds"
        } else {
            ""
        };
        let (name, whose) = (&key.name, whose.unwrap_or_default());
        print_line(&format!("  key    {name}{whose}{when}"))?;
    }
    print_line(&format!("  power  {}", power_text(host)))?;
    for case in &cases {
        print_line(&format!("  node   {}", node_text(case)))?;
    }
    Ok(released_node_text(host, &cases))
}

fn is_linked_to_host(case: &Remediation, host: &HostSnapshot, new: Option<&KeyOwner>) -> bool {
    let its = case.host.as_ref().ok();
    let is_its = its.is_some_and(|its| its.name == host.name);
    is_its && (case.is_keyed() || new == Some(&case.key))
}

fn power_text(host: &HostSnapshot) -> String {
    let power = &host.status.power;
    let state = power.state.map_or("never read", PowerState::as_str);
    let seen = power
        .observed_at
        .map(|at| format_age(current_time().elapsed_since(at)));
    let seen = seen.map(|age| format!(", last read {age} ago"));
    format!("{state}{}", seen.unwrap_or_default())
}

fn node_text(case: &Remediation) -> String {
    match (&case.node_name, &case.node) {
        (None, _) => "none".to_owned(),
        (Some(name), None) => format!("{name}, which no longer exists: nothing is left to release"),
        (Some(name), Some(node)) if node.ready => {
            format!("{name}, which is READY: its kubelet has just sent a heartbeat")
        }
        (Some(name), Some(_)) => format!("{name}, not Ready"),
    }
}

/// The Nodes whose workloads would start elsewhere.
fn released_node_text(host: &HostSnapshot, cases: &[&Remediation]) -> String {
    let mut names = cases.iter().filter_map(|case| case.node_name.as_ref());
    let node = names.next().map(|name| format!("Node {name}"));
    let recorded = || {
        record_on_host(host)?
            .node
            .map(|name| format!("Node {name}"))
    };
    node.or_else(recorded)
        .unwrap_or_else(|| "its Node".to_owned())
}
