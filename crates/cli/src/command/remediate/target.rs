//! Resolves a command's argument to the Machine or Node to mark.

use std::fmt;

use dogwatch_core::explain::{RemediationReportInput, join_first_names, machines_of_node};
use dogwatch_core::name::NodeName;
use dogwatch_core::printable::printable_text;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{MachineName, ObjectName, ObservedMachine};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::resource::{ObjectKind, ResourceArg, object_not_found};

const MAX_NAMED_MACHINES: usize = 5;

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
        ResourceArg::Node(name) => match view.snapshot.nodes.get(name) {
            Some(node) => target_of_node(view, node),
            None => Err(connected.no_such_node(name).await),
        },
        ResourceArg::Object(machine) => {
            let name = machine.resolve_name(cluster, connected, ObjectName::new);
            match target_of_machine(view, &name)? {
                Some(target) => Ok(target),
                None => Err(object_not_found(connected, machine.kind, &name.to_string()).await),
            }
        }
    }
}

fn target_of_node(
    view: &RemediationReportInput,
    node: &ObservedNode,
) -> Result<MarkTarget, CommandFailure> {
    let machines = machines_of_node(view, node);
    match (&machines.possible[..], &machines.of_others[..]) {
        ([machine], _) => Ok(MarkTarget::Machine(machine.name.clone())),
        ([], []) => Ok(MarkTarget::Node(node.name.clone())),
        ([], others) => Err(refuse_machines(
            node,
            others,
            "another spec.providerID than the Node",
        )),
        (several, _) => Err(refuse_machines(node, several, "a Node of this name")),
    }
}

/// Which host is powered off depends on the Machine, so the person has to say which one is meant.
fn refuse_machines(
    node: &ObservedNode,
    machines: &[&ObservedMachine],
    what: &str,
) -> CommandFailure {
    let named = |machine: &&ObservedMachine| format!("machine/{}", machine.name);
    let named: Vec<String> = machines.iter().map(named).collect();
    let have = if named.len() == 1 { "has" } else { "have" };
    let text = format!(
        "it is not known which Machine node {} belongs to, so nothing was done: {} {have} {what}",
        node.name,
        join_first_names(&named, MAX_NAMED_MACHINES)
    );
    CommandFailure::new(CliExitCode::Failed, printable_text(&text))
        .with_next_step("look at each of them: dogwatch explain machine/NAMESPACE/NAME; then mark the right object with kubectl annotate: docs/remediation.md, \"By hand\"")
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
