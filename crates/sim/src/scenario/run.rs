//! Runs a script.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use dogwatch_kubesim::clock::ClusterClock as _;
use jiff::Zoned;
use tokio::time::Instant;

use super::combinations::{ExpandedScript, expand_script};
use super::command::{ClusterDisruption, ScriptCommand, ScriptLine};
use super::condition::ScenarioCondition;
use super::fleet_view::NotedEstimate;
use super::perform::{self, PartitionEnd};
use super::scenario_cluster::{ScenarioBuildError, ScenarioCluster};
use super::script_parser::{ParsedScript, ScriptError, parse_script};
use super::timeline::{ScenarioTimeline, format_clock};
use super::{bare_metal_hosts, controllers};
use crate::observer::{ObserverEntry, PromiseViolation, change_entries};

/// The result of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioOutcome {
    pub text: String,
    /// Expectations that were not met, and broken promises. Empty: the script succeeded.
    pub failures: Vec<String>,
}

/// Why a script could not run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error(transparent)]
    Parse(#[from] ScriptError),
    #[error("failed to begin")]
    Build(#[from] ScenarioBuildError),
}

/// Runs a script: once, or once for each combination of the values of its `each`.
pub async fn run_script(text: &str) -> Result<ScenarioOutcome, ScenarioError> {
    let scripts = expand_script(text)?;
    if let [only] = scripts.as_slice()
        && only.values.is_empty()
    {
        let (outcome, _) = run_once(&parse_script(&only.text)?).await?;
        return Ok(outcome);
    }
    let mut all = ScenarioOutcome {
        text: String::new(),
        failures: Vec::new(),
    };
    for ExpandedScript { values, text } in scripts {
        let (outcome, end) = run_once(&parse_script(&text)?).await?;
        let failures = outcome.failures.iter();
        all.failures
            .extend(failures.map(|failure| format!("{values}: {failure}")));
        // Writing to a String cannot fail.
        let _ = writeln!(all.text, "{values}: {end}");
        if !outcome.failures.is_empty() {
            all.text.push_str(&outcome.text);
        }
    }
    Ok(all)
}

async fn run_once(script: &ParsedScript) -> Result<(ScenarioOutcome, String), ScenarioError> {
    let mut run = ScenarioRun::start_run(script).await?;
    for line in &script.lines {
        run.run_line(line).await;
        if run.has_failed() {
            break;
        }
    }
    Ok(run.into_outcome())
}

pub(super) struct ScenarioRun {
    pub(super) stage: ScenarioCluster,
    pub(super) timeline: ScenarioTimeline,
    planned: BTreeMap<(Instant, usize), ScriptLine>,
    armed: Vec<(ScenarioCondition, ScriptLine)>,
    /// Expectations that were not met.
    pub(super) failures: Vec<String>,
    /// Broken promises.
    pub(super) violations: Vec<String>,
    /// How much longer than the script says it waits.
    pub(super) patience: Duration,
    start: Instant,
    /// The estimate that the script noted last.
    pub(super) estimate: Option<NotedEstimate>,
}

impl ScenarioRun {
    pub(super) async fn start_run(script: &ParsedScript) -> Result<Self, ScenarioError> {
        let stage = ScenarioCluster::build_cluster(&script.setup).await?;
        // To build the cluster took some time, which the clock includes.
        let zone = script.setup.start.as_ref().map(Zoned::time_zone);
        let began = zone.map(|zone| stage.clock.now().to_zoned(zone.clone()));
        let mut run = Self {
            stage,
            timeline: ScenarioTimeline::new(Duration::ZERO).with_clock(began),
            planned: BTreeMap::new(),
            armed: Vec::new(),
            failures: Vec::new(),
            violations: Vec::new(),
            patience: Duration::ZERO,
            start: Instant::now(),
            estimate: None,
        };
        // The initial state is not reported.
        run.observe_changes(false);
        Ok(run)
    }

    fn has_failed(&self) -> bool {
        !(self.failures.is_empty() && self.violations.is_empty())
    }

    pub(super) async fn run_line(&mut self, line: &ScriptLine) {
        if line.command.is_shown_in_timeline() {
            self.show_line(line);
        }
        match &line.command {
            ScriptCommand::Run(time) => self.pass_time(*time, None).await,
            ScriptCommand::RunOrUntil(time, condition) => {
                self.pass_time(*time, Some(condition)).await;
            }
            ScriptCommand::WaitUntil { condition, at_most } => {
                self.pass_time(*at_most + self.patience, Some(condition))
                    .await;
                self.expect_condition(line, condition);
            }
            ScriptCommand::Explain(node) => self.show_explanation(line, node).await,
            ScriptCommand::ExpectExplanation { node, text } => {
                self.expect_explanation(line, node, text).await;
            }
            ScriptCommand::View(deed) => self.run_view_command(line, deed).await,
            ScriptCommand::RunUntil(time) => {
                self.pass_time(self.stage.duration_until(*time), None).await;
            }
            ScriptCommand::OnHost { .. }
            | ScriptCommand::User(_)
            | ScriptCommand::Disruption(_)
            | ScriptCommand::Prometheus(_)
            | ScriptCommand::Controller(_)
            | ScriptCommand::BareMetal(_)
            | ScriptCommand::When(..)
            | ScriptCommand::After(..)
            | ScriptCommand::Unless(..)
            | ScriptCommand::BudgetsMayBreak
            | ScriptCommand::Expect(_) => self.perform_command(line),
        }
        self.observe_changes(true);
    }

    /// Performs a command that takes no time.
    fn perform_command(&mut self, line: &ScriptLine) {
        let done = match &line.command {
            ScriptCommand::OnHost { node, deed } => {
                perform::apply_host_command(&self.stage, node, deed)
            }
            ScriptCommand::User(wish) => perform::apply_user_command(&self.stage, wish),
            ScriptCommand::Prometheus(change) => {
                perform::apply_prometheus_change(&self.stage, change);
                Ok(())
            }
            ScriptCommand::Controller(deed) => {
                controllers::apply_controller_command(&mut self.stage, deed)
            }
            ScriptCommand::BareMetal(deed) => {
                bare_metal_hosts::apply_bare_metal_command(&self.stage, deed)
            }
            ScriptCommand::Disruption(trouble) => perform::apply_disruption(&self.stage, trouble)
                .map(|later| self.schedule_partition_end(line, later)),
            ScriptCommand::When(condition, then) => {
                self.armed.push((condition.clone(), (**then).clone()));
                Ok(())
            }
            ScriptCommand::After(time, then) => {
                self.schedule_line(*time, (**then).clone());
                Ok(())
            }
            ScriptCommand::Unless(condition, then) => {
                self.observe_changes(true);
                if !condition.is_met(&self.stage) {
                    self.show_line(then);
                    self.perform_command(then);
                }
                Ok(())
            }
            ScriptCommand::BudgetsMayBreak => {
                self.stage.checks.budgets_may_break = true;
                Ok(())
            }
            ScriptCommand::Expect(condition) => {
                self.observe_changes(true);
                self.expect_condition(line, condition);
                Ok(())
            }
            ScriptCommand::WaitUntil { .. }
            | ScriptCommand::Run(_)
            | ScriptCommand::RunUntil(_)
            | ScriptCommand::RunOrUntil(..)
            | ScriptCommand::Explain(_)
            | ScriptCommand::View(_)
            | ScriptCommand::ExpectExplanation { .. } => {
                Err("this command takes time, so it cannot follow `when` or `after`".to_owned())
            }
        };
        if let Err(why) = done {
            self.record_failure(line, &why);
        }
    }

    fn schedule_partition_end(&mut self, line: &ScriptLine, later: Option<PartitionEnd>) {
        if let Some(PartitionEnd { time, users }) = later {
            let text = format!("({} is over)", line.text);
            let command = ScriptCommand::Disruption(ClusterDisruption::EndPartition(users));
            self.schedule_line(
                time,
                ScriptLine {
                    number: line.number,
                    text,
                    command,
                },
            );
        }
    }

    fn show_line(&mut self, line: &ScriptLine) {
        let text = format!("> {}", line.text);
        self.timeline.add_line(&text, &self.stage.short_names);
    }

    fn schedule_line(&mut self, time: Duration, line: ScriptLine) {
        self.planned
            .insert((Instant::now() + time, self.planned.len()), line);
    }

    fn expect_condition(&mut self, line: &ScriptLine, condition: &ScenarioCondition) {
        if !condition.is_met(&self.stage) {
            self.record_failure(line, &condition.actual_state(&self.stage));
        }
    }

    pub(super) fn record_failure(&mut self, line: &ScriptLine, why: &str) {
        let failure = self
            .stage
            .short_names
            .shorten_ids(&format!("line {}: {}: {why}", line.number, line.text));
        self.timeline
            .add_line(&format!("!! {failure}"), &self.stage.short_names);
        self.failures.push(failure);
    }

    /// Lets time pass, at most until the condition is met.
    pub(super) async fn pass_time(&mut self, time: Duration, until: Option<&ScenarioCondition>) {
        let end = Instant::now() + time;
        loop {
            self.observe_changes(true);
            self.run_armed_lines();
            if until.is_some_and(|condition| condition.is_met(&self.stage)) || Instant::now() >= end
            {
                return;
            }
            let next = self
                .planned
                .keys()
                .next()
                .map_or(end, |(at, _)| (*at).min(end));
            if next > Instant::now() {
                self.stage.wait_until(next).await;
            }
            self.run_scheduled_lines();
        }
    }

    fn run_scheduled_lines(&mut self) {
        while let Some(entry) = self.planned.first_entry() {
            if entry.key().0 > Instant::now() {
                return;
            }
            let line = entry.remove();
            self.observe_changes(true);
            self.show_line(&line);
            self.perform_command(&line);
        }
    }

    /// Runs the lines whose condition is met now.
    fn run_armed_lines(&mut self) {
        while let Some(at) = self
            .armed
            .iter()
            .position(|(condition, _)| condition.is_met(&self.stage))
        {
            let (_, line) = self.armed.remove(at);
            self.show_line(&line);
            self.perform_command(&line);
        }
    }

    /// Takes in all changes, and writes them to the timeline if `tell` is set.
    pub(super) fn observe_changes(&mut self, tell: bool) {
        for (change, broken) in self.stage.observe_changes() {
            for entry in change_entries(&change, &mut self.stage.short_names) {
                if tell {
                    self.timeline.add_entry(entry, &self.stage.short_names);
                }
            }
            for violation in broken {
                self.record_violation(violation);
            }
        }
        for violation in self.stage.judge_commands() {
            self.record_violation(violation);
        }
        for text in self.stage.faults.take_call_loops() {
            self.record_violation(PromiseViolation(text));
        }
        for entry in self.stage.take_machine_entries() {
            self.timeline.add_entry(entry, &self.stage.short_names);
        }
        for thought in self.stage.decision_log.take_entries() {
            self.timeline.add_decision(thought, &self.stage.short_names);
        }
    }

    fn record_violation(&mut self, violation: PromiseViolation) {
        let entry = ObserverEntry::from_line("!!", violation.0.clone());
        self.timeline.add_entry(entry, &self.stage.short_names);
        self.violations.push(violation.0);
    }

    pub(super) fn into_outcome(mut self) -> (ScenarioOutcome, String) {
        self.timeline.flush_pending(&self.stage.short_names);
        for violation in self.stage.judge_hosts() {
            self.timeline
                .add_remark(&format!("!! {}", violation.0), &self.stage.short_names);
            self.violations.push(violation.0);
        }
        let (stage, time) = (&self.stage, Instant::now() - self.start);
        let out: Vec<String> = stage
            .checks
            .groups_with_most_out()
            .map(|(group, most)| format!("{group} {most}"))
            .collect();
        let boots = stage
            .hosts
            .keys()
            .filter_map(|node| count_text(node, stage.checks.count_boots(node)));
        let commands = stage
            .hosts
            .keys()
            .filter_map(|node| count_text(node, stage.count_reboot_commands(node)));
        let list = |texts: Vec<String>| {
            if texts.is_empty() {
                "none".to_owned()
            } else {
                texts.join(", ")
            }
        };
        let (out, boots, commands) = (list(out), list(boots.collect()), list(commands.collect()));
        let kept = if self.has_failed() {
            "FAILED"
        } else {
            "all promises kept"
        };
        self.timeline.add_remark(
            &format!("= out at the same time, at most: {out}"),
            &stage.short_names,
        );
        self.timeline.add_remark(
            &format!("= new boots: {boots}; reboot commands: {commands}"),
            &stage.short_names,
        );
        if let Some(hosts) = stage.hosts_summary() {
            self.timeline
                .add_remark(&format!("= {hosts}"), &stage.short_names);
        }
        self.timeline
            .add_remark(&format!("= {kept}"), &stage.short_names);
        let end = format!(
            "{kept} after {}, new boots: {boots}; reboot commands: {commands}; out at most: {out}",
            format_clock(time)
        );
        (
            ScenarioOutcome {
                text: self.timeline.into_text(),
                failures: [self.failures, self.violations].concat(),
            },
            end,
        )
    }
}

fn count_text(node: &str, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{node} {count}"))
}
