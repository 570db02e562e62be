//! From what a schedule says to what came of it.

use super::{ScheduleExplanation, ScheduleView, advice, condition, is_unseen, whom};
use crate::Now;
use crate::explain::words::{age, due, moment, since};
use crate::explain::{ControllerSeen, Line, Topic};
use crate::schedule::{
    Current, Outlook, Plan, Record, Schedule, TargetEnd, on_clock, outlook, reason,
};

/// How many occurrences that lie ahead are told.
const AHEAD: usize = 3;
/// How many past ones.
const PAST: usize = 3;

/// Explains a schedule.
pub fn explain_schedule(view: &ScheduleView, now: Now) -> ScheduleExplanation {
    let schedule = &view.schedule;
    let outlook = outlook(schedule, AHEAD, now);
    let mut chain = Chain {
        schedule,
        now,
        lines: Vec::new(),
    };
    match &schedule.plan {
        Ok(plan) => chain.plan(plan, &outlook),
        Err(problems) => {
            for problem in problems {
                chain.add(Topic::Asked, format!("not understood: {problem}"));
            }
        }
    }
    chain.says(&outlook);
    if let Some(current) = schedule.status.current {
        chain.current(current);
    }
    chain.past();
    chain.controller(&view.controller);
    ScheduleExplanation {
        schedule: schedule.name.to_string(),
        summary: format!(
            "{}: {}: {}",
            schedule.name, outlook.because.reason, outlook.because.message
        ),
        advice: advice::advice(view, &outlook, now),
        chain: chain.lines,
    }
}

struct Chain<'a> {
    schedule: &'a Schedule,
    now: Now,
    lines: Vec<Line>,
}

impl Chain<'_> {
    fn add(&mut self, topic: Topic, text: impl Into<String>) {
        self.lines.push(Line {
            topic,
            text: text.into(),
        });
    }

    fn plan(&mut self, plan: &Plan, outlook: &Outlook) {
        self.add(Topic::Asked, format!("reboots, \"{}\"", plan.reason));
        for whom in whom(plan) {
            self.add(Topic::Whom, whom);
        }
        if plan.hosts.is_some() {
            let mode = plan.mode.as_str();
            let text = format!("hosts that carry no Node are switched off {mode}");
            self.add(Topic::Whom, text);
        }
        for at in &outlook.ahead {
            let text = format!("{}: {}", due(*at, self.now), on_clock(*at, &plan.zone));
            self.add(Topic::When, text);
        }
        if outlook.ahead.is_empty() && !plan.suspend {
            self.add(Topic::When, "no time lies ahead");
        }
        let late = age(plan.starting_deadline);
        self.add(Topic::Deadline, format!("up to {late} late is on time"));
    }

    /// What the controller wrote; and what it will write where it has not looked since.
    fn says(&mut self, outlook: &Outlook) {
        if is_unseen(self.schedule) {
            let text = "no controller has looked at this version of the schedule";
            self.add(Topic::Says, text);
        }
        let said = condition(self.schedule, reason::ACTIVE);
        if let Some(said) = said {
            self.add(Topic::Says, format!("{}: {}", said.reason, said.message));
        }
        let because = &outlook.because;
        if said.is_none_or(|said| said.message != because.message) {
            let text = format!("as it stands now: {}: {}", because.reason, because.message);
            self.add(Topic::Says, text);
        }
    }

    fn current(&mut self, current: Current) {
        let text = format!(
            "the requests of {} go out {}",
            moment(current.at),
            since(current.begun, self.now)
        );
        self.add(Topic::Phase, text);
    }

    /// Of the newest one with everybody who is listed.
    fn past(&mut self) {
        let schedule = self.schedule;
        for (index, record) in schedule.status.history.iter().take(PAST).enumerate() {
            let text = format!(
                "{}: {}: {}",
                moment(record.at),
                record.outcome.as_str(),
                record.message
            );
            self.add(Topic::Last, text);
            if index == 0 {
                self.targets(record);
            }
        }
    }

    fn targets(&mut self, record: &Record) {
        for target in &record.targets {
            self.add(Topic::Target, told(target));
        }
        let all = record.asked + record.noted + record.failed;
        let listed = u32::try_from(record.targets.len()).unwrap_or(u32::MAX);
        if all > listed {
            let more = all - listed;
            self.add(
                Topic::Target,
                format!("and {more} more, which are not listed"),
            );
        }
    }

    fn controller(&mut self, controller: &ControllerSeen) {
        if let Some(text) = controller.in_words(self.now) {
            self.add(Topic::Controller, text);
        }
    }
}

fn told(target: &TargetEnd) -> String {
    let (kind, name, result) = (target.kind.as_str(), &target.name, target.result.as_str());
    let why = &target.message;
    if why.is_empty() {
        format!("{kind} {name}: {result}")
    } else {
        format!("{kind} {name}: {result}: {why}")
    }
}
