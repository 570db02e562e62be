//! Resolves a command's argument to a Lease.

use dogwatch_core::explain::LeaseRow;
use dogwatch_core::lock::{ObservedLease, holder_node_name};

use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::resource::not_found;
use dogwatch_core::printable::printable_text;

/// Fails if the argument matches several Leases.
pub async fn resolve_lease(
    connected: &ConnectedCluster,
    target: &str,
) -> Result<String, CommandFailure> {
    let fleet = connected
        .fleet
        .read_fleet()
        .await
        .map_err(|error| connected.api_failure("list Nodes and Leases", &error))?;
    let (kind, name) = target.split_once('/').unwrap_or(("", target));
    let by_name = fleet.leases.iter().find(|row| row.lease.name == name);
    if let (Some(row), "" | "lease" | "leases") = (by_name, kind) {
        return Ok(row.lease.name.clone());
    }
    let held: Vec<&LeaseRow> = fleet
        .leases
        .iter()
        .filter(|row| is_held_by(&row.lease, target, kind, name))
        .collect();
    match held.as_slice() {
        [one] => Ok(one.lease.name.clone()),
        [] => Err(no_lease_held_failure(&fleet.leases, target)),
        several => {
            let names: Vec<&str> = several.iter().map(|row| row.lease.name.as_str()).collect();
            Err(CommandFailure::new(
                CliExitCode::Usage,
                format!(
                    "{} holds several Leases: {}",
                    printable_text(target),
                    names.join(", ")
                ),
            )
            .with_next_step("give the name of one Lease"))
        }
    }
}

fn is_held_by(lease: &ObservedLease, target: &str, kind: &str, name: &str) -> bool {
    let Some(holder) = &lease.holder else {
        return false;
    };
    if holder.as_str() == target {
        return true;
    }
    let its_node = holder_node_name(lease).is_some_and(|node| node.as_str() == name);
    let its_host = holder
        .as_str()
        .rsplit_once('/')
        .is_some_and(|(_, host)| host == name);
    match kind {
        "" => its_node || its_host,
        "node" | "nodes" | "no" => its_node,
        _ => false,
    }
}

fn no_lease_held_failure(leases: &[LeaseRow], target: &str) -> CommandFailure {
    let text = format!(
        "no Lease of Dogwatch has the name or the holder {target}",
        target = printable_text(target)
    );
    let names = leases.iter().flat_map(|row| {
        let holder = row.lease.holder.as_ref();
        let host = holder.and_then(|holder| Some(holder.as_str().rsplit_once('/')?.1));
        [Some(row.lease.name.as_str()), host].into_iter().flatten()
    });
    let names: Vec<String> = names.map(str::to_owned).collect();
    let list_hint = "`dogwatch status` lists the Leases and their holders; check --namespace";
    not_found(text, target, &names, list_hint)
}
