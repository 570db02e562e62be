//! `dogwatch explain`.

mod host;
mod remedy;
mod schedule;

use std::io::{self, Write};

use dogwatch_core::explain::{self, CoordinatorSeen, Explanation, Line, RemedyExplanation, View};
use dogwatch_core::name::NodeName;
use serde::Serialize;

use super::hosts::{Named, is_host, named};
use super::remedies::{self, is_remedy};
use super::schedules::{self, is_schedule};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::output::{self, Format, Output};
use crate::paint::{Colour, Paint};
use crate::table::printable;

/// What to explain.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// node/NAME, NAME, host/NAMESPACE/NAME, machine/NAMESPACE/NAME, remediation/NAMESPACE/NAME,
    /// schedule/NAMESPACE/NAME; all but nodes without NAMESPACE/ where -n names it
    #[arg(
        value_name = "node/NAME|KIND/NAMESPACE/NAME",
        value_parser = subject
    )]
    subject: Subject,

    /// How it is printed
    #[command(flatten)]
    output: Output,
}

/// What is explained.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Node(NodeName),
    Host(Named),
    Remedy(remedies::Named),
    Schedule(schedules::Named),
}

/// All but nodes are named by their kind; what has none is a node.
fn subject(text: &str) -> Result<Subject, String> {
    if is_host(text) {
        return named(text).map(Subject::Host);
    }
    if is_remedy(text) {
        return remedies::named(text).map(Subject::Remedy);
    }
    if is_schedule(text) {
        return schedules::named(text).map(Subject::Schedule);
    }
    match node(text) {
        Err(_) if text.contains('/') && !text.starts_with("no") => Err(format!(
            "{text:?} is not known here: write node/NAME, or KIND/NAMESPACE/NAME of a host, machine, remediation or schedule"
        )),
        node => node.map(Subject::Node),
    }
}

/// `node/NAME`, or the name alone.
pub fn node(text: &str) -> Result<NodeName, String> {
    let name = match text.split_once('/') {
        None => text,
        Some(("node" | "nodes" | "no", name)) => name,
        Some((kind, _)) => return Err(format!("{kind:?} is not known here: write node/NAME")),
    };
    NodeName::new(name).map_err(|error| error.to_string())
}

/// Reads, explains, prints.
pub async fn run(cluster: &Cluster, args: &ExplainArgs) -> Result<(), Failure> {
    let node = match &args.subject {
        Subject::Host(host) => return host::run(cluster, host, args.output.format).await,
        Subject::Remedy(named) => return remedy::run(cluster, named, args.output.format).await,
        Subject::Schedule(named) => return schedule::run(cluster, named, args.output.format).await,
        Subject::Node(node) => node,
    };
    let connected = Connected::to(cluster).await?;
    let view = look(&connected, node).await?;
    let planned = explain::explain(&view, now());
    let remediations = remedy::of_node(&connected, node).await;
    let planned = planned.map(|planned| planned.beside(&remediations));
    if planned.is_none() && remediations.is_empty() {
        return Err(connected.no_such_node(node).await);
    }
    print_node(
        &OfNode {
            planned,
            remediations,
        },
        args.output.format,
    )
}

/// Planned and forced work on a node. In the middle of a remediation there is no Node.
#[derive(Serialize)]
struct OfNode {
    #[serde(flatten)]
    planned: Option<Explanation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remediations: Vec<RemedyExplanation>,
}

fn print_node(whole: &OfNode, format: Format) -> Result<(), Failure> {
    let planned = whole.planned.iter().map(|it| Told {
        summary: &it.summary,
        chain: &it.chain,
        advice: &it.advice,
    });
    let (under_way, others): (Vec<_>, Vec<_>) =
        whole.remediations.iter().partition(|it| it.under_way);
    let first = under_way.into_iter().map(Told::of_remedy);
    let last = others.into_iter().map(Told::of_remedy);
    let told: Vec<Told<'_>> = first.chain(planned).chain(last).collect();
    print_all(whole, &told, format)
}

/// What each kind of explanation has.
struct Told<'a> {
    summary: &'a str,
    chain: &'a [Line],
    advice: &'a [String],
}

impl<'a> Told<'a> {
    fn of_remedy(it: &'a RemedyExplanation) -> Self {
        Self {
            summary: &it.summary,
            chain: &it.chain,
            advice: &it.advice,
        }
    }
}

fn print(whole: &impl Serialize, told: &Told<'_>, format: Format) -> Result<(), Failure> {
    print_all(whole, std::slice::from_ref(told), format)
}

/// Several, with an empty line between two.
fn print_all(whole: &impl Serialize, all: &[Told<'_>], format: Format) -> Result<(), Failure> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, whole)?,
        Format::Yaml => output::yaml(&mut out, whole)?,
        Format::Table | Format::Wide => {
            for (index, told) in all.iter().enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                write(&mut out, told, Paint::of_stdout())?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Nodes and Leases must be readable; what else is missing is said and left out.
async fn look(connected: &Connected, node: &NodeName) -> Result<View, Failure> {
    let fleet = connected
        .fleet
        .read()
        .await
        .map_err(|error| connected.failed("list Nodes and Leases", &error))?;
    let on_node = connected.fleet.on_node(node).await;
    let coordinator = connected.fleet.coordinator(node).await;
    let healer = connected.fleet.healer().await;
    Ok(View {
        node: node.clone(),
        fleet,
        on_node: on_node
            .map_err(|error| without("the node's pods", &error))
            .ok(),
        coordinator: coordinator
            .map_err(|error| without("the node's coordinator", &error))
            .unwrap_or(CoordinatorSeen::Unknown),
        healer: healer.map_err(|error| without("the healer", &error)).ok(),
    })
}

fn without(what: &str, error: &dogwatch_k8s::Error) {
    eprintln!("dogwatch: explained without {what}: {}", error.in_words());
}

fn write(out: &mut impl Write, told: &Told<'_>, paint: Paint) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        paint.paint(Colour::Bold, &printable(told.summary))
    )?;
    let topics = told.chain.iter().map(|line| line.topic.as_str());
    let width = topics.map(str::len).max().unwrap_or(0);
    let mut before = "";
    for line in told.chain {
        // The same topic again needs no second name.
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
            paint.paint(Colour::Cyan, &padded),
            printable(&line.text)
        )?;
    }
    if !told.advice.is_empty() {
        writeln!(out, "{}", paint.paint(Colour::Bold, "what you can do"))?;
    }
    for advice in told.advice {
        writeln!(out, "  → {}", printable(advice))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::Topic;

    #[test]
    fn a_node_is_named_with_or_without_its_kind() {
        for text in ["n1", "node/n1", "nodes/n1", "no/n1"] {
            assert_eq!(node(text).unwrap().as_str(), "n1", "{text}");
        }
        assert!(node("node/").is_err());
    }

    #[test]
    fn what_is_explained_is_a_node_unless_its_kind_says_host() {
        let host = named("metal/h1").unwrap();
        for text in ["host/metal/h1", "bmh/metal/h1", "baremetalhost/metal/h1"] {
            assert_eq!(subject(text), Ok(Subject::Host(host.clone())), "{text}");
        }
        let alone = Ok(Subject::Host(named("h1").unwrap()));
        assert_eq!(subject("host/h1"), alone);
        let node = Ok(Subject::Node(NodeName::new("h1").unwrap()));
        assert_eq!((subject("h1"), subject("node/h1")), (node.clone(), node));
        for text in ["pod/a", "metal/h1", "host/a/b/c"] {
            let said = subject(text).unwrap_err();
            assert!(said.contains("NAMESPACE/NAME"), "{said}");
        }
    }

    #[test]
    fn the_defaults_that_an_explanation_names_are_the_coordinators() {
        use clap::Parser as _;
        let words = ["dogwatch-coordinator", "--node-name", "n1"];
        let args = dogwatch_coordinator::args::Args::try_parse_from(words).unwrap();
        assert_eq!(args.drain_timeout, explain::DRAIN_TIMEOUT);
        assert_eq!(args.reboot_timeout, explain::REBOOT_TIMEOUT);
        assert_eq!(args.reboot_attempts, 2);
    }

    #[test]
    fn an_explanation_is_a_list_of_topics_and_then_of_advice() {
        let line = |topic, text: &str| Line {
            topic,
            text: text.into(),
        };
        let chain = [
            line(Topic::Asked, "request by ann"),
            line(Topic::Lock, "dogwatch-default-0 is held"),
            line(Topic::Lock, "dogwatch-default-1 is held"),
        ];
        let told = Told {
            summary: "n1: waiting for 3m: LockHeldByOther",
            chain: &chain,
            advice: &["wait\u{7}".into()],
        };
        let mut out = Vec::new();
        write(&mut out, &told, Paint::off()).unwrap();
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
