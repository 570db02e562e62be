//! Implements `dogwatch explain`.

mod host;
mod node_reboot;
mod remediation;
mod schedule;

use std::io::{self, Write};

use dogwatch_core::explain::{
    self, ExplainRemediationTarget, ExplanationLine, NodeExplanation, NodeReportInput,
    ObservedCoordinator, RemediationExplanation,
};
use dogwatch_core::name::NodeName;
use serde::Serialize;

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::output::{self, OutputArgs, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use crate::resource::{ObjectArg, ObjectKind, ResourceArg, parse_node_reboot};
use dogwatch_core::printable::printable_text;

#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Subject: node/NAME, NAME, nodereboot/NAME, host/NAMESPACE/NAME, machine/NAMESPACE/NAME,
    /// remediation/NAMESPACE/NAME or schedule/NAMESPACE/NAME; with -n, NAMESPACE/ may be left out
    #[arg(
        value_name = "node/NAME|nodereboot/NAME|KIND/NAMESPACE/NAME",
        value_parser = parse_subject
    )]
    subject: ExplainSubject,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Clone)]
enum ExplainSubject {
    NodeReboot(String),
    Resource(ResourceArg),
}

fn parse_subject(text: &str) -> Result<ExplainSubject, String> {
    if let Some(name) = parse_node_reboot(text) {
        return name.map(ExplainSubject::NodeReboot);
    }
    ResourceArg::parse_argument(text, &ObjectKind::ALL).map(ExplainSubject::Resource)
}

pub async fn run(cluster: &ClusterArgs, args: &ExplainArgs) -> Result<(), CommandFailure> {
    let node = match &args.subject {
        ExplainSubject::Resource(ResourceArg::Node(node)) => node,
        ExplainSubject::Resource(ResourceArg::Object(named)) => {
            return explain_object(cluster, named, args).await;
        }
        ExplainSubject::NodeReboot(name) => {
            return node_reboot::run(cluster, name, args.output.format).await;
        }
    };
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let view = read_node_input(&connected, node).await?;
    let planned = explain::explain_node(&view, current_time());
    let remediations = remediation::explain_node_remediations(&connected, node).await;
    let planned = planned.map(|planned| planned.beside_remediations(&remediations));
    if planned.is_none() && remediations.is_empty() {
        return Err(connected.no_such_node(node).await);
    }
    print_node(
        &NodeExplanations {
            planned,
            remediations,
        },
        args.output.format,
    )
}

async fn explain_object(
    cluster: &ClusterArgs,
    named: &ObjectArg,
    args: &ExplainArgs,
) -> Result<(), CommandFailure> {
    let format = args.output.format;
    match named.kind {
        ObjectKind::Host => host::run(cluster, named, format).await,
        ObjectKind::Machine => {
            remediation::run(cluster, named, ExplainRemediationTarget::Machine, format).await
        }
        ObjectKind::Remediation => {
            remediation::run(cluster, named, ExplainRemediationTarget::Request, format).await
        }
        ObjectKind::Schedule => schedule::run(cluster, named, format).await,
    }
}

/// The planned reboot and the remediations of a node. During a remediation the Node may not exist.
#[derive(Serialize)]
struct NodeExplanations {
    #[serde(flatten)]
    planned: Option<NodeExplanation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remediations: Vec<RemediationExplanation>,
}

fn print_node(whole: &NodeExplanations, format: OutputFormat) -> Result<(), CommandFailure> {
    let planned = whole.planned.iter().map(|it| ExplanationText {
        summary: &it.summary,
        chain: &it.chain,
        advice: &it.advice,
    });
    let (under_way, others): (Vec<_>, Vec<_>) =
        whole.remediations.iter().partition(|it| it.under_way);
    let first = under_way.into_iter().map(ExplanationText::of_remediation);
    let last = others.into_iter().map(ExplanationText::of_remediation);
    let told: Vec<ExplanationText<'_>> = first.chain(planned).chain(last).collect();
    print_explanations(whole, &told, format)
}

/// The fields that every kind of explanation has.
struct ExplanationText<'a> {
    summary: &'a str,
    chain: &'a [ExplanationLine],
    advice: &'a [String],
}

impl<'a> ExplanationText<'a> {
    fn of_remediation(it: &'a RemediationExplanation) -> Self {
        Self {
            summary: &it.summary,
            chain: &it.chain,
            advice: &it.advice,
        }
    }
}

fn print_explanation(
    whole: &impl Serialize,
    told: &ExplanationText<'_>,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    print_explanations(whole, std::slice::from_ref(told), format)
}

/// Prints the explanations, separated by empty lines.
fn print_explanations(
    whole: &impl Serialize,
    all: &[ExplanationText<'_>],
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    output::print_document(format, whole, |out| {
        for (index, told) in all.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_explanation(out, told, TerminalPaint::of_stdout())?;
        }
        Ok(())
    })
}

/// Nodes and Leases must be readable; anything else that cannot be read is left out with a warning.
async fn read_node_input(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Result<NodeReportInput, CommandFailure> {
    let fleet = connected
        .fleet
        .read_fleet()
        .await
        .map_err(|error| connected.api_failure("list Nodes and Leases", &error))?;
    let rules = fleet.pod_rules_of(node);
    let on_node = connected.fleet.read_node_contents(node, &rules).await;
    let coordinator = connected.fleet.read_coordinator(node).await;
    let healer = connected.fleet.read_healer().await;
    let node_reboots = connected.fleet.list_node_reboots().await;
    let node_reboots = node_reboots.map(|found| found.open_of_node(node));
    Ok(NodeReportInput {
        node: node.clone(),
        fleet,
        node_pods: on_node
            .map_err(|error| warn_left_out("the node's pods", &error))
            .ok(),
        coordinator: coordinator
            .map_err(|error| warn_left_out("the node's coordinator", &error))
            .unwrap_or(ObservedCoordinator::Unknown),
        healer: healer
            .map_err(|error| warn_left_out("the healer", &error))
            .ok(),
        node_reboots: node_reboots
            .map_err(|error| warn_left_out("the NodeReboots", &error))
            .ok()
            .flatten()
            .unwrap_or_default(),
    })
}

fn warn_left_out(what: &str, error: &dogwatch_k8s::Error) {
    output::print_warning(&format!(
        "dogwatch: the explanation leaves out {what}: {}",
        error.error_chain()
    ));
}

fn write_explanation(
    out: &mut impl Write,
    told: &ExplanationText<'_>,
    paint: TerminalPaint,
) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        paint.paint_text(TerminalColour::Bold, &printable_text(told.summary))
    )?;
    let topics = told.chain.iter().map(|line| line.topic.as_str());
    let width = topics.map(str::len).max().unwrap_or(0);
    let mut before = "";
    for line in told.chain {
        // A repeated topic is not printed again.
        let topic = if line.topic.as_str() == before {
            ""
        } else {
            line.topic.as_str()
        };
        before = line.topic.as_str();
        let padded = format!("{topic:width$}");
        writeln!(
            out,
            "  {}  {}",
            paint.paint_text(TerminalColour::Cyan, &padded),
            printable_text(&line.text)
        )?;
    }
    if !told.advice.is_empty() {
        writeln!(
            out,
            "{}",
            paint.paint_text(TerminalColour::Bold, "what you can do")
        )?;
    }
    for advice in told.advice {
        writeln!(out, "  → {}", printable_text(advice))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::ExplanationTopic;

    #[test]
    fn the_defaults_that_an_explanation_names_are_the_coordinators() {
        use clap::Parser as _;
        let words = ["dogwatch-coordinator", "--node-name", "n1"];
        let args = dogwatch_coordinator::args::Args::try_parse_from(words).unwrap();
        assert_eq!(args.drain_timeout, explain::DEFAULT_DRAIN_TIMEOUT);
        assert_eq!(args.reboot_timeout, explain::DEFAULT_REBOOT_TIMEOUT);
        assert_eq!(args.reboot_attempts, 2);
    }

    #[test]
    fn an_explanation_is_a_list_of_topics_and_then_of_advice() {
        let line = |topic, text: &str| ExplanationLine {
            topic,
            text: text.into(),
        };
        let chain = [
            line(ExplanationTopic::Asked, "request by ann"),
            line(ExplanationTopic::Lock, "dogwatch-default-0 is held"),
            line(ExplanationTopic::Lock, "dogwatch-default-1 is held"),
        ];
        let told = ExplanationText {
            summary: "n1: waiting for 3m: LockHeldByOther",
            chain: &chain,
            advice: &["wait\u{7}".into()],
        };
        let mut out = Vec::new();
        write_explanation(&mut out, &told, TerminalPaint::without_colours()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "n1: waiting for 3m: LockHeldByOther\n  \
               asked  request by ann\n  \
               lock   dogwatch-default-0 is held\n         \
                      dogwatch-default-1 is held\n\
             what you can do\n  → wait \n"
        );
    }
}
