//! `dogwatch unlock`.

mod target;

use dogwatch_core::check::{self, Behind, HolderFound};
use dogwatch_core::explain::{LeaseRow, moment};
use dogwatch_core::lock::{BETWEEN_HOLDER_READS, LeaseSeen};
use dogwatch_k8s::Kind;
use dogwatch_k8s::lock::ReleaseOutcome;

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output::say;
use crate::person;
use crate::table::printable;

/// Which lock, and on whose word.
#[derive(Debug, clap::Args)]
pub struct UnlockArgs {
    /// The Lease (dogwatch-GROUP-SLOT), or who holds it: a node, or a host of the lock API
    #[arg(value_name = "LEASE|NODE|HOST")]
    target: String,

    /// Breaks it although somebody may be behind it
    #[arg(long, requires = "reason")]
    force: bool,

    /// Why; told by an Event
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// Who says so; the name of the user at this machine where it is not given
    #[arg(long, value_name = "NAME")]
    requester: Option<String>,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

/// Shows who holds it; frees what is provably nobody's, and with `--force` the rest.
pub async fn run(cluster: &Cluster, args: &UnlockArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    let name = target::resolve(&connected, &args.target).await?;
    // From before the reads: the write that follows from them relies on this version.
    let Some(row) = lease(&connected, &name).await? else {
        return Err(Failure::new(
            Exit::NotFound,
            format!("Lease {name} was deleted meanwhile"),
        ));
    };
    if row.lease.holder.is_none() {
        return say(&format!("lease/{name} is free already"));
    }
    say(&holder_in_words(&row))?;
    let reads = two_reads(&connected, &row.lease).await?;
    let pair = reads.as_ref().map(|(first, second)| (first, second));
    let why = match check::behind(&row.lease, pair) {
        Behind::Nobody { evidence } => {
            say(&format!("  nobody is behind it: {evidence}"))?;
            evidence
        }
        Behind::Somebody { what, instead } => {
            say(&format!("  {what}"))?;
            forced(args, &name, &instead)?
        }
    };
    let holder = reads.map(|(_, second)| second);
    free(&connected, args, &row.lease, holder.as_ref(), &why).await
}

async fn lease(connected: &Connected, name: &str) -> Result<Option<LeaseRow>, Failure> {
    connected
        .fleet
        .lease(name)
        .await
        .map_err(|error| connected.failed(&format!("read Lease {name}"), &error))
}

fn holder_in_words(row: &LeaseRow) -> String {
    let lease = &row.lease;
    let holder = lease.holder.as_ref().map_or("", |holder| holder.as_str());
    let text = format!(
        "lease/{} of group {} is held by {}",
        lease.name,
        row.group,
        printable(holder)
    );
    let Some(record) = &lease.record else {
        return format!("{text}; its record cannot be read");
    };
    let since = moment(record.since);
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

async fn two_reads(
    connected: &Connected,
    lease: &LeaseSeen,
) -> Result<Option<(HolderFound, HolderFound)>, Failure> {
    let failed = |error| connected.failed("read the holder's Node", &error);
    let Some(first) = connected.fleet.holder_found(lease).await.map_err(failed)? else {
        return Ok(None);
    };
    tokio::time::sleep(BETWEEN_HOLDER_READS).await;
    let second = connected.fleet.holder_found(lease).await.map_err(failed)?;
    Ok(second.map(|second| (first, second)))
}

/// The person's word in place of a proof.
fn forced(args: &UnlockArgs, name: &str, instead: &str) -> Result<String, Failure> {
    let reason = args.reason.as_deref().unwrap_or_default().trim();
    if !args.force {
        return Err(Failure::new(
            Exit::Failed,
            format!("Lease {name} is not freed: somebody may be behind it"),
        )
        .next(format!(
            "{instead}; or, if you are sure that its holder is in service or off for good, and will not act on this lock: \
             dogwatch unlock {name} --force --reason …"
        )));
    }
    if reason.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            "--force needs a --reason that says something",
        ));
    }
    person::confirm(
        &format!(
            "If the holder of {name} is still out of service, one node more than allowed may be out. Break the lock?"
        ),
        args.yes,
    )?;
    Ok(format!("forced: {reason}"))
}

async fn free(
    connected: &Connected,
    args: &UnlockArgs,
    lease: &LeaseSeen,
    holder: Option<&HolderFound>,
    why: &str,
) -> Result<(), Failure> {
    let name = &lease.name;
    let held_by = lease.holder.as_ref().map_or("", |holder| holder.as_str());
    let who = args.requester.clone().unwrap_or_else(person::name);
    let who = match connected.fleet.who_am_i().await {
        Some(user) => format!("{who} (as user {user})"),
        None => who,
    };
    let text = format!("{who} breaks Lease {name}, held by {held_by}: {why}");
    connected
        .fleet
        .audit_break(lease, holder, &text, now())
        .await
        .map_err(|error| {
            connected.failed(
                &format!("tell by an Event that Lease {name} is broken, so it was not"),
                &error,
            )
        })?;
    match connected.fleet.break_lock(lease).await {
        ReleaseOutcome::Freed(_) => say(&format!("lease/{name} is free")),
        ReleaseOutcome::Changed { .. } => Err(Failure::new(
            Exit::Failed,
            format!("Lease {name} has changed meanwhile, and was left alone"),
        )
        .next(format!("look again: dogwatch unlock {}", args.target))),
        ReleaseOutcome::Refused(error) if error.kind() == Kind::Forbidden => Err(connected
            .failed(&format!("break Lease {name}"), &error)
            .next("it needs verb patch on leases; where Dogwatch's admission policies are installed, also verb break on rebootlocks.dogwatch.dev")),
        ReleaseOutcome::Refused(error) => Err(connected.failed(&format!("break Lease {name}"), &error)),
        ReleaseOutcome::Unknown(error) => Err(connected
            .failed(&format!("break Lease {name}"), &error)
            .next(format!("it may be free or not: dogwatch unlock {}", args.target))),
    }
}
