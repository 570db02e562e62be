//! `dogwatch reboot`.

mod follow;

use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Request;
use dogwatch_k8s::fleet::Requested;
use jiff::Timestamp;

use super::nodes::Which;
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output::say;
use crate::person;
use crate::table::printable;

/// Which nodes, and why.
#[derive(Debug, clap::Args)]
pub struct RebootArgs {
    #[command(flatten)]
    which: Which,

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

    /// Follows the nodes until each has been rebooted and is back
    #[arg(long)]
    wait: bool,

    /// How long to follow them; for ever where it is not given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "wait")]
    timeout: Option<Duration>,

    /// Does not ask (--all)
    #[arg(long, short)]
    yes: bool,
}

/// Writes the requests, each on its own; the first trouble gives the exit code.
pub async fn run(cluster: &Cluster, args: &RebootArgs) -> Result<(), Failure> {
    args.which.chosen()?;
    let connected = Connected::to(cluster).await?;
    let request = Request {
        reason: args.reason.clone(),
        requester: args.requester.clone().unwrap_or_else(person::name),
        not_before: args.not_before,
    };
    let nodes = args.which.names(&connected).await?;
    if args.which.all {
        let question = format!("Reboot all {} nodes, each in its turn?", nodes.len());
        person::confirm(&question, args.yes)?;
    }
    // Before anything is asked: what was served before is told from what is served now.
    let mut following = None;
    if args.wait {
        following = Some(follow::Following::begin(&connected).await?);
    }
    let mut failures = Vec::new();
    let mut asked = Vec::new();
    for node in &nodes {
        match ask(&connected, node, &request, args.replace).await {
            Ok(said) => {
                say(&format!("node/{node} {said}"))?;
                asked.push(node.clone());
            }
            Err(failure) => failures.push(failure),
        }
    }
    if let Some(node) = asked.first() {
        let is_for_later = args.not_before.is_some_and(|at| at > now().wall);
        connected.warn_if_unanswered(node, is_for_later).await;
    }
    if let Some(following) = &mut following
        && !asked.is_empty()
    {
        let followed = following
            .follow_until_the_end(&connected, &asked, args.timeout)
            .await;
        failures.extend(followed.err());
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
        Requested::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

/// A moment, to the second; a duration counts from now.
pub fn moment(text: &str) -> Result<Timestamp, String> {
    let time = match duration::parse(text) {
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
