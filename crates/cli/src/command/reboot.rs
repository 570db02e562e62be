//! Implements `dogwatch reboot`.

mod follow;

use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::RebootRequest;
use dogwatch_k8s::fleet::RebootRequestOutcome;
use jiff::Timestamp;

use super::nodes::NodeSelectionArgs;
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
use crate::person;
use crate::table::to_printable;

#[derive(Debug, clap::Args)]
pub struct RebootArgs {
    #[command(flatten)]
    which: NodeSelectionArgs,

    /// Reason, shown wherever the reboot is shown
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,

    /// Name of the requester; defaults to the local user name
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Earliest start: a time (RFC 3339) or a duration from now (2h)
    #[arg(long, value_name = "TIME|DURATION", value_parser = parse_time_or_delay)]
    not_before: Option<Timestamp>,

    /// Replace another request that a node already carries
    #[arg(long)]
    replace: bool,

    /// Follow the nodes until each has been rebooted and is back
    #[arg(long)]
    wait: bool,

    /// How long to follow the nodes; without a limit unless given
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_duration, requires = "wait")]
    timeout: Option<Duration>,

    /// Do not ask for confirmation (--all)
    #[arg(long, short)]
    yes: bool,
}

/// Writes each request on its own; the first failure gives the exit code.
pub async fn run(cluster: &ClusterArgs, args: &RebootArgs) -> Result<(), CommandFailure> {
    args.which.require_selection()?;
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let request = RebootRequest {
        reason: args.reason.clone(),
        requester: args.requester.clone().unwrap_or_else(person::user_name),
        not_before: args.not_before,
        ..RebootRequest::default()
    };
    let nodes = args.which.list_node_names(&connected).await?;
    if args.which.all {
        let question = format!("Reboot all {} nodes, one after the other?", nodes.len());
        person::ask_confirmation(&question, args.yes)?;
    }
    // Watch before the first request, to tell earlier reboots from the requested ones.
    let mut following = None;
    if args.wait {
        following = Some(follow::RebootFollower::start_watching(&connected).await?);
    }
    let mut failures = Vec::new();
    let mut asked = Vec::new();
    for node in &nodes {
        match request_node_reboot(&connected, node, &request, args.replace).await {
            Ok(said) => {
                print_line(&format!("node/{node} {said}"))?;
                asked.push(node.clone());
            }
            Err(failure) => failures.push(failure),
        }
    }
    if let Some(node) = asked.first() {
        let is_for_later = args.not_before.is_some_and(|at| at > current_time().wall);
        connected.warn_if_unanswered(node, is_for_later).await;
    }
    if let Some(following) = following
        && !asked.is_empty()
    {
        let followed = following
            .follow_until_done(&connected, &asked, args.timeout)
            .await;
        failures.extend(followed.err());
    }
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else {
        return Ok(());
    };
    for failure in failures {
        // Only the first failure can give the exit code.
        let _ = failure.print_and_exit_code();
    }
    Err(first)
}

async fn request_node_reboot(
    connected: &ConnectedCluster,
    node: &NodeName,
    request: &RebootRequest,
    replace: bool,
) -> Result<&'static str, CommandFailure> {
    let asked = connected
        .fleet
        .request_reboot(node, request, replace)
        .await
        .map_err(|error| {
            connected.api_failure(&format!("request a reboot of node {node}"), &error)
        })?;
    match asked {
        RebootRequestOutcome::Written => Ok("was requested to reboot"),
        RebootRequestOutcome::Same => Ok("was already requested to reboot, with the same reason"),
        RebootRequestOutcome::Other { text } => Err(CommandFailure::new(
            CliExitCode::Failed,
            format!(
                "node {node} already has another reboot request: {}",
                to_printable(&text)
            ),
        )
        .with_next_step(format!(
            "keep that request, or replace it: dogwatch reboot {node} --replace"
        ))),
        RebootRequestOutcome::NoSuchNode => Err(connected.no_such_node(node).await),
    }
}

/// Parses a time, to the second; a duration counts from now.
pub fn parse_time_or_delay(text: &str) -> Result<Timestamp, String> {
    let time = match duration::parse_duration(text) {
        Ok(ahead) => current_time().wall_after(ahead),
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
            parse_time_or_delay("2026-11-21T22:00:00+01:00")
                .unwrap()
                .to_string(),
            "2026-11-21T21:00:00Z"
        );
        let ahead = parse_time_or_delay("2h")
            .unwrap()
            .duration_since(Timestamp::now())
            .as_secs();
        assert!((7_195..=7_200).contains(&ahead), "{ahead}");
        assert!(
            parse_time_or_delay("tomorrow")
                .unwrap_err()
                .contains("write a time like")
        );
    }
}
