//! Reads and changes BareMetalHosts for people's commands.
//!
//! **May touch:** hosts, Nodes, the leader's Lease and baremetal-operator's Leases (read);
//! `spec.online` and the reboot annotations of a host, each on the version that was checked;
//! Secrets by name; Events about hosts.

mod change;
mod host_relations;
mod watch;

pub use change::{HostChange, HostChangeOutcome};
pub use host_relations::NodesByHost;
pub(super) use host_relations::observed_controller;
pub use watch::FleetHostsWatch;

use dogwatch_core::power::{HostName, HostSnapshot};
use kube::Api;
use kube::api::ListParams;

use super::FleetClient;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::host::{HostObject, convert_host};
use crate::readable_dates::ReadableApi as _;

#[derive(Debug, Clone, PartialEq)]
pub enum HostsFound {
    /// Sorted by namespace and name.
    Hosts(Vec<HostSnapshot>),
    /// The kind BareMetalHost is not installed.
    NoKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HostFound {
    There(Box<HostSnapshot>),
    NoHost,
    /// The kind BareMetalHost is not installed.
    NoKind,
}

impl FleetClient {
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The hosts of a namespace; `None`: of all namespaces.
    pub async fn list_hosts(&self, namespace: Option<&str>) -> Result<HostsFound, Error> {
        let listed = with_timeout(
            self.host_api(namespace)
                .list_readable(&ListParams::default()),
        )
        .await;
        match listed {
            Ok(list) => {
                let mut hosts: Vec<HostSnapshot> = list.items.iter().map(convert_host).collect();
                hosts.sort_by(|one, other| one.name.cmp(&other.name));
                Ok(HostsFound::Hosts(hosts))
            }
            // Only a missing kind makes a list fail with 404: the list of a missing namespace is
            // empty.
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(HostsFound::NoKind),
            Err(error) => Err(error),
        }
    }

    /// Reads one host from the API server.
    pub async fn read_host(&self, name: &HostName) -> Result<HostFound, Error> {
        let api = self.host_api(Some(&name.namespace));
        match with_timeout(api.get_readable(&name.name)).await {
            Ok(object) => Ok(HostFound::There(Box::new(convert_host(&object)))),
            Err(error) if error.kind() == ApiErrorKind::NotFound => {
                Self::host_not_found(&api).await
            }
            Err(error) => Err(error),
        }
    }

    /// A missing host and a missing kind both answer 404; only a list tells them apart.
    async fn host_not_found(api: &Api<HostObject>) -> Result<HostFound, Error> {
        match with_timeout(api.list_metadata(&ListParams::default().limit(1))).await {
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(HostFound::NoKind),
            // If the caller may read one host but not list them, "no such host" is the best answer.
            Err(_) | Ok(_) => Ok(HostFound::NoHost),
        }
    }

    pub(super) fn host_api(&self, namespace: Option<&str>) -> Api<HostObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}
