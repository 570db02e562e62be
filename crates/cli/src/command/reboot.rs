//! Implements `dogwatch reboot`.

mod ask;
mod cancel;
mod follow;
pub mod request_watch;

use std::time::Duration;

use clap::ValueEnum;
use dogwatch_api::node_reboot::RebootMethod;
use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_k8s::fleet::NodeRebootsFound;
use jiff::Timestamp;

use self::ask::{AskedNode, RebootDemand, RequestChannel};
use super::nodes::NodeSelectionArgs;
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::node_reboots;
use crate::person;

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
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

    /// Give the reboot up if a node has not begun to drain by then: a time or a duration from now
    #[arg(long, value_name = "TIME|DURATION", value_parser = parse_time_or_delay)]
    deadline: Option<Timestamp>,

    /// How the nodes are restarted
    #[arg(long, value_enum, default_value_t)]
    method: RebootMethodArg,

    /// Write the request as an annotation, and replace another one that a node already carries
    #[arg(long, conflicts_with_all = ["deadline", "method"])]
    replace: bool,

    /// Cancel the reboots of these nodes that have not begun, instead of requesting one
    #[arg(long, conflicts_with_all = ["reason", "not_before", "deadline", "method", "replace", "wait"])]
    cancel: bool,

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum RebootMethodArg {
    /// The node's coordinator runs the reboot command
    #[default]
    Reboot,
    /// The controller switches the drained node's host off and on
    PowerCycle,
}

/// Writes each request on its own; the first failure gives the exit code.
pub async fn run(cluster: &ClusterArgs, args: &RebootArgs) -> Result<(), CommandFailure> {
    args.which.require_selection()?;
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let mut nodes = args.which.list_node_names(&connected).await?;
    nodes.dedup();
    if args.cancel {
        return cancel::cancel_reboots(&connected, &nodes).await;
    }
    if args.which.all {
        let question = format!("Reboot all {} nodes, one after the other?", nodes.len());
        person::ask_confirmation(&question, args.yes)?;
    }
    // Watch before the first request, to tell earlier reboots from the requested ones.
    let mut following = None;
    if args.wait {
        following = Some(follow::RebootFollower::start_watching(&connected).await?);
    }
    let channel = choose_channel(&connected, args).await?;
    let demand = args.to_demand();
    let (mut asked, mut failures) = (Vec::new(), Vec::new());
    for node in &nodes {
        match ask::ask_node(&connected, node, &demand, &channel).await {
            Ok(node) => asked.push(node),
            Err(failure) => failures.push(failure),
        }
    }
    if let Some(first) = asked.first() {
        warn_if_unanswered(&connected, first, args).await;
    }
    if let Some(following) = following
        && !asked.is_empty()
    {
        let followed = following.follow_until_done(&connected, asked, args.timeout);
        failures.extend(followed.await.err());
    }
    end_with_failures(failures)
}

/// By NodeReboots, or by annotations where that kind is not installed.
async fn choose_channel(
    connected: &ConnectedCluster,
    args: &RebootArgs,
) -> Result<RequestChannel, CommandFailure> {
    let by_annotation = RequestChannel::Annotations {
        replace: args.replace,
    };
    if args.replace {
        return Ok(by_annotation);
    }
    let found = connected.fleet.list_node_reboots().await;
    let found = found.map_err(|error| connected.api_failure("list NodeReboots", &error))?;
    match found {
        NodeRebootsFound::There(_) => Ok(RequestChannel::Objects(found)),
        NodeRebootsFound::NoKind
            if args.deadline.is_some() || args.method != RebootMethodArg::Reboot =>
        {
            Err(node_reboots::kind_missing())
        }
        NodeRebootsFound::NoKind => Ok(by_annotation),
    }
}

async fn warn_if_unanswered(connected: &ConnectedCluster, asked: &AskedNode, args: &RebootArgs) {
    if let Some(name) = &asked.node_reboot {
        return node_reboots::warn_if_without_status(connected, name).await;
    }
    let is_for_later = args.not_before.is_some_and(|at| at > current_time().wall);
    let node: &NodeName = &asked.node;
    connected.warn_if_unanswered(node, is_for_later).await;
}

/// Only the first failure can give the exit code.
pub fn end_with_failures(failures: Vec<CommandFailure>) -> Result<(), CommandFailure> {
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else {
        return Ok(());
    };
    for failure in failures {
        let _ = failure.print_and_exit_code();
    }
    Err(first)
}

impl RebootArgs {
    fn to_demand(&self) -> RebootDemand {
        RebootDemand {
            method: match self.method {
                RebootMethodArg::Reboot => RebootMethod::Reboot,
                RebootMethodArg::PowerCycle => RebootMethod::PowerCycle,
            },
            reason: self.reason.clone(),
            requester: self.requester.clone().unwrap_or_else(person::user_name),
            not_before: self.not_before,
            deadline: self.deadline,
        }
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
