//! Resolves a command's argument to the Machine or Node to mark.

use std::fmt;

use dogwatch_core::explain::RemediationReportInput;
use dogwatch_core::name::NodeName;
use dogwatch_core::remediation::{MachineName, ObjectName};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::command::explain;
use crate::command::remediations::{self, RemediationArgKind};
use crate::exit::{CliExitCode, CommandFailure};
use dogwatch_core::name_suggestions::suggest_names;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemediateTargetArg {
    Node(NodeName),
    Machine(remediations::RemediationArg),
}

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

pub fn parse_target_arg(text: &str) -> Result<RemediateTargetArg, String> {
    if !remediations::is_remediation_arg(text) {
        return explain::parse_node(text)
            .map(RemediateTargetArg::Node)
            .map_err(|error| format!("{error}; write NODE, node/NODE or machine/NAMESPACE/NAME"));
    }
    let named = remediations::parse_remediation_arg(text)?;
    match named.kind {
        RemediationArgKind::Machine => Ok(RemediateTargetArg::Machine(named)),
        RemediationArgKind::Request => Err(
            "a PowerRemediation is itself a request; write NODE or machine/NAMESPACE/NAME"
                .to_owned(),
        ),
    }
}

impl RemediateTargetArg {
    /// The object to mark: for a Node with a Machine, it is the Machine.
    pub fn find_target(
        &self,
        cluster: &ClusterArgs,
        connected: &ConnectedCluster,
        view: &RemediationReportInput,
    ) -> Result<MarkTarget, CommandFailure> {
        match self {
            RemediateTargetArg::Node(node) => target_of_node(view, node),
            RemediateTargetArg::Machine(named) => {
                target_of_machine(view, &named.resolve_name(cluster, connected))
            }
        }
    }
}

fn target_of_node(
    view: &RemediationReportInput,
    node: &NodeName,
) -> Result<MarkTarget, CommandFailure> {
    if !view.snapshot.nodes.contains_key(node) {
        let failure = CommandFailure::new(
            CliExitCode::NotFound,
            format!("there is no Node {node} in this cluster"),
        );
        let names = view.snapshot.nodes.keys().map(NodeName::as_str);
        let near = suggest_names(node.as_str(), names);
        return Err(if near.is_empty() {
            failure.with_next_step("`dogwatch status` lists them")
        } else {
            failure.with_next_step(format!("did you mean {}?", near.join(" or ")))
        });
    }
    let machines = view.snapshot.machines.values();
    let mut its = machines.filter(|it| it.node.as_deref() == Some(node.as_str()));
    Ok(match its.next() {
        Some(machine) => MarkTarget::Machine(machine.name.clone()),
        None => MarkTarget::Node(node.clone()),
    })
}

fn target_of_machine(
    view: &RemediationReportInput,
    name: &ObjectName,
) -> Result<MarkTarget, CommandFailure> {
    let machines = view.snapshot.machines.keys();
    let mut found = machines.filter(|machine| machine.object == *name);
    match (found.next(), found.next()) {
        (Some(machine), None) => Ok(MarkTarget::Machine(machine.clone())),
        (Some(_), Some(_)) => {
            let text =
                format!("there are two Machines {name}, one of OpenShift and one of Cluster API");
            Err(CommandFailure::new(CliExitCode::Failed, text)
                .with_next_step("give the name of the node instead"))
        }
        (None, _) => Err(remediations::not_found_failure(
            view,
            RemediationArgKind::Machine,
            name,
        )),
    }
}
