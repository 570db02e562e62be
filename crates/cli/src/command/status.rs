//! `dogwatch status`.

mod rows;
mod watch;

use std::io::Write as _;

use dogwatch_core::explain::{self, Fleet, Status};
use dogwatch_core::policy::Policies;

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::Paint;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Only this: nodes, locks or policies; all of them where it is not given
    #[arg(value_enum, value_name = "WHAT")]
    what: Option<What>,

    /// How it is printed
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Format,

    /// Goes on, and shows every change
    #[arg(long, short)]
    watch: bool,
}

/// A part of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// The nodes
    Nodes,
    /// The slots of the lock
    Locks,
    /// The RebootPolicies
    Policies,
}

/// Reads and prints; with `--watch` for ever.
pub async fn run(cluster: &Cluster, args: &StatusArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    if args.watch {
        return watch::run(&connected, args.output, args.what).await;
    }
    let fleet = connected
        .fleet
        .read()
        .await
        .map_err(|error| connected.failed("list Nodes and Leases", &error))?;
    let status = only(explain::status(&fleet, now()), args.what);
    if let Some(missing) = missing(&fleet, args.what) {
        eprintln!("dogwatch: {missing}");
    }
    let mut out = output::stdout();
    print(&mut out, &status, args.output, Paint::of_stdout())?;
    Ok(out.flush()?)
}

/// The status with that part only.
fn only(mut status: Status, what: Option<What>) -> Status {
    let wanted = |part| what.is_none_or(|what| what == part);
    if !wanted(What::Nodes) {
        status.nodes.clear();
    }
    if !wanted(What::Locks) {
        status.locks.clear();
    }
    if !wanted(What::Policies) {
        status.policies.clear();
    }
    status
}

/// Why there is nothing to see, where that is so.
fn missing(fleet: &Fleet, what: Option<What>) -> Option<String> {
    if let (Some(What::Policies), Policies::Unreadable { why }) = (what, &fleet.policies) {
        return Some(format!("the RebootPolicies cannot be read: {why}"));
    }
    if what == Some(What::Policies) && fleet.policies.known().is_empty() {
        return Some("there are no RebootPolicies: the coordinators' flags rule every node".into());
    }
    fleet
        .nodes
        .is_empty()
        .then(|| "this cluster has no Nodes".into())
}

fn print(
    out: &mut impl std::io::Write,
    status: &Status,
    format: Format,
    paint: Paint,
) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(out, status),
        Format::Yaml => output::yaml(out, status),
        Format::Table | Format::Wide => {
            let tables = rows::Tables::of(status, format, now());
            Ok(tables.write(out, paint)?)
        }
    }
}
