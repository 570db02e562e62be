//! `dogwatch check`.

mod hosts;
mod look;

use std::io::{self, Write};

use dogwatch_core::check::{self, Finding, Severity};
use dogwatch_core::name::NodeName;
use serde::Serialize;

use super::nodes::Which;
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format, Output};
use crate::paint::{Colour, Paint};
use crate::table::printable;

/// What to check.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CheckArgs {
    #[command(subcommand)]
    other: Option<Other>,

    #[command(flatten)]
    which: Which,

    /// After etcd was restored from a backup: every record that the world contradicts
    #[arg(long, conflicts_with_all = ["nodes", "selector", "all"])]
    after_restore: bool,

    /// How it is printed
    #[command(flatten)]
    output: Output,
}

/// What else can be checked. A node of such a name is written node/NAME.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Says whether power control of hosts would work now, by asking their BMCs; changes nothing
    Hosts(hosts::HostsArgs),
}

/// What one thing came to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    blocked: bool,
    findings: Vec<Finding>,
}

impl Report {
    fn new(node: Option<&NodeName>, findings: Vec<Finding>) -> Self {
        Self {
            node: node.map(ToString::to_string),
            blocked: findings
                .iter()
                .any(|found| found.severity == Severity::Blocks),
            findings,
        }
    }
}

/// Looks, prints; the exit code tells what blocks from what is clear.
pub async fn run(cluster: &Cluster, args: &CheckArgs) -> Result<(), Failure> {
    if let Some(Other::Hosts(args)) = &args.other {
        return hosts::run(cluster, args).await;
    }
    if !args.after_restore {
        args.which.chosen()?;
    }
    let connected = Connected::to(cluster).await?;
    let fleet = connected
        .fleet
        .read()
        .await
        .map_err(|error| connected.failed("list Nodes and Leases", &error))?;
    if args.after_restore {
        let report = Report::new(None, check::after_restore(&fleet));
        print(args.output.format, std::slice::from_ref(&report))?;
        return after_restore(&report);
    }
    let mut reports = Vec::new();
    let mut missing = None;
    let remedies = look::remedies(&connected).await;
    let admission = look::admission(&connected).await;
    for node in args.which.names(&connected).await? {
        let view = look::view(&connected, &fleet, &remedies, &admission, &node).await;
        match check::findings(&view, now()) {
            Some(findings) => reports.push(Report::new(Some(&node), findings)),
            None => missing = Some(connected.no_such_node(&node).await),
        }
    }
    print(args.output.format, &reports)?;
    match missing {
        Some(missing) => Err(missing),
        None => verdict(&reports),
    }
}

fn after_restore(report: &Report) -> Result<(), Failure> {
    if report.findings.is_empty() {
        return Ok(());
    }
    let text = format!("{} records are contradicted", report.findings.len());
    Err(Failure::new(Exit::Blocked, text).next(
        "nothing was changed; settle them before anything moves: dogwatch pause --all --reason restored",
    ))
}

/// What could not be looked at is not clear.
fn verdict(reports: &[Report]) -> Result<(), Failure> {
    let blocked = reports.iter().filter(|report| report.blocked).count();
    if blocked > 0 {
        let text = format!("{blocked} of {} would be blocked now", nodes(reports.len()));
        return Err(Failure::new(Exit::Blocked, text));
    }
    let unknown = |report: &&Report| {
        let mut findings = report.findings.iter();
        findings.any(|found| found.severity == Severity::Unknown)
    };
    if reports.iter().any(|report| unknown(&report)) {
        let text = "nothing that could be looked at is in the way; not everything could";
        return Err(Failure::new(Exit::Failed, text).next("see what is marked unknown"));
    }
    Ok(())
}

fn nodes(count: usize) -> String {
    match count {
        1 => "1 node".into(),
        many => format!("{many} nodes"),
    }
}

fn print(format: Format, reports: &[Report]) -> Result<(), Failure> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, &reports)?,
        Format::Yaml => output::yaml(&mut out, &reports)?,
        Format::Table | Format::Wide => {
            let paint = Paint::of_stdout();
            reports
                .iter()
                .try_for_each(|report| write(&mut out, report, paint))?;
        }
    }
    Ok(out.flush()?)
}

fn write(out: &mut impl Write, report: &Report, paint: Paint) -> io::Result<()> {
    writeln!(out, "{}", paint.paint(Colour::Bold, &heading(report)))?;
    for found in &report.findings {
        let severity = format!("{:7}", found.severity.as_str());
        let severity = match colour(found.severity) {
            Some(colour) => paint.paint(colour, &severity),
            None => severity,
        };
        let (subject, what) = (printable(&found.subject), printable(&found.what));
        writeln!(out, "  {severity}  {subject}: {what}")?;
        if let Some(fix) = &found.fix {
            writeln!(out, "           → {}", printable(fix))?;
        }
    }
    Ok(())
}

fn heading(report: &Report) -> String {
    let blocks = report
        .findings
        .iter()
        .filter(|found| found.severity == Severity::Blocks)
        .count();
    match (&report.node, blocks) {
        (Some(node), 0) => format!("{node}: nothing found that blocks a reboot now"),
        (Some(node), 1) => format!("{node}: 1 thing blocks a reboot now"),
        (Some(node), many) => format!("{node}: {many} things block a reboot now"),
        (None, _) if report.findings.is_empty() => {
            "no record is contradicted by another one or by a Node".into()
        }
        (None, _) => format!("{} records are contradicted", report.findings.len()),
    }
}

fn colour(severity: Severity) -> Option<Colour> {
    match severity {
        Severity::Blocks => Some(Colour::Red),
        Severity::Unknown | Severity::Warns => Some(Colour::Yellow),
        Severity::Note => None,
    }
}
