//! Finds the Machines of a Node by name and `spec.providerID`.

use super::RemediationReportInput;
use crate::reboot::ObservedNode;
use crate::remediation::{MachineApi, ObservedMachine, ids_contradict};

/// The Machines whose `status.nodeRef` has a Node's name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeMachines<'a> {
    /// Each may be the Node's Machine. More than one: all but one have their Nodes in other
    /// clusters, and the provider ids do not say which.
    pub possible: Vec<&'a ObservedMachine>,
    /// By their provider ids they are other machines.
    pub of_others: Vec<&'a ObservedMachine>,
}

pub fn machines_of_node<'a>(
    view: &'a RemediationReportInput,
    node: &ObservedNode,
) -> NodeMachines<'a> {
    let machines = view.snapshot.machines.values().map(AsRef::as_ref);
    let named = machines.filter(|it| it.node.as_deref() == Some(node.name.as_str()));
    let (of_others, possible) = named.partition(|machine| is_of_another_node(machine, node));
    NodeMachines {
        possible,
        of_others,
    }
}

/// Cluster API sets `status.nodeRef` only to a Node with the Machine's provider id.
fn is_of_another_node(machine: &ObservedMachine, node: &ObservedNode) -> bool {
    match (&machine.provider_id, &node.provider_id) {
        (Some(its), Some(nodes)) => ids_contradict(its, nodes),
        (Some(_), None) => machine.name.api == MachineApi::ClusterApi,
        (None, _) => false,
    }
}
