//! The marks by which others are told that a node is away because we reboot it.
//!
//! **For:** what `dogwatch_core::handshake` decides.
//! **May touch:** medik8s' namespace and the Leases in it; of Cluster API's Machines one annotation.
//! **Promises:** every write carries UID and resourceVersion of what was seen; nothing of others is
//! taken away (S3). Where nobody listens (no such namespace, no such kind, no right) nothing is written.
//!
//! Source: medik8s' `common/pkg/lease` (name, owner, times, and that giving back is deleting);
//! Cluster API's annotation `cluster.x-k8s.io/skip-remediation`.

mod lease;
mod machine;

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::handshake::{Action, MachineMark, NodeLease};
use dogwatch_core::name::NodeName;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PatchParams;
use kube::{Api, Client};

use crate::error::{Error, Kind, ask};
use crate::manager::patched_by;

/// Where medik8s keeps its Leases, unless it is told otherwise. Source: medik8s.
pub const LEASE_NAMESPACE: &str = "medik8s-leases";

/// How the controller names itself as a field manager.
const MANAGER: &str = dogwatch_api::CONTROLLER;

/// What is seen of others' marks and ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// Machines of Cluster API that carry our mark, or whose Node was asked for.
    pub machines: Vec<MachineMark>,
    /// All Leases of medik8s. `None`: it is not there, or we may not look.
    pub leases: Option<Vec<NodeLease>>,
    /// What we are not allowed to look at, by kind: said once, for it is there only where somebody
    /// uses it.
    pub forbidden: BTreeMap<&'static str, String>,
}

/// The hand on the marks.
#[derive(Clone)]
pub struct HandshakeClient {
    client: Client,
    leases: Api<Lease>,
}

impl HandshakeClient {
    /// A hand on the marks of this cluster.
    pub fn new(client: Client) -> Self {
        let leases = Api::namespaced(client.clone(), LEASE_NAMESPACE);
        Self { client, leases }
    }

    /// Reads all marks afresh, and the Machines of these nodes.
    ///
    /// # Errors
    /// When there is no answer to go by.
    pub async fn marks(&self, nodes: &BTreeSet<NodeName>) -> Result<Marks, Error> {
        let mut marks = Marks::default();
        match machine::marked(&self.client, nodes).await {
            Ok(machines) => marks.machines = machines,
            Err(error) => marks.note_forbidden("machines.cluster.x-k8s.io", error)?,
        }
        match self.leases().await {
            Ok(leases) => marks.leases = leases,
            Err(error) => marks.note_forbidden("leases in medik8s-leases", error)?,
        }
        Ok(marks)
    }

    /// `None`: medik8s is not there. A list of a namespace that is not there would only be empty.
    async fn leases(&self) -> Result<Option<Vec<NodeLease>>, Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        match ask(namespaces.get_metadata_opt(LEASE_NAMESPACE)).await? {
            Some(_) => Ok(Some(lease::all(&self.leases).await?)),
            None => Ok(None),
        }
    }

    /// Writes one mark, or takes one off. `false`: it has changed since it was seen, or there is no
    /// namespace for it.
    ///
    /// # Errors
    /// Whatever else the API server says, and no answer.
    pub async fn act(&self, action: &Action, now: jiff::Timestamp) -> Result<bool, Error> {
        let done = match action {
            Action::MarkMachine(machine) => machine::annotate(&self.client, machine, true).await,
            Action::UnmarkMachine(machine) => machine::annotate(&self.client, machine, false).await,
            Action::TakeLease {
                node,
                node_uid,
                lease,
                ends,
            } => {
                let owner = lease::Owner {
                    name: node,
                    uid: node_uid,
                };
                lease::take(&self.leases, owner, lease.as_ref(), *ends, now).await
            }
            Action::DeleteLease(lease) => lease::delete(&self.leases, lease).await,
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                Kind::NotFound | Kind::AlreadyExists | Kind::Conflict | Kind::Gone => Ok(false),
                Kind::Forbidden | Kind::Throttled { .. } | Kind::Refused | Kind::Transient => {
                    Err(error)
                }
            },
        }
    }
}

impl Marks {
    fn note_forbidden(&mut self, what: &'static str, error: Error) -> Result<(), Error> {
        if error.kind() != Kind::Forbidden {
            return Err(error);
        }
        self.forbidden.insert(what, error.in_words());
        Ok(())
    }
}

fn params() -> PatchParams {
    patched_by(MANAGER)
}
