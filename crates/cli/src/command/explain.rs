//! `dogwatch explain`.

use std::io::{self, Write};

use dogwatch_core::explain::{self, CoordinatorSeen, Explanation, View};
use dogwatch_core::name::NodeName;

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::{Colour, Paint};
use crate::table::printable;

/// What to explain.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// node/NAME, or NAME
    #[arg(value_name = "node/NAME", value_parser = node)]
    node: NodeName,

    /// How it is printed
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Format,
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
    let connected = Connected::to(cluster).await?;
    let view = look(&connected, &args.node).await?;
    let Some(explanation) = explain::explain(&view, now()) else {
        return Err(connected.no_such_node(&args.node).await);
    };
    let mut out = output::stdout();
    match args.output {
        Format::Json => output::json(&mut out, &explanation)?,
        Format::Yaml => output::yaml(&mut out, &explanation)?,
        Format::Table | Format::Wide => write(&mut out, &explanation, Paint::of_stdout())?,
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
    Ok(View {
        node: node.clone(),
        fleet,
        on_node: on_node
            .map_err(|error| without("the node's pods", &error))
            .ok(),
        coordinator: coordinator
            .map_err(|error| without("the node's coordinator", &error))
            .unwrap_or(CoordinatorSeen::Unknown),
    })
}

fn without(what: &str, error: &dogwatch_k8s::Error) {
    eprintln!("dogwatch: explained without {what}: {}", error.in_words());
}

fn write(out: &mut impl Write, explanation: &Explanation, paint: Paint) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        paint.paint(Colour::Bold, &printable(&explanation.summary))
    )?;
    let topics = explanation.chain.iter().map(|line| line.topic.as_str());
    let width = topics.map(str::len).max().unwrap_or(0);
    let mut before = "";
    for line in &explanation.chain {
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
    if !explanation.advice.is_empty() {
        writeln!(out, "{}", paint.paint(Colour::Bold, "what you can do"))?;
    }
    for advice in &explanation.advice {
        writeln!(out, "  → {}", printable(advice))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::{Line, Topic};

    #[test]
    fn a_node_is_named_with_or_without_its_kind() {
        for text in ["n1", "node/n1", "nodes/n1", "no/n1"] {
            assert_eq!(node(text).unwrap().as_str(), "n1", "{text}");
        }
        assert!(
            node("host/metal/h1")
                .unwrap_err()
                .contains("write node/NAME")
        );
        assert!(node("node/").is_err());
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
        let explanation = Explanation {
            node: "n1".into(),
            summary: "n1: waiting for 3m: LockHeldByOther".into(),
            chain: vec![
                line(Topic::Asked, "request by ann"),
                line(Topic::Lock, "dogwatch-default-0 is held"),
                line(Topic::Lock, "dogwatch-default-1 is held"),
            ],
            advice: vec!["wait\u{7}".into()],
        };
        let mut out = Vec::new();
        write(&mut out, &explanation, Paint::off()).unwrap();
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
