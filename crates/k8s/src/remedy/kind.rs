//! The kinds that are watched, and which of their versions a cluster serves.

use dogwatch_api::power_remediation;
use dogwatch_core::remedy::MachineApi;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;

use crate::error::{Error, Kind as Meaning, ask};

/// A kind that may not be installed, in one of some versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(super) group: &'static str,
    /// The first one that is served is used.
    versions: &'static [&'static str],
    singular: &'static str,
    plural: &'static str,
    /// As it is named in troubles.
    pub(super) full_name: &'static str,
}

/// OpenShift's Machines.
pub(super) const OPENSHIFT: Kind = Kind {
    group: MachineApi::OpenShift.group(),
    versions: &["v1beta1"],
    singular: "Machine",
    plural: "machines",
    full_name: "machines.machine.openshift.io",
};

/// Cluster API's Machines. Source: specification §4.1 (v1beta1 where that is all there is).
pub(crate) const CLUSTER_API: Kind = Kind {
    group: MachineApi::ClusterApi.group(),
    versions: &["v1beta2", "v1beta1"],
    singular: "Machine",
    plural: "machines",
    full_name: "machines.cluster.x-k8s.io",
};

/// What is between a Machine of Cluster API and its host.
pub(super) const METAL3_MACHINE: Kind = Kind {
    group: "infrastructure.cluster.x-k8s.io",
    versions: &["v1beta2", "v1beta1"],
    singular: "Metal3Machine",
    plural: "metal3machines",
    full_name: "metal3machines.infrastructure.cluster.x-k8s.io",
};

/// Our requests.
pub(super) const POWER_REMEDIATION: Kind = Kind {
    group: power_remediation::GROUP,
    versions: &[power_remediation::VERSION],
    singular: power_remediation::KIND,
    plural: power_remediation::PLURAL,
    full_name: power_remediation::CRD_NAME,
};

impl Kind {
    /// That of the Machines of an API.
    pub(super) fn of(api: MachineApi) -> Self {
        match api {
            MachineApi::OpenShift => OPENSHIFT,
            MachineApi::ClusterApi => CLUSTER_API,
        }
    }

    /// The version to use here; `None`: none of them is served. A group may be served without this
    /// kind: its resources are looked at.
    pub(crate) async fn served(&self, client: &Client) -> Result<Option<ApiResource>, Error> {
        for version in self.versions {
            let group_version = format!("{}/{version}", self.group);
            match ask(client.list_api_group_resources(&group_version)).await {
                Ok(list) if list.resources.iter().any(|it| it.name == self.plural) => {
                    return Ok(Some(self.resource(version)));
                }
                Ok(_) => {}
                Err(error) if error.kind() == Meaning::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The newest version that is known here.
    pub(super) fn newest(&self) -> ApiResource {
        self.resource(self.versions[0])
    }

    fn resource(&self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, version, self.singular);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }
}

/// The version in which Machines of this API are written to.
pub(crate) async fn machine_resource(
    client: &Client,
    api: MachineApi,
) -> Result<ApiResource, Error> {
    let kind = Kind::of(api);
    // Where none is served any more the write is answered so.
    Ok(kind.served(client).await?.unwrap_or_else(|| kind.newest()))
}
