//! BareMetalHosts, for people.
//!
//! **May touch:** reads of hosts, Nodes, the leader's Lease and baremetal-operator's; of a host
//! `spec.online` and its reboot annotations, each on the version that was judged; Secrets by name;
//! Events about hosts.

mod around;
mod change;
mod watch;

pub use around::Carried;
pub(super) use around::controller_seen;
pub use change::{HostChange, HostChanged};
pub use watch::HostsWatch;

use dogwatch_core::power::{Host, HostName};
use kube::Api;
use kube::api::ListParams;

use super::FleetClient;
use crate::error::{Error, Kind, ask};
use crate::host::{HostObject, convert};

/// What a look for hosts found.
#[derive(Debug, Clone, PartialEq)]
pub enum HostsFound {
    /// These, by namespace and name.
    Hosts(Vec<Host>),
    /// The kind BareMetalHost is not installed.
    NoKind,
}

/// What a look for one host found.
#[derive(Debug, Clone, PartialEq)]
pub enum HostFound {
    /// It.
    There(Box<Host>),
    /// There is none of that name.
    NoHost,
    /// The kind BareMetalHost is not installed.
    NoKind,
}

impl FleetClient {
    /// The namespace of the kubeconfig's context.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The hosts of a namespace; of all where none is named.
    pub async fn hosts(&self, namespace: Option<&str>) -> Result<HostsFound, Error> {
        let listed = ask(self.hosts_in(namespace).list(&ListParams::default())).await;
        match listed {
            Ok(list) => {
                let mut hosts: Vec<Host> = list.items.iter().map(convert).collect();
                hosts.sort_by(|one, other| one.name.cmp(&other.name));
                Ok(HostsFound::Hosts(hosts))
            }
            // A list is answered 404 for a kind only: a namespace that is not there is an empty one.
            Err(error) if error.kind() == Kind::NotFound => Ok(HostsFound::NoKind),
            Err(error) => Err(error),
        }
    }

    /// One host, read afresh.
    pub async fn host(&self, name: &HostName) -> Result<HostFound, Error> {
        let api = self.hosts_in(Some(&name.namespace));
        match ask(api.get(&name.name)).await {
            Ok(object) => Ok(HostFound::There(Box::new(convert(&object)))),
            Err(error) if error.kind() == Kind::NotFound => Self::not_found(&api).await,
            Err(error) => Err(error),
        }
    }

    /// No host and no such kind are both a 404; only a list tells which.
    async fn not_found(api: &Api<HostObject>) -> Result<HostFound, Error> {
        match ask(api.list_metadata(&ListParams::default().limit(1))).await {
            Err(error) if error.kind() == Kind::NotFound => Ok(HostFound::NoKind),
            // Whoever may read one and not all is answered by what is known.
            Err(_) | Ok(_) => Ok(HostFound::NoHost),
        }
    }

    pub(super) fn hosts_in(&self, namespace: Option<&str>) -> Api<HostObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}
