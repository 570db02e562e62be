//! Implements `dogwatch explain`.

mod host;
mod remediation;
mod schedule;

use std::io::{self, Write};

use dogwatch_core::explain::{
    self, ExplanationLine, NodeExplanation, NodeReportInput, ObservedCoordinator,
    RemediationExplanation,
};
use dogwatch_core::name::NodeName;
use serde::Serialize;

use super::hosts::{HostArg, is_host_arg, parse_host_arg};
use super::remediations::{self, is_remediation_arg};
use super::schedules::{self, is_schedule_arg};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::output::{self, OutputArgs, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use crate::table::to_printable;

#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// Subject: node/NAME, NAME, host/NAMESPACE/NAME, machine/NAMESPACE/NAME,
    /// remediation/NAMESPACE/NAME or schedule/NAMESPACE/NAME; with -n, NAMESPACE/ may be left out
    #[arg(
        value_name = "node/NAME|KIND/NAMESPACE/NAME",
        value_parser = parse_subject
    )]
    subject: ExplainSubject,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ExplainSubject {
    Node(NodeName),
    Host(HostArg),
    Remedy(remediations::RemediationArg),
    Schedule(schedules::ScheduleArg),
}

/// A name without a kind is a node's.
fn parse_subject(text: &str) -> Result<ExplainSubject, String> {
    if is_host_arg(text) {
        return parse_host_arg(text).map(ExplainSubject::Host);
    }
    if is_remediation_arg(text) {
        return remediations::parse_remediation_arg(text).map(ExplainSubject::Remedy);
    }
    if is_schedule_arg(text) {
        return schedules::parse_schedule_arg(text).map(ExplainSubject::Schedule);
    }
    match parse_node(text) {
        Err(_) if text.contains('/') && !text.starts_with("no") => Err(format!(
            "{text:?} names no object that `explain` knows: write node/NAME, or KIND/NAMESPACE/NAME of a host, machine, remediation or schedule"
        )),
        node => node.map(ExplainSubject::Node),
    }
}

/// Accepts `node/NAME` or the bare name.
pub fn parse_node(text: &str) -> Result<NodeName, String> {
    let name = match text.split_once('/') {
        None => text,
        Some(("node" | "nodes" | "no", name)) => name,
        Some((kind, _)) => return Err(format!("{kind:?} is not a node: write node/NAME")),
    };
    NodeName::new(name).map_err(|error| error.to_string())
}

pub async fn run(cluster: &ClusterArgs, args: &ExplainArgs) -> Result<(), CommandFailure> {
    let node = match &args.subject {
        ExplainSubject::Host(host) => return host::run(cluster, host, args.output.format).await,
        ExplainSubject::Remedy(named) => {
            return remediation::run(cluster, named, args.output.format).await;
        }
        ExplainSubject::Schedule(named) => {
            return schedule::run(cluster, named, args.output.format).await;
        }
        ExplainSubject::Node(node) => node,
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
    let mut out = output::buffered_stdout();
    match format {
        OutputFormat::Json => output::write_json(&mut out, whole)?,
        OutputFormat::Yaml => output::write_yaml(&mut out, whole)?,
        OutputFormat::Table | OutputFormat::Wide => {
            for (index, told) in all.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                write_explanation(&mut out, told, TerminalPaint::of_stdout())?;
            }
        }
    }
    Ok(out.flush()?)
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
    let on_node = connected.fleet.read_node_contents(node).await;
    let coordinator = connected.fleet.read_coordinator(node).await;
    let healer = connected.fleet.read_healer().await;
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
    })
}

fn warn_left_out(what: &str, error: &dogwatch_k8s::Error) {
    eprintln!(
        "dogwatch: the explanation leaves out {what}: {}",
        error.error_chain()
    );
}

fn write_explanation(
    out: &mut impl Write,
    told: &ExplanationText<'_>,
    paint: TerminalPaint,
) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        paint.paint_text(TerminalColour::Bold, &to_printable(told.summary))
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
            to_printable(&line.text)
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
        writeln!(out, "  → {}", to_printable(advice))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::ExplanationTopic;

    #[test]
    fn a_node_is_named_with_or_without_its_kind() {
        for text in ["n1", "node/n1", "nodes/n1", "no/n1"] {
            assert_eq!(parse_node(text).unwrap().as_str(), "n1", "{text}");
        }
        assert!(parse_node("node/").is_err());
    }

    #[test]
    fn what_is_explained_is_a_node_unless_its_kind_says_host() {
        let host = parse_host_arg("metal/h1").unwrap();
        for text in ["host/metal/h1", "bmh/metal/h1", "baremetalhost/metal/h1"] {
            assert_eq!(
                parse_subject(text),
                Ok(ExplainSubject::Host(host.clone())),
                "{text}"
            );
        }
        let alone = Ok(ExplainSubject::Host(parse_host_arg("h1").unwrap()));
        assert_eq!(parse_subject("host/h1"), alone);
        let node = Ok(ExplainSubject::Node(NodeName::new("h1").unwrap()));
        assert_eq!(
            (parse_subject("h1"), parse_subject("node/h1")),
            (node.clone(), node)
        );
        for text in ["pod/a", "metal/h1", "host/a/b/c"] {
            let said = parse_subject(text).unwrap_err();
            assert!(said.contains("NAMESPACE/NAME"), "{said}");
        }
    }

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
