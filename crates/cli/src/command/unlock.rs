//! Implements `dogwatch unlock`.

mod target;

use dogwatch_core::check::{self, HolderStatus, ObservedHolder};
use dogwatch_core::explain::{LeaseRow, format_time};
use dogwatch_core::lock::{MIN_HOLDER_READ_INTERVAL, ObservedLease};
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::lock::ReleaseOutcome;

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
use crate::person;
use dogwatch_core::printable::printable_text;

#[derive(Debug, clap::Args)]
pub struct UnlockArgs {
    /// Lease (dogwatch-GROUP-SLOT), or its holder: a node or a host of the lock API
    #[arg(value_name = "LEASE|NODE|HOST")]
    target: String,

    /// Break the lock although its holder may still exist
    #[arg(long, requires = "reason")]
    force: bool,

    /// Reason, written to an Event
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Name of the requester; defaults to the local user name
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// Prints the holder. Frees a lock whose holder provably no longer exists, and any other only with
/// `--force`.
pub async fn run(cluster: &ClusterArgs, args: &UnlockArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let name = target::resolve_lease(&connected, &args.target).await?;
    // Read first: the write below requires this version of the Lease.
    let Some(row) = read_lease(&connected, &name).await? else {
        return Err(CommandFailure::new(
            CliExitCode::NotFound,
            format!("Lease {name} has been deleted"),
        ));
    };
    if row.lease.holder.is_none() {
        return print_line(&format!("lease/{name} is free already"));
    }
    print_line(&describe_holder(&row))?;
    let reads = read_holder_twice(&connected, &row.lease).await?;
    let pair = reads.as_ref().map(|(first, second)| (first, second));
    let why = match check::judge_holder(&row.lease, pair) {
        HolderStatus::Nobody { evidence } => {
            print_line(&format!("  the holder no longer exists: {evidence}"))?;
            evidence
        }
        HolderStatus::Somebody { what, instead } => {
            print_line(&format!("  {what}"))?;
            require_force_reason(args, &name, &instead)?
        }
    };
    let holder = reads.map(|(_, second)| second);
    break_lease(&connected, args, &row.lease, holder.as_ref(), &why).await
}

async fn read_lease(
    connected: &ConnectedCluster,
    name: &str,
) -> Result<Option<LeaseRow>, CommandFailure> {
    connected
        .fleet
        .read_lease(name)
        .await
        .map_err(|error| connected.api_failure(&format!("read Lease {name}"), &error))
}

fn describe_holder(row: &LeaseRow) -> String {
    let lease = &row.lease;
    let holder = lease.holder.as_ref().map_or("", |holder| holder.as_str());
    let text = format!(
        "lease/{} of group {} is held by {}",
        lease.name,
        row.group,
        printable_text(holder)
    );
    let Some(record) = &lease.record else {
        return format!("{text}; its annotation dogwatch.dev/holder is invalid");
    };
    let since = format_time(record.since);
    let node = record.node_uid.as_ref();
    let node = node.map_or_else(String::new, |uid| format!(", for the Node of UID {uid}"));
    let runs: Vec<&str> = record
        .runs
        .iter()
        .map(dogwatch_core::name::RunId::as_str)
        .collect();
    let runs = match runs.as_slice() {
        [] => String::new(),
        runs => format!("; runs: {}", runs.join(", ")),
    };
    format!("{text} since {since}{node}{runs}")
}

async fn read_holder_twice(
    connected: &ConnectedCluster,
    lease: &ObservedLease,
) -> Result<Option<(ObservedHolder, ObservedHolder)>, CommandFailure> {
    let failed = |error| connected.api_failure("read the holder's Node", &error);
    let Some(first) = connected.fleet.read_holder(lease).await.map_err(failed)? else {
        return Ok(None);
    };
    tokio::time::sleep(MIN_HOLDER_READ_INTERVAL).await;
    let second = connected.fleet.read_holder(lease).await.map_err(failed)?;
    Ok(second.map(|second| (first, second)))
}

/// Without a proof, the person's `--force` and reason are needed.
fn require_force_reason(
    args: &UnlockArgs,
    name: &str,
    instead: &str,
) -> Result<String, CommandFailure> {
    let reason = args.reason.as_deref().unwrap_or_default().trim();
    if !args.force {
        return Err(CommandFailure::new(
            CliExitCode::Failed,
            format!("Lease {name} was not released: its holder may still exist"),
        )
        .with_next_step(format!(
            "{instead}; or, if you are sure that the holder is in service again or off for good, and will not use this lock: dogwatch unlock {name} --force --reason …"
        )));
    }
    if reason.is_empty() {
        return Err(CommandFailure::new(
            CliExitCode::Usage,
            "--force needs a --reason that is not empty",
        ));
    }
    person::ask_confirmation(
        &format!(
            "If the holder of {name} is still out of service, one node more than the budget allows may be unavailable. Break the lock?"
        ),
        args.yes,
    )?;
    Ok(format!("forced: {reason}"))
}

async fn break_lease(
    connected: &ConnectedCluster,
    args: &UnlockArgs,
    lease: &ObservedLease,
    holder: Option<&ObservedHolder>,
    why: &str,
) -> Result<(), CommandFailure> {
    let name = &lease.name;
    let held_by = lease.holder.as_ref().map_or("", |holder| holder.as_str());
    let who = args.requester.clone().unwrap_or_else(person::user_name);
    let who = match connected.fleet.try_read_caller().await {
        Some(user) => format!("{who} (as user {user})"),
        None => who,
    };
    let text = format!("{who} breaks Lease {name}, held by {held_by}: {why}");
    connected
        .fleet
        .record_lock_break(lease, holder, &text, current_time())
        .await
        .map_err(|error| {
            connected.api_failure(
                &format!(
                    "write the Event about the break of Lease {name}, so the lock was not broken"
                ),
                &error,
            )
        })?;
    match connected.fleet.break_lock(lease).await {
        ReleaseOutcome::Freed(_) => print_line(&format!("lease/{name} is free")),
        ReleaseOutcome::Changed { .. } => Err(CommandFailure::new(
            CliExitCode::Failed,
            format!("somebody else changed Lease {name} at the same time, so the lock was not broken"),
        )
        .with_next_step(format!("run the command again: dogwatch unlock {}", args.target))),
        ReleaseOutcome::Refused(error) if error.kind() == ApiErrorKind::Forbidden => Err(connected
            .api_failure(&format!("break Lease {name}"), &error)
            .with_next_step("you need verb patch on leases and, where Dogwatch's admission policies are installed, verb break on rebootlocks.dogwatch.dev")),
        ReleaseOutcome::Refused(error) => Err(connected.api_failure(&format!("break Lease {name}"), &error)),
        ReleaseOutcome::Unknown(error) => Err(connected
            .api_failure(&format!("break Lease {name}"), &error)
            .with_next_step(format!("check whether the lock is free: dogwatch unlock {}", args.target))),
    }
}
