//! The remediator's view of Machines, requests and backups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_core::remediation::{
    InfraMachine, MachineName, ObjectName, ObservedMachine, PowerRequest, StoredBackup,
};

/// Machines, Metal3Machines, requests and backups, from the watches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemediationWatchView {
    pub machines: BTreeMap<MachineName, Arc<ObservedMachine>>,
    pub infra: BTreeMap<ObjectName, Arc<InfraMachine>>,
    pub requests: BTreeMap<ObjectName, Arc<PowerRequest>>,
    /// The Clusters of Cluster API with `spec.paused`.
    pub paused_clusters: BTreeSet<ObjectName>,
    /// Backups of deleted Nodes, by the host's UID. Empty if backups are not watched.
    pub backups: BTreeMap<String, Arc<StoredBackup>>,
    /// Each kind was listed, or is not installed. Before that, an object that is missing here may
    /// still exist. A kind that may not be read keeps this false.
    pub synced: bool,
    /// The installed kinds, each with the API version in use.
    pub installed: BTreeMap<&'static str, String>,
    /// The last read error, by kind. The cause may have passed since.
    pub errors: BTreeMap<&'static str, String>,
}
