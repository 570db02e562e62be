//! The chain of a schedule's explanation, from its spec to the results.

use super::{
    ScheduleExplanation, ScheduleReportInput, advice, describe_targets, find_condition,
    is_unobserved,
};
use crate::Now;
use crate::explain::human_format::{format_age, format_due, format_since, format_time};
use crate::explain::{ExplanationLine, ExplanationTopic, ObservedController};
use crate::schedule::{
    ACTIVE_CONDITION, CurrentOccurrence, OccurrenceRecord, Schedule, ScheduleForecast,
    SchedulePlan, TargetOutcome, describe_failure, describe_reboots, forecast_schedule,
    format_in_zone, reboots_reason,
};

const MAX_AHEAD_OCCURRENCES: usize = 3;
const MAX_PAST_OCCURRENCES: usize = 3;

pub fn explain_schedule(view: &ScheduleReportInput, now: Now) -> ScheduleExplanation {
    let schedule = &view.schedule;
    let outlook = forecast_schedule(schedule, MAX_AHEAD_OCCURRENCES, now);
    let mut chain = ScheduleExplainer {
        schedule,
        now,
        lines: Vec::new(),
    };
    match &schedule.plan {
        Ok(plan) => chain.add_plan(plan, &outlook),
        Err(problems) => {
            for problem in problems {
                chain.add_line(ExplanationTopic::Asked, format!("invalid: {problem}"));
            }
        }
    }
    chain.add_decision(&outlook);
    if let Some(current) = schedule.status.current {
        chain.add_current(current);
    }
    chain.add_past();
    chain.add_controller(&view.controller);
    ScheduleExplanation {
        schedule: schedule.name.to_string(),
        summary: format!(
            "{}: {}: {}",
            schedule.name, outlook.because.reason, outlook.because.message
        ),
        advice: advice::schedule_advice(view, &outlook, now),
        chain: chain.lines,
    }
}

struct ScheduleExplainer<'a> {
    schedule: &'a Schedule,
    now: Now,
    lines: Vec<ExplanationLine>,
}

impl ScheduleExplainer<'_> {
    fn add_line(&mut self, topic: ExplanationTopic, text: impl Into<String>) {
        self.lines.push(ExplanationLine {
            topic,
            text: text.into(),
        });
    }

    fn add_plan(&mut self, plan: &SchedulePlan, outlook: &ScheduleForecast) {
        self.add_line(
            ExplanationTopic::Asked,
            format!("reboots, \"{}\"", plan.reason),
        );
        for whom in describe_targets(plan) {
            self.add_line(ExplanationTopic::Whom, whom);
        }
        if plan.hosts.is_some() {
            let mode = plan.mode.as_str();
            let text = format!("hosts without a Node are switched off {mode}");
            self.add_line(ExplanationTopic::Whom, text);
        }
        for at in &outlook.ahead {
            let text = format!(
                "{}: {}",
                format_due(*at, self.now),
                format_in_zone(*at, &plan.zone)
            );
            self.add_line(ExplanationTopic::When, text);
        }
        if outlook.ahead.is_empty() && !plan.suspend {
            self.add_line(ExplanationTopic::When, "no occurrence is left");
        }
        let late = format_age(plan.starting_deadline);
        self.add_line(
            ExplanationTopic::Deadline,
            format!("an occurrence may begin up to {late} late"),
        );
    }

    /// The controller's condition, and what it would say now if the schedule has changed since.
    fn add_decision(&mut self, outlook: &ScheduleForecast) {
        if is_unobserved(self.schedule) {
            let text = "no controller has read this version of the schedule";
            self.add_line(ExplanationTopic::Says, text);
        }
        let said = find_condition(self.schedule, ACTIVE_CONDITION);
        if let Some(said) = said {
            self.add_line(
                ExplanationTopic::Says,
                format!("{}: {}", said.reason, said.message),
            );
        }
        let because = &outlook.because;
        if said.is_none_or(|said| said.message != because.message) {
            let text = format!("current state: {}: {}", because.reason, because.message);
            self.add_line(ExplanationTopic::Says, text);
        }
    }

    fn add_current(&mut self, current: CurrentOccurrence) {
        let text = format!(
            "the requests of {} are issued {}",
            format_time(current.at),
            format_since(current.begun, self.now)
        );
        self.add_line(ExplanationTopic::Phase, text);
    }

    /// Past occurrences; the newest one with all listed targets.
    fn add_past(&mut self) {
        let schedule = self.schedule;
        for (index, record) in schedule
            .status
            .history
            .iter()
            .take(MAX_PAST_OCCURRENCES)
            .enumerate()
        {
            let text = format!(
                "{}: {}: {}",
                format_time(record.at),
                record.outcome.as_str(),
                record.message
            );
            self.add_line(ExplanationTopic::Last, text);
            self.add_reboots(record, index == 0);
            if index == 0 {
                self.add_targets(record);
            }
        }
    }

    /// How the NodeReboots ended; of the newest occurrence also those that did not succeed.
    fn add_reboots(&mut self, record: &OccurrenceRecord, is_newest: bool) {
        let Some(reboots) = &record.reboots else {
            return;
        };
        let text = format!(
            "{}: {}: {}",
            format_time(record.at),
            reboots_reason(reboots),
            describe_reboots(reboots)
        );
        self.add_line(ExplanationTopic::Last, text);
        for failure in reboots.failures.iter().filter(|_| is_newest) {
            self.add_line(ExplanationTopic::Target, describe_failure(failure));
        }
    }

    fn add_targets(&mut self, record: &OccurrenceRecord) {
        for target in &record.targets {
            self.add_line(ExplanationTopic::Target, describe_target(target));
        }
        let all = record.asked + record.noted + record.failed;
        let listed = u32::try_from(record.targets.len()).unwrap_or(u32::MAX);
        if all > listed {
            let more = all - listed;
            self.add_line(
                ExplanationTopic::Target,
                format!("and {more} more, which are not listed"),
            );
        }
    }

    fn add_controller(&mut self, controller: &ObservedController) {
        if let Some(text) = controller.to_sentence(self.now) {
            self.add_line(ExplanationTopic::Controller, text);
        }
    }
}

fn describe_target(target: &TargetOutcome) -> String {
    let (kind, name, result) = (target.kind.as_str(), &target.name, target.result.as_str());
    let why = &target.message;
    match &target.node_reboot {
        Some(made) => format!("{kind} {name}: {result}: NodeReboot {made}"),
        None if why.is_empty() => format!("{kind} {name}: {result}"),
        None => format!("{kind} {name}: {result}: {why}"),
    }
}
