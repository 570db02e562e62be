//! The watched kinds, and the discovery of the versions that a cluster serves.

use dogwatch_api::power_remediation;
use dogwatch_core::remediation::MachineApi;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;

use crate::error::{ApiErrorKind, Error, with_timeout};

/// A kind that may not be installed, in one of several versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalKind {
    pub(super) group: &'static str,
    /// In order of preference: the first served version is used.
    versions: &'static [&'static str],
    singular: &'static str,
    plural: &'static str,
    /// Its name in error messages.
    pub(crate) full_name: &'static str,
}

pub(super) const OPENSHIFT_MACHINE: OptionalKind = OptionalKind {
    group: MachineApi::OpenShift.group(),
    versions: &["v1beta1"],
    singular: "Machine",
    plural: "machines",
    full_name: "machines.machine.openshift.io",
};

/// Source: specification §4.1 (v1beta1 if the cluster serves no later version).
pub(crate) const CLUSTER_API_MACHINE: OptionalKind = OptionalKind {
    group: MachineApi::ClusterApi.group(),
    versions: &["v1beta2", "v1beta1"],
    singular: "Machine",
    plural: "machines",
    full_name: "machines.cluster.x-k8s.io",
};

/// Source: Cluster API 1.9 and later.
pub(crate) const MACHINE_DRAIN_RULE: OptionalKind = OptionalKind {
    group: MachineApi::ClusterApi.group(),
    versions: &["v1beta2", "v1beta1"],
    singular: "MachineDrainRule",
    plural: "machinedrainrules",
    full_name: "machinedrainrules.cluster.x-k8s.io",
};

pub(crate) const CLUSTER_API_CLUSTER: OptionalKind = OptionalKind {
    group: MachineApi::ClusterApi.group(),
    versions: &["v1beta2", "v1beta1"],
    singular: "Cluster",
    plural: "clusters",
    full_name: "clusters.cluster.x-k8s.io",
};

pub(super) const METAL3_MACHINE: OptionalKind = OptionalKind {
    group: "infrastructure.cluster.x-k8s.io",
    versions: &["v1beta2", "v1beta1"],
    singular: "Metal3Machine",
    plural: "metal3machines",
    full_name: "metal3machines.infrastructure.cluster.x-k8s.io",
};

pub(super) const POWER_REMEDIATION: OptionalKind = OptionalKind {
    group: power_remediation::GROUP,
    versions: &[power_remediation::VERSION],
    singular: power_remediation::KIND,
    plural: power_remediation::PLURAL,
    full_name: power_remediation::CRD_NAME,
};

impl OptionalKind {
    pub(super) fn of_machine_api(api: MachineApi) -> Self {
        match api {
            MachineApi::OpenShift => OPENSHIFT_MACHINE,
            MachineApi::ClusterApi => CLUSTER_API_MACHINE,
        }
    }

    /// The version to use; `None`: none of them is served. A group may be served without this kind,
    /// so its resources are checked.
    pub(crate) async fn find_served_version(
        &self,
        client: &Client,
    ) -> Result<Option<ApiResource>, Error> {
        for version in self.versions {
            let group_version = format!("{}/{version}", self.group);
            match with_timeout(client.list_api_group_resources(&group_version)).await {
                Ok(list) if list.resources.iter().any(|it| it.name == self.plural) => {
                    return Ok(Some(self.api_resource(version)));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ApiErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    pub(super) fn newest_version(&self) -> ApiResource {
        self.api_resource(self.versions[0])
    }

    fn api_resource(&self, version: &str) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group, version, self.singular);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }
}

/// The version in which Machines of this API are written.
pub(crate) async fn find_machine_resource(
    client: &Client,
    api: MachineApi,
) -> Result<ApiResource, Error> {
    let kind = OptionalKind::of_machine_api(api);
    // If no version is served, the write itself returns the error.
    Ok(kind
        .find_served_version(client)
        .await?
        .unwrap_or_else(|| kind.newest_version()))
}
