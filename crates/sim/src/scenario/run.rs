//! Running a script.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Zoned;
use tokio::time::Instant;

use super::act::{self, LetIn};
use super::command::{Command, Line, Trouble};
use super::condition::Condition;
use super::each::combinations;
use super::explanation::explanation;
use super::parse::{BadLine, Script, bad, commands, parse};
use super::stage::{NotBuilt, Stage};
use super::timeline::{Timeline, clock};
use super::{controllers, metal};
use crate::chronicle::{Entry, lines};
use crate::clock::Clock as _;

/// What came of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What happened.
    pub text: String,
    /// What was expected and did not come, and promises that were broken. Empty is well.
    pub failures: Vec<String>,
}

/// Why a script could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// It cannot be read.
    #[error(transparent)]
    Parse(#[from] BadLine),
    /// Its stage could not be set.
    #[error("failed to begin")]
    Build(#[from] NotBuilt),
}

/// Runs a script: once, or once for each combination of the values of its `each`.
pub async fn run(text: &str) -> Result<Outcome, Failed> {
    let first = commands(text).next();
    let Some((number, line)) = first.filter(|(_, line)| line.starts_with("each ")) else {
        let (outcome, _) = run_once(&parse(text)?).await?;
        return Ok(outcome);
    };
    let combinations = combinations(line).map_err(|what| bad(number, line, what))?;
    let mut all = Outcome {
        text: String::new(),
        failures: Vec::new(),
    };
    for values in combinations {
        // The header keeps its line, so that numbers in errors are those of the file.
        let text = text.replacen(line, "", 1);
        let text = values.iter().fold(text, |text, (name, value)| {
            text.replace(&format!("${name}"), value)
        });
        let (outcome, end) = run_once(&parse(&text)?).await?;
        let label: Vec<String> = values
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let label = label.join(" ");
        all.failures.extend(
            outcome
                .failures
                .iter()
                .map(|failure| format!("{label}: {failure}")),
        );
        // Writing to a String cannot fail.
        let _ = writeln!(all.text, "{label}: {end}");
        if !outcome.failures.is_empty() {
            all.text.push_str(&outcome.text);
        }
    }
    Ok(all)
}

async fn run_once(script: &Script) -> Result<(Outcome, String), Failed> {
    let stage = Stage::build(&script.setup).await?;
    // Building the cluster took a moment, which the clock shows.
    let zone = script.setup.start.as_ref().map(Zoned::time_zone);
    let began = zone.map(|zone| stage.clock.now().to_zoned(zone.clone()));
    let mut run = Run {
        stage,
        timeline: Timeline::new(Duration::ZERO).by_clock(began),
        planned: BTreeMap::new(),
        armed: Vec::new(),
        failures: Vec::new(),
        start: Instant::now(),
    };
    // What there is at the start is no news.
    run.take_in(false);
    for line in &script.lines {
        run.line(line).await;
        if !run.failures.is_empty() {
            break;
        }
    }
    Ok(run.end())
}

struct Run {
    stage: Stage,
    timeline: Timeline,
    planned: BTreeMap<(Instant, usize), Line>,
    armed: Vec<(Condition, Line)>,
    failures: Vec<String>,
    start: Instant,
}

impl Run {
    async fn line(&mut self, line: &Line) {
        if line.command.is_told() {
            self.say_line(line);
        }
        match &line.command {
            Command::Run(time) => self.pass(*time, None).await,
            Command::WaitUntil { condition, at_most } => {
                self.pass(*at_most, Some(condition)).await;
                self.expect(line, condition);
            }
            Command::Explain(node) => self.explain(line, node).await,
            Command::Explained { node, text } => self.explained(line, node, text).await,
            Command::RunUntil(time) => self.pass(self.stage.time_to(*time), None).await,
            Command::OnHost { .. }
            | Command::Person(_)
            | Command::Trouble(_)
            | Command::Prometheus(_)
            | Command::Controller(_)
            | Command::Metal(_)
            | Command::When(..)
            | Command::After(..)
            | Command::BudgetsMayBreak
            | Command::Expect(_) => self.happen(line),
        }
        self.take_in(true);
    }

    /// What takes no time.
    fn happen(&mut self, line: &Line) {
        let done = match &line.command {
            Command::OnHost { node, deed } => act::on_host(&self.stage, node, deed),
            Command::Person(wish) => act::person(&self.stage, wish),
            Command::Prometheus(change) => {
                act::prometheus(&self.stage, change);
                Ok(())
            }
            Command::Controller(deed) => controllers::perform(&mut self.stage, deed),
            Command::Metal(deed) => metal::perform(&self.stage, deed),
            Command::Trouble(trouble) => {
                act::trouble(&self.stage, trouble).map(|later| self.let_in_later(line, later))
            }
            Command::When(condition, then) => {
                self.armed.push((condition.clone(), (**then).clone()));
                Ok(())
            }
            Command::After(time, then) => {
                self.plan(*time, (**then).clone());
                Ok(())
            }
            Command::BudgetsMayBreak => {
                self.stage.checks.budgets_may_break = true;
                Ok(())
            }
            Command::Expect(condition) => {
                self.take_in(true);
                self.expect(line, condition);
                Ok(())
            }
            Command::WaitUntil { .. }
            | Command::Run(_)
            | Command::RunUntil(_)
            | Command::Explain(_)
            | Command::Explained { .. } => Err("this takes time and cannot be planned".to_owned()),
        };
        if let Err(why) = done {
            self.fail(line, &why);
        }
    }

    fn let_in_later(&mut self, line: &Line, later: Option<LetIn>) {
        if let Some(LetIn { time, users }) = later {
            let text = format!("({} is over)", line.text);
            let command = Command::Trouble(Trouble::LetIn(users));
            self.plan(
                time,
                Line {
                    number: line.number,
                    text,
                    command,
                },
            );
        }
    }

    fn say_line(&mut self, line: &Line) {
        let text = format!("> {}", line.text);
        self.timeline.say(&text, &self.stage.names);
    }

    fn plan(&mut self, time: Duration, line: Line) {
        self.planned
            .insert((Instant::now() + time, self.planned.len()), line);
    }

    fn expect(&mut self, line: &Line, condition: &Condition) {
        if !condition.holds(&self.stage) {
            self.fail(line, &condition.instead(&self.stage));
        }
    }

    fn fail(&mut self, line: &Line, why: &str) {
        let failure = self
            .stage
            .names
            .shorten(&format!("line {}: {}: {why}", line.number, line.text));
        self.timeline
            .say(&format!("!! {failure}"), &self.stage.names);
        self.failures.push(failure);
    }

    /// Lets time pass, at the most until the condition is so.
    async fn pass(&mut self, time: Duration, until: Option<&Condition>) {
        let end = Instant::now() + time;
        loop {
            self.take_in(true);
            self.spring();
            if until.is_some_and(|condition| condition.holds(&self.stage)) || Instant::now() >= end
            {
                return;
            }
            let next = self
                .planned
                .keys()
                .next()
                .map_or(end, |(at, _)| (*at).min(end));
            if next > Instant::now() {
                self.stage.until(next).await;
            }
            self.do_planned();
        }
    }

    fn do_planned(&mut self) {
        while let Some(entry) = self.planned.first_entry() {
            if entry.key().0 > Instant::now() {
                return;
            }
            let line = entry.remove();
            self.take_in(true);
            self.say_line(&line);
            self.happen(&line);
        }
    }

    /// Does what waited for a condition that holds now.
    fn spring(&mut self) {
        while let Some(at) = self
            .armed
            .iter()
            .position(|(condition, _)| condition.holds(&self.stage))
        {
            let (_, line) = self.armed.remove(at);
            self.say_line(&line);
            self.happen(&line);
        }
    }

    /// Takes in what changed, and tells it.
    fn take_in(&mut self, tell: bool) {
        for (change, broken) in self.stage.look() {
            for entry in lines(&change, &mut self.stage.names) {
                if tell {
                    self.timeline.add(entry, &self.stage.names);
                }
            }
            for violation in broken {
                self.timeline
                    .add(Entry::line("!!", violation.0.clone()), &self.stage.names);
                self.failures.push(violation.0);
            }
        }
        for violation in self.stage.judge_commands() {
            self.timeline
                .add(Entry::line("!!", violation.0.clone()), &self.stage.names);
            self.failures.push(violation.0);
        }
        for entry in self.stage.machine_news() {
            self.timeline.add(entry, &self.stage.names);
        }
        for thought in self.stage.minds.take() {
            self.timeline.think(thought, &self.stage.names);
        }
    }

    async fn explain(&mut self, line: &Line, node: &str) {
        match explanation(&self.stage, node).await {
            Ok(lines) => {
                for text in lines {
                    self.timeline
                        .remark(&format!("        | {text}"), &self.stage.names);
                }
            }
            Err(why) => self.fail(line, &why),
        }
    }

    /// What `explain` says must contain this.
    async fn explained(&mut self, line: &Line, node: &str, text: &str) {
        self.take_in(true);
        match explanation(&self.stage, node).await {
            Ok(lines) if lines.iter().any(|line| line.contains(text)) => {}
            Ok(lines) => self.fail(line, &format!("it says: {}", lines.join(" | "))),
            Err(why) => self.fail(line, &why),
        }
    }

    fn end(mut self) -> (Outcome, String) {
        self.timeline.flush(&self.stage.names);
        for violation in self.stage.judge_metal() {
            self.timeline
                .remark(&format!("!! {}", violation.0), &self.stage.names);
            self.failures.push(violation.0);
        }
        let (stage, time) = (&self.stage, Instant::now() - self.start);
        let out: Vec<String> = stage
            .checks
            .groups()
            .map(|(group, most)| format!("{group} {most}"))
            .collect();
        let boots = stage
            .hosts
            .keys()
            .filter_map(|node| count(node, stage.checks.boots(node)));
        let commands = stage
            .hosts
            .keys()
            .filter_map(|node| count(node, stage.commands(node)));
        let list = |texts: Vec<String>| {
            if texts.is_empty() {
                "none".to_owned()
            } else {
                texts.join(", ")
            }
        };
        let (out, boots, commands) = (list(out), list(boots.collect()), list(commands.collect()));
        let kept = if self.failures.is_empty() {
            "all promises kept"
        } else {
            "FAILED"
        };
        self.timeline.remark(
            &format!("= out at the same time, at most: {out}"),
            &stage.names,
        );
        self.timeline.remark(
            &format!("= new boots: {boots}; reboot commands: {commands}"),
            &stage.names,
        );
        if let Some(hosts) = stage.hosts_end() {
            self.timeline.remark(&format!("= {hosts}"), &stage.names);
        }
        self.timeline.remark(&format!("= {kept}"), &stage.names);
        let end = format!(
            "{kept} after {}, new boots: {boots}; reboot commands: {commands}; out at most: {out}",
            clock(time)
        );
        (
            Outcome {
                text: self.timeline.into_text(),
                failures: self.failures,
            },
            end,
        )
    }
}

fn count(node: &str, count: usize) -> Option<String> {
    (count > 0).then(|| format!("{node} {count}"))
}
