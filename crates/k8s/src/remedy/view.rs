//! What is seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::remedy::{
    InfraMachine, KeptBackup, Machine, MachineName, ObjectName, PowerRequest,
};

/// Machines, what is between them and their hosts, and requests, as last seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemedyView {
    /// All Machines.
    pub machines: BTreeMap<MachineName, Arc<Machine>>,
    /// All `Metal3Machine`s.
    pub infra: BTreeMap<ObjectName, Arc<InfraMachine>>,
    /// All requests.
    pub requests: BTreeMap<ObjectName, Arc<PowerRequest>>,
    /// What is kept of deleted Nodes, by the UID of the host. Empty where nobody asked for it.
    pub backups: BTreeMap<String, Arc<KeptBackup>>,
    /// Of each kind it is known how it stands: it was listed, or is not installed. Before that nothing
    /// may be concluded from what is not here. A kind that may not be read is never known.
    pub synced: bool,
    /// Which kinds there are in this cluster, with the API version that is used.
    pub installed: BTreeMap<&'static str, String>,
    /// What could not be seen when it was last looked at, by kind; it may have passed since.
    pub trouble: BTreeMap<&'static str, String>,
}
