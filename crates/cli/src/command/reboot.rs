//! `dogwatch reboot`.

use std::io::Write as _;

use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Request;
use dogwatch_k8s::fleet::Requested;
use jiff::Timestamp;

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::printable;

/// Which nodes, and why.
#[derive(Debug, clap::Args)]
pub struct RebootArgs {
    /// The nodes (NAME or node/NAME). Each waits for its turn; none is drained before it
    #[arg(required = true, value_name = "NODE", value_parser = super::explain::node)]
    nodes: Vec<NodeName>,

    /// Why; shown wherever the reboot is
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// Who asks; the name of the user at this machine where it is not given
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Not before this time (RFC 3339), or this long from now (2h)
    #[arg(long, value_name = "TIME|DURATION", value_parser = moment)]
    not_before: Option<Timestamp>,

    /// Replaces another request that a node carries already
    #[arg(long)]
    replace: bool,
}

/// Writes the requests, each on its own; the first trouble gives the exit code.
pub async fn run(cluster: &Cluster, args: &RebootArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    let request = Request {
        reason: args.reason.clone(),
        requester: args.requester.clone().unwrap_or_else(user),
        not_before: args.not_before,
    };
    let mut failures = Vec::new();
    for node in &args.nodes {
        match ask(&connected, node, &request, args.replace).await {
            Ok(said) => {
                let mut out = output::stdout();
                writeln!(out, "node/{node} {said}")?;
                out.flush()?;
            }
            Err(failure) => failures.push(failure),
        }
    }
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else {
        return Ok(());
    };
    for failure in failures {
        // Only the first one's code can be the program's.
        let _ = failure.report();
    }
    Err(first)
}

async fn ask(
    connected: &Connected,
    node: &NodeName,
    request: &Request,
    replace: bool,
) -> Result<&'static str, Failure> {
    let asked = connected
        .fleet
        .request_reboot(node, request, replace)
        .await
        .map_err(|error| connected.failed(&format!("ask node {node} to reboot"), &error))?;
    match asked {
        Requested::Written => Ok("is asked to reboot"),
        Requested::Same => Ok("was asked to reboot already, in the same words"),
        Requested::Other { text } => Err(Failure::new(
            Exit::Failed,
            format!(
                "node {node} carries another request already: {}",
                printable(&text)
            ),
        )
        .next(format!(
            "leave it, or replace it: dogwatch reboot {node} --replace"
        ))),
        Requested::NoSuchNode => Err(Failure::new(
            Exit::NotFound,
            format!("there is no Node {node} in this cluster"),
        )
        .next("`dogwatch status` lists them")),
    }
}

fn user() -> String {
    ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".into())
}

/// A moment, to the second; a duration counts from now.
fn moment(text: &str) -> Result<Timestamp, String> {
    let time = match dogwatch_core::duration::parse(text) {
        Ok(ahead) => now().plus(ahead),
        Err(_) => text.parse::<Timestamp>().map_err(|_| {
            "write a time like 2026-11-21T22:00:00Z, or a duration like 2h".to_owned()
        })?,
    };
    Timestamp::from_second(time.as_second()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_a_duration_from_now() {
        assert_eq!(
            moment("2026-11-21T22:00:00+01:00").unwrap().to_string(),
            "2026-11-21T21:00:00Z"
        );
        let ahead = moment("2h")
            .unwrap()
            .duration_since(Timestamp::now())
            .as_secs();
        assert!((7_195..=7_200).contains(&ahead), "{ahead}");
        assert!(
            moment("tomorrow")
                .unwrap_err()
                .contains("write a time like")
        );
    }
}
