//! Who is told what the coordinator decides and writes: metrics, a timeline, a decision log.

use dogwatch_core::lock::ObservedLease;
use dogwatch_core::reboot::{LastReboot, ObservedNode, RebootDecision, RebootSnapshot};

pub trait DecisionSink: Send + Sync {
    /// Called after each decision, with the snapshot it was made from.
    fn on_decision(&self, seen: &RebootSnapshot, decision: &RebootDecision);

    /// Called after a failed call to the API server.
    fn on_api_error(&self, _error: &dogwatch_k8s::Error) {}

    /// Called when a planned reboot has ended.
    fn on_reboot_finished(&self, _last: &LastReboot) {}

    /// Called after the API server has accepted a patch of the Node.
    fn on_node_written(&self, _before: &ObservedNode, _after: &ObservedNode) {}

    /// Called after the API server has accepted a write of a Lease.
    fn on_lease_written(&self, _before: &ObservedLease, _after: &ObservedLease) {}

    /// Called just before the reboot command is started.
    fn on_command_starting(&self, _seen: &RebootSnapshot, _attempt: u32) {}
}
