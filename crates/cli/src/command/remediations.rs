//! Reads the remediations of the cluster.

mod follow;

use dogwatch_core::explain::RemediationReportInput;
use dogwatch_k8s::fleet::RemediationsFound;

use crate::cluster::ConnectedCluster;
use crate::exit::CommandFailure;
use crate::resource::{ObjectKind, kind_missing};
pub use follow::WatchedRemediations;

/// Reads everything that explanations of remediations need.
pub async fn read_remediations(
    connected: &ConnectedCluster,
) -> Result<RemediationReportInput, CommandFailure> {
    const LIST_ACTION: &str = "list Machines, hosts, Nodes and PowerRemediations";
    match connected.fleet.read_remediations().await {
        Ok(RemediationsFound::There(view)) => Ok(*view),
        Ok(RemediationsFound::NoKind) => Err(kind_missing(ObjectKind::Remediation)),
        Err(error) => Err(connected.api_failure(LIST_ACTION, &error)),
    }
}
