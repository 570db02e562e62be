//! Which Lease is meant.

use dogwatch_core::explain::LeaseRow;
use dogwatch_core::lock::{LeaseSeen, holder_node_name};

use crate::cluster::Connected;
use crate::exit::{Exit, Failure};
use crate::table::printable;
use dogwatch_core::near::near;

/// The Lease that is meant; if several are, none.
pub async fn resolve(connected: &Connected, target: &str) -> Result<String, Failure> {
    let fleet = connected
        .fleet
        .read()
        .await
        .map_err(|error| connected.failed("list Nodes and Leases", &error))?;
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
        [] => Err(nothing_held(&fleet.leases, target)),
        several => {
            let names: Vec<&str> = several.iter().map(|row| row.lease.name.as_str()).collect();
            Err(Failure::new(
                Exit::Usage,
                format!(
                    "{} holds several Leases: {}",
                    printable(target),
                    names.join(", ")
                ),
            )
            .next("name the one that you mean"))
        }
    }
}

fn is_held_by(lease: &LeaseSeen, target: &str, kind: &str, name: &str) -> bool {
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

fn nothing_held(leases: &[LeaseRow], target: &str) -> Failure {
    let text = format!(
        "no Lease of Dogwatch's is called {target} or held by it",
        target = printable(target)
    );
    let names = leases.iter().flat_map(|row| {
        let holder = row.lease.holder.as_ref();
        let host = holder.and_then(|holder| Some(holder.as_str().rsplit_once('/')?.1));
        [Some(row.lease.name.as_str()), host].into_iter().flatten()
    });
    let near = near(target, names);
    let failure = Failure::new(Exit::NotFound, text);
    if near.is_empty() {
        failure.next("`dogwatch status` lists who holds what; is --namespace right?")
    } else {
        failure.next(format!("did you mean {}?", near.join(" or ")))
    }
}
