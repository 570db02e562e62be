//! Implements `dogwatch check`.

mod check_view;
mod hosts;

use std::io::{self, Write};

use dogwatch_core::check::{self, CheckFinding, FindingSeverity, PlannedPod};
use dogwatch_core::name::NodeName;
use serde::Serialize;

use self::check_view::SharedReads;
use super::nodes::NodeSelectionArgs;
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::{self, OutputArgs, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use dogwatch_core::printable::printable_text;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CheckArgs {
    #[command(subcommand)]
    other: Option<CheckSubcommand>,

    #[command(flatten)]
    which: NodeSelectionArgs,

    /// Check every record that the cluster contradicts, after etcd was restored from a backup
    #[arg(long, conflicts_with_all = ["nodes", "selector", "all"])]
    after_restore: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// Subcommands of `check`. A node with the name of a subcommand is written `node/NAME`.
#[derive(Debug, clap::Subcommand)]
enum CheckSubcommand {
    /// Check whether power control of hosts would work now, by asking their BMCs; changes nothing
    Hosts(hosts::CheckHostsArgs),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    blocked: bool,
    findings: Vec<CheckFinding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drain_plan: Vec<PlannedPod>,
}

impl CheckReport {
    fn new(node: Option<&NodeName>, findings: Vec<CheckFinding>) -> Self {
        Self {
            node: node.map(ToString::to_string),
            blocked: findings
                .iter()
                .any(|found| found.severity == FindingSeverity::Blocks),
            findings,
            drain_plan: Vec::new(),
        }
    }

    /// The findings of a check after a restore, without what could not be read.
    fn count_contradictions(&self) -> usize {
        let findings = self.findings.iter();
        findings.filter(|found| !found.is_unread).count()
    }

    fn with_drain_plan(self, drain_plan: Vec<PlannedPod>) -> Self {
        Self { drain_plan, ..self }
    }
}

/// Prints the reports; the exit code says whether something blocks.
pub async fn run(cluster: &ClusterArgs, args: &CheckArgs) -> Result<(), CommandFailure> {
    if let Some(CheckSubcommand::Hosts(args)) = &args.other {
        return hosts::run(cluster, args).await;
    }
    check_nodes(cluster, args).await
}

/// `check` without a subcommand.
pub async fn check_nodes(cluster: &ClusterArgs, args: &CheckArgs) -> Result<(), CommandFailure> {
    if !args.after_restore {
        args.which.require_selection()?;
    }
    let connected = ConnectedCluster::connect_to(cluster).await?;
    let fleet = connected
        .fleet
        .read_fleet()
        .await
        .map_err(|error| connected.api_failure("list Nodes and Leases", &error))?;
    if args.after_restore {
        let forced = check_view::read_forced_work(&connected).await;
        let found = check::find_restore_contradictions(&fleet, &forced, current_time());
        let report = CheckReport::new(None, found);
        print_reports(args.output.format, std::slice::from_ref(&report))?;
        return restore_verdict(&report);
    }
    let mut reports = Vec::new();
    let mut missing = None;
    let shared = SharedReads::read_cluster(&connected, fleet).await;
    for node in args.which.list_node_names(&connected).await? {
        let view = check_view::read_check_view(&connected, &shared, &node).await;
        let now = current_time();
        match check::find_reboot_blockers(&view, now) {
            Some(findings) => {
                let plan = check::plan_drain(&view, now).unwrap_or_default();
                reports.push(CheckReport::new(Some(&node), findings).with_drain_plan(plan));
            }
            None => missing = Some(connected.no_such_node(&node).await),
        }
    }
    print_reports(args.output.format, &reports)?;
    match missing {
        Some(missing) => Err(missing),
        None => check_verdict(&reports),
    }
}

/// A part that could not be read is not clear.
fn restore_verdict(report: &CheckReport) -> Result<(), CommandFailure> {
    let contradictions = report.count_contradictions();
    if report.findings.is_empty() {
        return Ok(());
    }
    if contradictions == 0 {
        let text =
            "nothing that could be read contradicts anything, but not everything could be read";
        return Err(CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step("see the lines marked unknown"));
    }
    let text = format!("{contradictions} records contradict other records or their Nodes");
    Err(CommandFailure::new(CliExitCode::Blocked, text).with_next_step(
        "nothing was changed; pause all reboots until you have corrected them: dogwatch pause --all --reason restored",
    ))
}

/// A check that could not be made is not clear.
fn check_verdict(reports: &[CheckReport]) -> Result<(), CommandFailure> {
    let blocked = reports.iter().filter(|report| report.blocked).count();
    if blocked > 0 {
        let text = format!(
            "{blocked} of {} would be blocked now",
            format_node_count(reports.len())
        );
        return Err(CommandFailure::new(CliExitCode::Blocked, text));
    }
    let unknown = |report: &&CheckReport| {
        let mut findings = report.findings.iter();
        findings.any(|found| found.severity == FindingSeverity::Unknown)
    };
    if reports.iter().any(|report| unknown(&report)) {
        let text =
            "nothing that could be checked blocks a reboot, but some checks were not possible";
        return Err(CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step("see the lines marked unknown"));
    }
    Ok(())
}

fn format_node_count(count: usize) -> String {
    match count {
        1 => "1 node".into(),
        many => format!("{many} nodes"),
    }
}

fn print_reports(format: OutputFormat, reports: &[CheckReport]) -> Result<(), CommandFailure> {
    output::print_document(format, &reports, |out| {
        let paint = TerminalPaint::of_stdout();
        let mut reports = reports.iter();
        Ok(reports.try_for_each(|report| write_report(out, report, paint))?)
    })
}

fn write_report(
    out: &mut impl Write,
    report: &CheckReport,
    paint: TerminalPaint,
) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        paint.paint_text(TerminalColour::Bold, &report_heading(report))
    )?;
    for found in &report.findings {
        let severity = format!("{:7}", found.severity.as_str());
        let severity = match severity_colour(found.severity) {
            Some(colour) => paint.paint_text(colour, &severity),
            None => severity,
        };
        let (subject, what) = (printable_text(&found.subject), printable_text(&found.what));
        writeln!(out, "  {severity}  {subject}: {what}")?;
        if let Some(fix) = &found.fix {
            writeln!(out, "           → {}", printable_text(fix))?;
        }
    }
    if !report.drain_plan.is_empty() {
        writeln!(out, "  plan of the drain:")?;
    }
    for pod in &report.drain_plan {
        writeln!(out, "    {}", planned_pod_text(pod))?;
    }
    Ok(())
}

/// `order 0: evict: shop/web-1 (no rule matches); blocked by PodDisruptionBudget shop/web`.
fn planned_pod_text(planned: &PlannedPod) -> String {
    let PlannedPod {
        pod,
        action,
        order,
        why,
        blocked_by,
    } = planned;
    let order = order.map_or_else(|| "-".into(), |order| format!("order {order}"));
    let text = format!("{order}: {action}: {pod} ({why})");
    printable_text(&match blocked_by.as_slice() {
        [] => text,
        budgets => format!(
            "{text}; blocked by PodDisruptionBudget {}",
            budgets.join(", ")
        ),
    })
}

fn report_heading(report: &CheckReport) -> String {
    let blocks = report
        .findings
        .iter()
        .filter(|found| found.severity == FindingSeverity::Blocks)
        .count();
    match (&report.node, blocks) {
        (Some(node), 0) => format!("{node}: nothing blocks a reboot now"),
        (Some(node), 1) => format!("{node}: 1 thing blocks a reboot now"),
        (Some(node), many) => format!("{node}: {many} things block a reboot now"),
        (None, _) => match (report.count_contradictions(), report.findings.is_empty()) {
            (0, true) => "no record contradicts another record or a Node".into(),
            (0, false) => {
                "no record that could be read contradicts another record or a Node".into()
            }
            (count, _) => format!("{count} records contradict other records or their Nodes"),
        },
    }
}

fn severity_colour(severity: FindingSeverity) -> Option<TerminalColour> {
    match severity {
        FindingSeverity::Blocks => Some(TerminalColour::Red),
        FindingSeverity::Unknown | FindingSeverity::Warns => Some(TerminalColour::Yellow),
        FindingSeverity::Note => None,
    }
}
