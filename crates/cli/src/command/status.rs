//! Implements `dogwatch status`.

pub mod hosts;
mod overview;
mod remediations;
pub mod rows;
mod schedules;
mod status_source;
mod watch;
mod watched_status;

pub use watched_status::WatchedStatus;

use std::sync::Arc;

use dogwatch_core::explain::{self, FleetSnapshot, FleetStatus};
use dogwatch_core::node_reboot::ObservedNodeReboot;
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::report::{EstimateRollout as _, FleetViewInput, build_fleet_view};
use dogwatch_k8s::fleet::NodeRebootsFound;
use dogwatch_sim::plan::LivePlanner;

use self::overview::StatusDocument;

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::output::{self, OutputArgs};
use crate::paint::TerminalPaint;

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Show only this part: nodes, locks, policies, hosts, schedules or remediations; all parts by
    /// default
    #[arg(value_enum, value_name = "WHAT")]
    what: Option<StatusPart>,

    /// Show hosts, schedules and remediations of all namespaces, which is the default without -n
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    all_namespaces: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Keep running and show every change
    #[arg(long, short)]
    watch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StatusPart {
    /// The nodes
    Nodes,
    /// The slots of the locks
    Locks,
    /// The RebootPolicies
    Policies,
    /// The BareMetalHosts, in the namespace of -n
    Hosts,
    /// The RebootSchedules, in the namespace of -n
    Schedules,
    /// The remediations under way, those that ended within the last hour, and requests that failed;
    /// in the namespace of -n
    Remediations,
}

pub struct StatusScope {
    part: Option<StatusPart>,
    /// Limits hosts, schedules and remediations to this namespace.
    namespace: Option<String>,
}

impl StatusScope {
    fn new(cluster: &ClusterArgs, what: Option<StatusPart>) -> Self {
        // Without a part, `-n` is Dogwatch's own namespace, which holds the locks.
        let namespaced = [
            StatusPart::Hosts,
            StatusPart::Schedules,
            StatusPart::Remediations,
        ];
        let is_namespaced = what.is_some_and(|what| namespaced.contains(&what));
        let is_named = is_namespaced && cluster.namespace_given;
        Self {
            part: what,
            namespace: is_named.then(|| cluster.namespace.clone()),
        }
    }

    fn includes_part(&self, part: StatusPart) -> bool {
        self.part.is_none_or(|what| what == part)
    }

    pub fn all_remediations() -> Self {
        Self {
            part: Some(StatusPart::Remediations),
            namespace: None,
        }
    }

    fn includes_fleet(&self) -> bool {
        self.includes_part(StatusPart::Nodes)
            || self.includes_part(StatusPart::Locks)
            || self.includes_part(StatusPart::Policies)
    }
}

/// Runs until it is stopped with `--watch`.
pub async fn run(cluster: &ClusterArgs, args: &StatusArgs) -> Result<(), CommandFailure> {
    let scope = StatusScope::new(cluster, args.what);
    let connected = if scope.includes_fleet() {
        ConnectedCluster::connect_to(cluster).await?
    } else {
        ConnectedCluster::connect_for_objects(cluster).await?
    };
    if args.watch {
        if scope.part == Some(StatusPart::Remediations) {
            // Read once first: without the right to list a kind, a watch would retry for ever.
            super::remediations::read_remediations(&connected).await?;
        }
        return watch::run(&connected, args.output.format, scope).await;
    }
    let document = read_status(&connected, &scope).await?;
    let format = args.output.format;
    output::print_document(format, &document, |out| {
        let paint = TerminalPaint::of_stdout();
        if let Some(overview) = &document.overview {
            overview.write_sentence(out, paint)?;
        }
        let tables = rows::StatusTables::of_status(&document.status, format, current_time());
        Ok(tables.write_tables(out, scope.part, paint)?)
    })
}

async fn read_status(
    connected: &ConnectedCluster,
    scope: &StatusScope,
) -> Result<StatusDocument, CommandFailure> {
    let mut fleet = FleetSnapshot::default();
    if scope.includes_fleet() {
        let read = connected.fleet.read_fleet().await;
        fleet = read.map_err(|error| connected.api_failure("list Nodes and Leases", &error))?;
        if let Some(missing) = empty_reason(&fleet, scope.part) {
            eprintln!("dogwatch: {missing}");
        }
    }
    let mut unreadable = Vec::new();
    let hosts = hosts::read_host_rows(connected, scope, &mut unreadable).await?;
    // Without a host there is no remediation.
    let remediations = if hosts.is_empty() && scope.part.is_none() {
        Vec::new()
    } else {
        remediations::read_remediation_rows(connected, scope, &mut unreadable).await?
    };
    let schedules = schedules::read_schedule_rows(connected, scope, &mut unreadable).await?;
    let node_reboots = read_node_reboots(connected, scope, &mut unreadable).await;
    for missing in &unreadable {
        eprintln!("dogwatch: {missing}");
    }
    let now = current_time();
    if scope.part.is_none() {
        let estimate = LivePlanner.estimate_rollout(&fleet, now);
        let input = FleetViewInput {
            hosts,
            remediations,
            schedules,
            node_reboots,
            estimate,
            unreadable,
            fleet: &fleet,
        };
        return Ok(StatusDocument::of_view(build_fleet_view(input, now)));
    }
    let status = FleetStatus {
        hosts,
        schedules,
        remediations,
        ..filter_status(explain::fleet_status(&fleet, now), scope)
    };
    Ok(StatusDocument::of_part(status))
}

/// In a status of all parts, those that have not reached their nodes are counted.
async fn read_node_reboots(
    connected: &ConnectedCluster,
    scope: &StatusScope,
    unreadable: &mut Vec<String>,
) -> Vec<Arc<ObservedNodeReboot>> {
    if scope.part.is_some() {
        return Vec::new();
    }
    let listed = connected.fleet.list_node_reboots().await;
    listed.map_or_else(
        |error| {
            let why = error.error_chain();
            unreadable.push(format!("the NodeReboots cannot be read: {why}"));
            Vec::new()
        },
        NodeRebootsFound::into_reboots,
    )
}

fn filter_status(mut status: FleetStatus, scope: &StatusScope) -> FleetStatus {
    if !scope.includes_part(StatusPart::Nodes) {
        status.nodes.clear();
    }
    if !scope.includes_part(StatusPart::Locks) {
        status.locks.clear();
        status.waiting.clear();
    }
    if !scope.includes_part(StatusPart::Policies) {
        status.policies.clear();
    }
    status
}

/// Explains an empty status; `None` if it is not empty.
fn empty_reason(fleet: &FleetSnapshot, what: Option<StatusPart>) -> Option<String> {
    if let (Some(StatusPart::Policies), ClusterPolicies::Unreadable { why }) =
        (what, &fleet.policies)
    {
        return Some(format!("the RebootPolicies cannot be read: {why}"));
    }
    if what == Some(StatusPart::Policies) && fleet.policies.known_policies().is_empty() {
        return Some(
            "there are no RebootPolicies: the coordinators' flags apply to every node".into(),
        );
    }
    fleet
        .nodes
        .is_empty()
        .then(|| "this cluster has no Nodes".into())
}
