//! Reads and changes the cluster for people's commands.
//!
//! **For:** `dogwatch status`, `explain`, `check`, `reboot`, `hold`, `release`, `abort`, `pause`, `resume`, `unlock`,
//! `power` and `confirm-off`.
//! **May touch:** reads of Nodes, Leases, policies, pods, DaemonSets, namespaces,
//! PodDisruptionBudgets, hosts, Machines and requests; access reviews of the caller. Writes of two
//! annotations of a Node, of a host's `spec.online`, reboot annotations and confirmation, of
//! `spec.paused` of a policy, of the holder of a Lease, of NodeReboots, and of Events.
//! **Promises:** objects are converted by the same functions that the coordinator uses; every write
//! has UID and resourceVersion of the checked object as preconditions; an Event is written before a
//! lock is broken.

mod abort;
mod caller;
mod check;
mod healer;
mod hold;
mod hosts;
mod installed;
mod node_contents;
mod node_names;
mod node_reboots;
mod pause;
mod read;
mod remediation_mark;
mod remediations;
mod request;
mod schedules;
mod unlock;
mod watch;

pub use abort::{AbortOutcome, NodeWatch};
pub use caller::AdmissionFindings;
pub use hold::HoldWithdrawal;
pub use hosts::{
    FleetHostsWatch, HostChange, HostChangeOutcome, HostFound, HostsFound, NodesByHost,
};
pub use installed::{ClusterInstallation, DogwatchWorkload, WorkloadContainer};
pub use node_reboots::{FleetNodeRebootsWatch, NodeRebootFound, NodeRebootsFound};
pub use pause::PauseChange;
pub(crate) use read::lease_row;
pub use remediations::{RemediationsFound, remediations_of_watches};
pub use request::RebootRequestOutcome;
pub use schedules::{FleetSchedulesWatch, ScheduleFound, SchedulesFound};
pub use watch::FleetWatch;

use std::time::Duration;

use kube::Client;

use crate::informer::KindRecheck;

/// How often a long watch looks for a kind that need not be installed, or that the caller may not
/// read.
const OPTIONAL_KIND_RECHECK: KindRecheck = KindRecheck::After {
    not_installed: Duration::from_mins(5),
    forbidden: Some(Duration::from_mins(1)),
};

/// API client of a person's command.
#[derive(Clone)]
pub struct FleetClient {
    client: Client,
    namespace: String,
}

impl FleetClient {
    /// `namespace`: where Dogwatch runs.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self {
            client,
            namespace: namespace.into(),
        }
    }
}
