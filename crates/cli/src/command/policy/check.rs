//! Implements `dogwatch policy check`.

use std::collections::BTreeMap;
use std::io::Write;

use dogwatch_core::explain::join_first_names;
use dogwatch_core::policy::Policy;
use jiff::Timestamp;
use serde::Serialize;

use super::PolicyCheckArgs;
use super::cluster_nodes::read_ruled_nodes;
use super::conflicts::find_conflicts;
use super::description::{NextWindow, describe_policy, never_opens_problem, next_windows};
use super::policy_files::{PolicyFiles, PolicyInFile, PolicyProblem, read_policy_files};
use crate::args::ClusterArgs;
use crate::cluster::current_time;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_document;
use crate::paint::{TerminalColour, TerminalPaint};
use dogwatch_core::printable::printable_text;

/// How many nodes of a policy are named.
const NAMED_NODES: usize = 5;

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    pub policies: Vec<CheckedPolicy>,
    /// Problems that belong to no policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<PolicyProblem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Why the nodes that the policies would rule are not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_unknown: Option<String>,
    /// Objects of other kinds in the files.
    pub others: usize,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedPolicy {
    pub name: String,
    pub file: String,
    pub line: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<PolicyProblem>,
    /// What it means. Absent if it has problems: it then lets nothing begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meaning: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_windows: Vec<NextWindow>,
    /// The nodes of the cluster that it would rule; absent if no cluster was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<String>>,
}

/// Fails if a policy has a problem; conflicts are only said.
pub async fn run(cluster: &ClusterArgs, args: &PolicyCheckArgs) -> Result<(), CommandFailure> {
    let files = read_policy_files(&args.files)?;
    let policies: Vec<Policy> = files.policies.iter().map(|it| it.policy.clone()).collect();
    let ruled = if args.no_cluster || policies.is_empty() {
        Err("no cluster was asked".to_owned())
    } else {
        read_ruled_nodes(cluster, &policies).await
    };
    let report = make_report(files, ruled, current_time().wall);
    print_document(args.output.format, &report, |out| {
        Ok(write_report(out, &report, TerminalPaint::of_stdout())?)
    })?;
    report.exit_result()
}

pub fn make_report(
    files: PolicyFiles,
    ruled: Result<BTreeMap<String, Vec<String>>, String>,
    now: Timestamp,
) -> PolicyReport {
    let conflicts = find_conflicts(&files.policies);
    let checked = files.policies.into_iter();
    let checked = checked.map(|policy| check_policy(policy, ruled.as_ref().ok(), now));
    PolicyReport {
        policies: checked.collect(),
        problems: files.problems,
        conflicts,
        cluster_unknown: ruled.err(),
        others: files.others,
    }
}

fn check_policy(
    it: PolicyInFile,
    ruled: Option<&BTreeMap<String, Vec<String>>>,
    now: Timestamp,
) -> CheckedPolicy {
    let name = it.policy.name.to_string();
    let mut problems = it.problems;
    let never = never_opens_problem(&it.policy, now).filter(|_| problems.is_empty());
    problems.extend(never.map(|message| PolicyProblem {
        file: it.file.clone(),
        line: it.line,
        message,
    }));
    let (meaning, next_windows) = if problems.is_empty() {
        let windows = next_windows(&it.policy, it.time_zone.as_deref(), now);
        (describe_policy(&it.policy, now), windows)
    } else {
        (Vec::new(), Vec::new())
    };
    CheckedPolicy {
        nodes: ruled.map(|ruled| ruled.get(&name).cloned().unwrap_or_default()),
        meaning,
        next_windows,
        name,
        file: it.file,
        line: it.line,
        problems,
    }
}

impl PolicyReport {
    fn all_problems(&self) -> impl Iterator<Item = &PolicyProblem> {
        let of_policies = self.policies.iter().flat_map(|policy| &policy.problems);
        self.problems.iter().chain(of_policies)
    }

    pub fn exit_result(&self) -> Result<(), CommandFailure> {
        let problems = self.all_problems().count();
        if problems > 0 {
            let text = match problems {
                1 => "1 problem was found".to_owned(),
                more => format!("{more} problems were found"),
            };
            return Err(CommandFailure::new(CliExitCode::Failed, text)
                .with_next_step("a policy with a problem lets no reboot begin: correct it first"));
        }
        if self.policies.is_empty() {
            let text = "there is no RebootPolicy in the files";
            return Err(CommandFailure::new(CliExitCode::Usage, text));
        }
        Ok(())
    }
}

pub fn write_report(
    out: &mut impl Write,
    report: &PolicyReport,
    paint: TerminalPaint,
) -> std::io::Result<()> {
    for problem in &report.problems {
        write_problem(out, problem, paint)?;
    }
    for policy in &report.policies {
        write_policy(out, policy, paint)?;
    }
    for conflict in &report.conflicts {
        let line = printable_text(&format!("conflict: {conflict}"));
        writeln!(out, "{}", paint.paint_text(TerminalColour::Yellow, &line))?;
    }
    if report.others > 0 {
        writeln!(
            out,
            "{} objects of other kinds were left out",
            report.others
        )?;
    }
    if let (Some(why), false) = (&report.cluster_unknown, report.policies.is_empty()) {
        let line = format!("which nodes each policy would rule is not known: {why}");
        writeln!(out, "{}", printable_text(&line))?;
    }
    Ok(())
}

fn write_policy(
    out: &mut impl Write,
    policy: &CheckedPolicy,
    paint: TerminalPaint,
) -> std::io::Result<()> {
    let title = printable_text(&format!(
        "RebootPolicy {} ({}:{})",
        policy.name, policy.file, policy.line
    ));
    writeln!(out, "{}", paint.paint_text(TerminalColour::Bold, &title))?;
    for problem in &policy.problems {
        write_problem(out, problem, paint)?;
    }
    for sentence in &policy.meaning {
        writeln!(out, "  {}", printable_text(sentence))?;
    }
    for (index, window) in policy.next_windows.iter().enumerate() {
        let label = if index == 0 { "next windows" } else { "" };
        writeln!(out, "  {label:<12}  {}", window.text)?;
    }
    match policy.nodes.as_deref() {
        None => {}
        Some([]) => writeln!(out, "  It would rule no node of the cluster.")?,
        Some(nodes) => {
            let names = printable_text(&join_first_names(nodes, NAMED_NODES));
            let count = match nodes.len() {
                1 => "1 node".to_owned(),
                more => format!("{more} nodes"),
            };
            writeln!(out, "  It would rule {count} of the cluster: {names}.")?;
        }
    }
    writeln!(out)
}

fn write_problem(
    out: &mut impl Write,
    problem: &PolicyProblem,
    paint: TerminalPaint,
) -> std::io::Result<()> {
    let text = format!("{}:{}: {}", problem.file, problem.line, problem.message);
    let text = paint.paint_text(TerminalColour::Red, &printable_text(&text));
    writeln!(out, "  {text}")
}
