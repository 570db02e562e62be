//! `dogwatch status`.

pub mod hosts;
mod remedies;
pub mod rows;
mod schedules;
mod sight;
mod watch;

pub use sight::Sight;

use std::io::Write as _;

use dogwatch_core::explain::{self, Fleet, Status};
use dogwatch_core::policy::Policies;

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::output::{self, Format, Output};
use crate::paint::Paint;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Only this: nodes, locks, policies, hosts, schedules or remediations; all of them where it is not given
    #[arg(value_enum, value_name = "WHAT")]
    what: Option<What>,

    /// Hosts, schedules and remediations of all namespaces, which is so where -n does not name one
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,

    /// How it is printed
    #[command(flatten)]
    output: Output,

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
    /// The BareMetalHosts, of the namespace that -n names
    Hosts,
    /// The RebootSchedules, of the namespace that -n names
    Schedules,
    /// The remediations under way, those that ended within the last hour, and requests that failed; of the
    /// namespace that -n names
    Remediations,
}

/// What is to be shown.
pub struct Scope {
    /// Only this.
    what: Option<What>,
    /// Hosts, schedules and remediations of this namespace only.
    namespace: Option<String>,
}

impl Scope {
    fn new(cluster: &Cluster, what: Option<What>) -> Self {
        // Without a part, `-n` is Dogwatch's own namespace, where the locks are.
        let namespaced = [What::Hosts, What::Schedules, What::Remediations];
        let is_namespaced = what.is_some_and(|what| namespaced.contains(&what));
        let is_named = is_namespaced && cluster.namespace_given;
        Self {
            what,
            namespace: is_named.then(|| cluster.namespace.clone()),
        }
    }

    fn wants(&self, part: What) -> bool {
        self.what.is_none_or(|what| what == part)
    }

    /// The remediations of all namespaces.
    pub fn of_remediations() -> Self {
        Self {
            what: Some(What::Remediations),
            namespace: None,
        }
    }

    /// Whether Nodes and Leases are shown at all.
    fn wants_fleet(&self) -> bool {
        self.wants(What::Nodes) || self.wants(What::Locks) || self.wants(What::Policies)
    }
}

/// Reads and prints; with `--watch` for ever.
pub async fn run(cluster: &Cluster, args: &StatusArgs) -> Result<(), Failure> {
    let scope = Scope::new(cluster, args.what);
    let connected = if scope.wants_fleet() {
        Connected::to(cluster).await?
    } else {
        super::hosts::connect(cluster).await?
    };
    if args.watch {
        if scope.what == Some(What::Remediations) {
            // A watch would go on trying where a kind may not be read.
            super::remedies::look(&connected).await?;
        }
        return watch::run(&connected, args.output.format, scope).await;
    }
    let status = read(&connected, &scope).await?;
    let mut out = output::stdout();
    let (format, paint) = (args.output.format, Paint::of_stdout());
    print(&mut out, &status, scope.what, format, paint)?;
    Ok(out.flush()?)
}

async fn read(connected: &Connected, scope: &Scope) -> Result<Status, Failure> {
    let mut fleet = Fleet::default();
    if scope.wants_fleet() {
        let read = connected.fleet.read().await;
        fleet = read.map_err(|error| connected.failed("list Nodes and Leases", &error))?;
        if let Some(missing) = missing(&fleet, scope.what) {
            eprintln!("dogwatch: {missing}");
        }
    }
    let hosts = hosts::read(connected, scope).await?;
    // Without a host nothing can be fenced.
    let remediations = if hosts.is_empty() && scope.what.is_none() {
        Vec::new()
    } else {
        remedies::read(connected, scope).await?
    };
    Ok(Status {
        hosts,
        schedules: schedules::read(connected, scope).await?,
        remediations,
        ..only(explain::status(&fleet, now()), scope)
    })
}

/// The status with that part only.
fn only(mut status: Status, scope: &Scope) -> Status {
    if !scope.wants(What::Nodes) {
        status.nodes.clear();
    }
    if !scope.wants(What::Locks) {
        status.locks.clear();
        status.waiting.clear();
    }
    if !scope.wants(What::Policies) {
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
    what: Option<What>,
    format: Format,
    paint: Paint,
) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(out, status),
        Format::Yaml => output::yaml(out, status),
        Format::Table | Format::Wide => {
            let tables = rows::Tables::of(status, format, now());
            Ok(tables.write(out, what, paint)?)
        }
    }
}
