//! Reads and writes the markers that tell other programs that Dogwatch reboots a node.
//!
//! **For:** what `dogwatch_core::markers` decides.
//! **May touch:** medik8s' namespace and the Leases in it; one annotation of Cluster API's
//! Machines.
//! **Promises:** every write carries UID and resourceVersion of the object that was read; nothing
//! of others is removed (S3). If no such program is installed (no such namespace, kind or right),
//! nothing is written.
//!
//! Source: medik8s' `common/pkg/lease` (name, owner, times, and that a Lease is given back by
//! deleting it); Cluster API's annotation `cluster.x-k8s.io/skip-remediation`.

mod lease;
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::markers::{MachineMarker, MaintenanceLease, MarkerAction};
use dogwatch_core::name::NodeName;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PatchParams;
use kube::{Api, Client};

use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::patch_params_for;

/// medik8s' default namespace for its Leases. Source: medik8s.
pub const MEDIK8S_LEASE_NAMESPACE: &str = "medik8s-leases";

/// The controller's field manager.
const FIELD_MANAGER: &str = dogwatch_api::CONTROLLER;

/// The markers of others and our own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaintenanceMarkers {
    /// Machines of Cluster API that carry our mark, or whose Node was requested.
    pub machines: Vec<MachineMarker>,
    /// All Leases of medik8s. `None`: medik8s is not installed, or we may not read its Leases.
    pub leases: Option<Vec<MaintenanceLease>>,
    /// What we may not read, by kind. Reported once: the right exists only on clusters that use the
    /// kind.
    pub forbidden: BTreeMap<&'static str, String>,
}

#[derive(Clone)]
pub struct MarkerClient {
    client: Client,
    leases: Api<Lease>,
}

impl MarkerClient {
    pub fn new(client: Client) -> Self {
        let leases = Api::namespaced(client.clone(), MEDIK8S_LEASE_NAMESPACE);
        Self { client, leases }
    }

    /// Reads all markers, and the Machines of these nodes.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn read_markers(
        &self,
        nodes: &BTreeSet<NodeName>,
    ) -> Result<MaintenanceMarkers, Error> {
        let mut marks = MaintenanceMarkers::default();
        match machine::list_marked_machines(&self.client, nodes).await {
            Ok(machines) => marks.machines = machines,
            Err(error) => marks.record_forbidden("machines.cluster.x-k8s.io", error)?,
        }
        match self.list_leases().await {
            Ok(leases) => marks.leases = leases,
            Err(error) => marks.record_forbidden("leases in medik8s-leases", error)?,
        }
        Ok(marks)
    }

    /// `None`: medik8s is not installed. A list in a missing namespace would only be empty.
    async fn list_leases(&self) -> Result<Option<Vec<MaintenanceLease>>, Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        match with_timeout(namespaces.get_metadata_opt(MEDIK8S_LEASE_NAMESPACE)).await? {
            Some(_) => Ok(Some(lease::list_node_leases(&self.leases).await?)),
            None => Ok(None),
        }
    }

    /// Writes or removes one marker. `false`: it has changed since it was read, or its namespace is
    /// missing.
    ///
    /// # Errors
    /// Any other failure.
    pub async fn apply_action(
        &self,
        action: &MarkerAction,
        now: jiff::Timestamp,
    ) -> Result<bool, Error> {
        let done = match action {
            MarkerAction::MarkMachine(machine) => {
                machine::annotate_machine(&self.client, machine, true).await
            }
            MarkerAction::UnmarkMachine(machine) => {
                machine::annotate_machine(&self.client, machine, false).await
            }
            MarkerAction::TakeLease {
                node,
                node_uid,
                lease,
                ends,
            } => {
                let owner = lease::NodeLeaseOwner {
                    name: node,
                    uid: node_uid,
                };
                lease::take_lease(&self.leases, owner, lease.as_ref(), *ends, now).await
            }
            MarkerAction::DeleteLease(lease) => lease::delete_lease(&self.leases, lease).await,
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                ApiErrorKind::NotFound
                | ApiErrorKind::AlreadyExists
                | ApiErrorKind::Conflict
                | ApiErrorKind::Gone => Ok(false),
                ApiErrorKind::Forbidden
                | ApiErrorKind::Throttled { .. }
                | ApiErrorKind::Refused
                | ApiErrorKind::Transient => Err(error),
            },
        }
    }
}

impl MaintenanceMarkers {
    fn record_forbidden(&mut self, what: &'static str, error: Error) -> Result<(), Error> {
        if error.kind() != ApiErrorKind::Forbidden {
            return Err(error);
        }
        self.forbidden.insert(what, error.error_chain());
        Ok(())
    }
}

fn patch_params() -> PatchParams {
    patch_params_for(FIELD_MANAGER)
}
