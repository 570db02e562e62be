//! Implements `dogwatch pause`; [`resume`] implements `dogwatch resume`.

mod decide;
mod effect;
pub mod resume;

use std::collections::BTreeSet;
use std::io::Write as _;

use dogwatch_api::reboot_policy::PausedSpec;
use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy;
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::fleet::PauseChange;
use dogwatch_k8s::policy::PolicyObject;
use jiff::Timestamp;

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::{self, print_line};
use crate::resource::{not_found, parse_policy};
use dogwatch_core::printable::printable_text;

/// The policy that `pause --all` creates for nodes without a policy. It has the name of their
/// group, so that no node changes its group.
const REST_POLICY_NAME: &str = "default";
/// Lower than anybody would choose for a policy of their own.
const MAX_REST_POLICY_PRIORITY: i32 = -1000;

#[derive(Debug, clap::Args)]
pub struct PauseArgs {
    /// Policies to pause; defaults to all of them
    #[arg(value_name = "POLICY", value_parser = parse_policy)]
    policies: Vec<String>,

    /// Reason, shown wherever the pause delays something
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// When the pause ends by itself: a time (RFC 3339) or a duration from now (2h)
    #[arg(long, value_name = "TIME|DURATION", value_parser = super::reboot::parse_time_or_delay)]
    until: Option<Timestamp>,

    /// All policies, and the nodes without a policy: a policy "default" is created for them
    #[arg(long, conflicts_with = "policies")]
    all: bool,

    /// Replace a pause that ends earlier than this one
    #[arg(long)]
    replace: bool,
}

/// The first failure gives the exit code.
pub async fn run(cluster: &ClusterArgs, args: &PauseArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    if args.until.is_some_and(|until| until <= current_time().wall) {
        return Err(CommandFailure::new(
            CliExitCode::Usage,
            "--until has passed already",
        ));
    }
    let objects = list_policy_objects(&connected).await?;
    let wanted = PausedSpec {
        reason: Some(args.reason.clone()),
        until: args.until.map(|until| until.to_string()),
    };
    let names = select_policies(&objects, &args.policies)?;
    let mut trouble = None;
    for name in &names {
        let done = pause_policy(&connected, name, &wanted, args.replace).await;
        keep_first_failure(&mut trouble, done);
    }
    let fleet = read_fleet(&connected).await?;
    let rest = decide::nodes_without_policy(&fleet);
    if args.all && !rest.is_empty() {
        keep_first_failure(
            &mut trouble,
            pause_unruled_nodes(&connected, &objects, wanted).await,
        );
    }
    let fleet = self::read_fleet(&connected).await?;
    let mut out = output::buffered_stdout();
    effect::write_pause_effect(&mut out, &fleet, current_time())?;
    out.flush()?;
    if names.is_empty() && !args.all {
        return Err(CommandFailure::new(
            CliExitCode::NotFound,
            "there is no RebootPolicy, so nothing is paused",
        )
        .with_next_step("to pause every node: dogwatch pause --all --reason …"));
    }
    trouble.map_or(Ok(()), Err)
}

fn keep_first_failure(trouble: &mut Option<CommandFailure>, done: Result<(), CommandFailure>) {
    let Err(failure) = done else {
        return;
    };
    match trouble {
        None => *trouble = Some(failure),
        // Only the first failure can give the exit code.
        Some(_) => {
            let _ = failure.print_and_exit_code();
        }
    }
}

async fn list_policy_objects(
    connected: &ConnectedCluster,
) -> Result<Vec<PolicyObject>, CommandFailure> {
    connected
        .fleet
        .list_policy_objects()
        .await
        .map_err(|error| {
            if error.kind() == ApiErrorKind::NotFound {
                CommandFailure::no_policies_installed()
            } else {
                connected.api_failure("list RebootPolicies", &error)
            }
        })
}

async fn read_fleet(connected: &ConnectedCluster) -> Result<FleetSnapshot, CommandFailure> {
    connected
        .fleet
        .read_fleet()
        .await
        .map_err(|error| connected.api_failure("list Nodes and Leases", &error))
}

/// The named policies, or all of them if none is named.
fn select_policies(
    objects: &[PolicyObject],
    named: &[String],
) -> Result<Vec<String>, CommandFailure> {
    let names = objects.iter().filter_map(|it| it.metadata.name.clone());
    let existing: Vec<String> = names.collect();
    if let Some(wrong) = named.iter().find(|name| !existing.contains(name)) {
        let text = format!("there is no RebootPolicy {wrong} in this cluster; nothing was changed");
        let list_hint = "`dogwatch status policies` lists them";
        return Err(not_found(text, wrong, &existing, list_hint));
    }
    let chosen = if named.is_empty() {
        existing
    } else {
        named.to_vec()
    };
    Ok(BTreeSet::from_iter(chosen).into_iter().collect())
}

async fn pause_policy(
    connected: &ConnectedCluster,
    name: &str,
    wanted: &PausedSpec,
    replace: bool,
) -> Result<(), CommandFailure> {
    let changed = connected
        .fleet
        .change_pause(name, |object| {
            decide::decide_pause(object, wanted, replace, current_time().wall)
        })
        .await
        .map_err(|error| connected.api_failure(&format!("pause RebootPolicy {name}"), &error))?;
    let end = wanted.until.as_ref().map(|until| format!(" until {until}"));
    let end = end.as_deref().unwrap_or(" until somebody resumes it");
    match changed {
        Some(PauseChange::Set(_)) => print_line(&format!("rebootpolicy/{name} is paused{end}")),
        Some(
            PauseChange::Keep | PauseChange::Clear | PauseChange::EndHalt(_) | PauseChange::Delete,
        ) => {
            let objects = list_policy_objects(connected).await?;
            let there = objects
                .iter()
                .find(|object| object.metadata.name.as_deref() == Some(name));
            match there.and_then(|object| decide::pause_in_force(object, current_time().wall)) {
                Some(pause) if decide::is_long_enough(&pause, wanted) => print_line(&format!(
                    "rebootpolicy/{name} was paused already: {}",
                    printable_text(&pause.reason)
                )),
                Some(pause) => Err(CommandFailure::new(
                    CliExitCode::Failed,
                    format!(
                        "RebootPolicy {name} is paused already, and that pause ends earlier: {}",
                        printable_text(&pause.reason)
                    ),
                )
                .with_next_step("keep that pause, or replace it with --replace")),
                None => Err(CommandFailure::new(
                    CliExitCode::Failed,
                    format!("somebody else changed RebootPolicy {name} at the same time"),
                )
                .with_next_step("run the command again")),
            }
        }
        None => Err(CommandFailure::new(
            CliExitCode::NotFound,
            format!("RebootPolicy {name} has been deleted"),
        )),
    }
}

async fn pause_unruled_nodes(
    connected: &ConnectedCluster,
    objects: &[PolicyObject],
    wanted: PausedSpec,
) -> Result<(), CommandFailure> {
    let taken = objects
        .iter()
        .any(|object| object.metadata.name.as_deref() == Some(REST_POLICY_NAME));
    if taken {
        return Err(CommandFailure::new(
            CliExitCode::Failed,
            format!("RebootPolicy {REST_POLICY_NAME} does not select every node, so nodes without a policy are not paused"),
        )
        .with_next_step("create another policy for these nodes, or remove the nodeSelector of RebootPolicy default"));
    }
    let lowest = objects
        .iter()
        .filter_map(|object| object.spec.get("priority")?.as_i64())
        .min();
    let priority = decide::lowest_priority(lowest, MAX_REST_POLICY_PRIORITY);
    connected
        .fleet
        .create_paused_policy(REST_POLICY_NAME, priority, wanted)
        .await
        .map_err(|error| connected.api_failure("create RebootPolicy default", &error))?;
    print_line(&format!(
        "rebootpolicy/{REST_POLICY_NAME} was created, paused, for the nodes without a policy; `dogwatch resume {REST_POLICY_NAME}` deletes it again"
    ))
}

fn nodes_ruled_by<'a>(
    fleet: &'a FleetSnapshot,
    name: &GroupName,
) -> Vec<&'a dogwatch_core::reboot::ObservedNode> {
    let policies = fleet.policies.known_policies();
    let is_its = |node: &&dogwatch_core::reboot::ObservedNode| {
        policy::ruling_policy(policies, &node.labels).is_some_and(|policy| policy.name == *name)
    };
    fleet.iter_nodes().filter(is_its).collect()
}
