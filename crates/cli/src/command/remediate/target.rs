//! Resolves a command's argument to the Machine or Node to mark.

use std::fmt;

use dogwatch_core::explain::RemediationReportInput;
use dogwatch_core::name::NodeName;
use dogwatch_core::remediation::{MachineName, ObjectName};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::resource::{ObjectKind, ResourceArg, object_not_found};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkTarget {
    Node(NodeName),
    Machine(MachineName),
}

/// The remediator's spelling of the subject.
impl fmt::Display for MarkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MarkTarget::Node(name) => write!(f, "node/{name}"),
            MarkTarget::Machine(name) => write!(f, "machine/{}", name.object),
        }
    }
}

pub fn parse_target(text: &str) -> Result<ResourceArg, String> {
    if let Some((ObjectKind::Remediation, _)) = ObjectKind::split_prefix(text) {
        let said = "a PowerRemediation is itself a request; write NODE or machine/NAMESPACE/NAME";
        return Err(said.to_owned());
    }
    ResourceArg::parse_argument(text, &[ObjectKind::Machine])
}

/// The object to mark: for a Node with a Machine, it is the Machine.
pub async fn find_target(
    cluster: &ClusterArgs,
    connected: &ConnectedCluster,
    named: &ResourceArg,
    view: &RemediationReportInput,
) -> Result<MarkTarget, CommandFailure> {
    match named {
        ResourceArg::Node(node) if view.snapshot.nodes.contains_key(node) => {
            Ok(target_of_node(view, node))
        }
        ResourceArg::Node(node) => Err(connected.no_such_node(node).await),
        ResourceArg::Object(machine) => {
            let name = machine.resolve_name(cluster, connected, ObjectName::new);
            match target_of_machine(view, &name)? {
                Some(target) => Ok(target),
                None => Err(object_not_found(connected, machine.kind, &name.to_string()).await),
            }
        }
    }
}

fn target_of_node(view: &RemediationReportInput, node: &NodeName) -> MarkTarget {
    let machines = view.snapshot.machines.values();
    let mut its = machines.filter(|it| it.node.as_deref() == Some(node.as_str()));
    match its.next() {
        Some(machine) => MarkTarget::Machine(machine.name.clone()),
        None => MarkTarget::Node(node.clone()),
    }
}

fn target_of_machine(
    view: &RemediationReportInput,
    name: &ObjectName,
) -> Result<Option<MarkTarget>, CommandFailure> {
    let machines = view.snapshot.machines.keys();
    let mut found = machines.filter(|machine| machine.object == *name);
    match (found.next(), found.next()) {
        (Some(machine), None) => Ok(Some(MarkTarget::Machine(machine.clone()))),
        (Some(_), Some(_)) => {
            let text =
                format!("there are two Machines {name}, one of OpenShift and one of Cluster API");
            Err(CommandFailure::new(CliExitCode::Failed, text)
                .with_next_step("give the name of the node instead"))
        }
        (None, _) => Ok(None),
    }
}
