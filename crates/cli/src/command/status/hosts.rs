//! The hosts of a status.

use std::collections::BTreeMap;

use dogwatch_core::explain::{HostRow, host_rows};
use dogwatch_core::power::Host;
use dogwatch_k8s::fleet::{Carried, HostsFound};

use super::{Scope, What};
use crate::cluster::Connected;
use crate::command::hosts::no_kind;
use crate::exit::Failure;

/// The rows of the hosts in scope. Beside Nodes and locks they are left out where they cannot be had.
pub async fn read(connected: &Connected, scope: &Scope) -> Result<Vec<HostRow>, Failure> {
    if !scope.wants(What::Hosts) {
        return Ok(Vec::new());
    }
    let is_all_that_is_wanted = scope.what == Some(What::Hosts);
    let hosts = match connected.fleet.hosts(scope.namespace.as_deref()).await {
        Ok(HostsFound::Hosts(hosts)) => hosts,
        Ok(HostsFound::NoKind) if is_all_that_is_wanted => return Err(no_kind()),
        Ok(HostsFound::NoKind) => return Ok(Vec::new()),
        Err(error) if is_all_that_is_wanted => {
            return Err(connected.failed("list BareMetalHosts", &error));
        }
        Err(error) => {
            eprintln!("dogwatch: shown without hosts: {}", error.in_words());
            return Ok(Vec::new());
        }
    };
    if hosts.is_empty() {
        if is_all_that_is_wanted {
            eprintln!("dogwatch: {}", nothing(scope.namespace.as_deref()));
        }
        return Ok(Vec::new());
    }
    Ok(rows(&hosts, &carried(connected).await))
}

fn nothing(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("there are no BareMetalHosts in namespace {namespace}"),
        None => "there are no BareMetalHosts in this cluster".into(),
    }
}

/// Which Node runs where; without the right to list Nodes only what the hosts themselves say.
pub async fn carried(connected: &Connected) -> Carried {
    connected.fleet.carried().await.unwrap_or_else(|error| {
        eprintln!(
            "dogwatch: shown without the hosts' Nodes: {}",
            error.in_words()
        );
        Carried::default()
    })
}

/// The rows of these hosts.
pub fn rows<'a>(hosts: impl IntoIterator<Item = &'a Host>, carried: &Carried) -> Vec<HostRow> {
    let hosts: BTreeMap<_, &Host> = hosts.into_iter().map(|host| (&host.name, host)).collect();
    let node = |name: &_| carried.node_of(hosts.get(name)?);
    host_rows(hosts.values().copied(), node)
}
