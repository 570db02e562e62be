//! Explains what a NodeReboot waits for, or how it ended, from what the controller wrote.

#[cfg(test)]
mod tests;

use dogwatch_api::node_reboot::{RebootAttemptStatus, condition};
use jiff::SignedDuration;
use serde::Serialize;

use super::human_format::{format_due, format_since, format_time, quote_reason};
use super::{ExplanationLine, ExplanationTopic, ObservedController};
use crate::Now;
use crate::condition::CurrentCondition;
use crate::duration::format_duration;
use crate::node_reboot::{NodeRebootPlan, NodeRebootReason, ObservedNodeReboot};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRebootExplanation {
    pub node_reboot: String,
    pub summary: String,
    /// From the request to its attempts.
    pub chain: Vec<ExplanationLine>,
    /// What a person can do; empty when waiting is all.
    pub advice: Vec<String>,
}

pub fn explain_node_reboot(
    reboot: &ObservedNodeReboot,
    controller: &ObservedController,
    now: Now,
) -> NodeRebootExplanation {
    let mut explainer = NodeRebootExplainer {
        reboot,
        now,
        lines: Vec::new(),
    };
    explainer.add_request();
    explainer.add_decision();
    explainer.add_attempts();
    explainer.add_end();
    if let Some(text) = controller.to_sentence(now) {
        explainer.add_line(ExplanationTopic::Controller, text);
    }
    NodeRebootExplanation {
        node_reboot: reboot.name.clone(),
        summary: summarize_reboot(reboot),
        chain: explainer.lines,
        advice: list_advice(reboot, controller, now),
    }
}

struct NodeRebootExplainer<'a> {
    reboot: &'a ObservedNodeReboot,
    now: Now,
    lines: Vec<ExplanationLine>,
}

impl NodeRebootExplainer<'_> {
    fn add_line(&mut self, topic: ExplanationTopic, text: impl Into<String>) {
        let text = text.into();
        self.lines.push(ExplanationLine { topic, text });
    }

    fn add_request(&mut self) {
        match &self.reboot.plan {
            Ok(plan) => self.add_plan(plan),
            Err(problems) => {
                for problem in problems {
                    self.add_line(ExplanationTopic::Asked, format!("invalid: {problem}"));
                }
            }
        }
    }

    fn add_plan(&mut self, plan: &NodeRebootPlan) {
        let by = plan.requester.as_deref().map(|by| format!(" by {by}"));
        let text = format!(
            "method {} for node {}{}: {}, {}",
            plan.method.as_str(),
            plan.node,
            by.unwrap_or_default(),
            quote_reason(&plan.reason),
            format_since(self.reboot.created, self.now)
        );
        self.add_line(ExplanationTopic::Asked, text);
        if let Some(at) = plan.not_before {
            let text = format!("not before: {}", format_due(at, self.now));
            self.add_line(ExplanationTopic::When, text);
        }
        if let Some(success) = &plan.success {
            let wanted = success.conditions.iter();
            let wanted: Vec<String> = wanted
                .map(|one| format!("{}={}", one.kind, one.status))
                .collect();
            let within = format_duration(success.within);
            let text = format!("success: {} within {within}", wanted.join(", "));
            self.add_line(ExplanationTopic::Condition, text);
        }
        for method in &plan.escalation {
            let text = format!("if success is not reached, method {}", method.as_str());
            self.add_line(ExplanationTopic::Condition, text);
        }
        if let Some(at) = plan.deadline {
            let text = format!(
                "given up if nothing has begun: {}",
                format_due(at, self.now)
            );
            self.add_line(ExplanationTopic::Deadline, text);
        }
    }

    fn add_decision(&mut self) {
        let reboot = self.reboot;
        if let Some(problem) = &reboot.status_problem {
            let text = format!("the status cannot be read: {problem}");
            self.add_line(ExplanationTopic::Says, text);
        }
        if is_unobserved(reboot) {
            let text = "no controller has read this version of the NodeReboot";
            self.add_line(ExplanationTopic::Says, text);
        }
        if let Some(said) = find_condition(reboot, condition::PROGRESSING) {
            let text = format!("{}: {}", said.reason, said.message);
            self.add_line(ExplanationTopic::Says, text);
        }
    }

    fn add_attempts(&mut self) {
        for (index, attempt) in self.reboot.status.attempts.iter().enumerate() {
            let text = format!("{}. {}", index + 1, describe_attempt(attempt));
            self.add_line(ExplanationTopic::Step, text);
        }
    }

    fn add_end(&mut self) {
        let ended = self.reboot.final_condition();
        let ended = ended.and_then(|ended| ended.last_transition);
        if let (Some(ended), Ok(plan)) = (ended, &self.reboot.plan) {
            let ttl = SignedDuration::try_from(plan.ttl).unwrap_or(SignedDuration::MAX);
            if let Ok(until) = ended.checked_add(ttl) {
                let text = format!("the object is deleted {}", format_due(until, self.now));
                self.add_line(ExplanationTopic::Kept, text);
            }
        }
    }
}

pub(super) fn find_condition<'a>(
    reboot: &'a ObservedNodeReboot,
    kind: &str,
) -> Option<&'a CurrentCondition> {
    let mut conditions = reboot.status.conditions.iter();
    conditions.find(|condition| condition.kind == kind)
}

/// Whether the controller's conditions are about another version of the object.
pub(super) fn is_unobserved(reboot: &ObservedNodeReboot) -> bool {
    reboot.status.observed_generation != reboot.generation
}

fn summarize_reboot(reboot: &ObservedNodeReboot) -> String {
    let name = &reboot.name;
    match reboot.final_condition() {
        Some(ended) if ended.status == "True" => format!("{name}: succeeded: {}", ended.reason),
        Some(ended) => format!("{name}: failed: {}", ended.reason),
        None => {
            let said = find_condition(reboot, condition::PROGRESSING);
            let reason = said.map(|said| format!(": {}", said.reason));
            let phase = reboot.status.phase.as_str();
            format!("{name}: {phase}{}", reason.unwrap_or_default())
        }
    }
}

fn describe_attempt(attempt: &RebootAttemptStatus) -> String {
    let power = attempt.power.as_ref();
    let times = [
        ("begun", Some(attempt.started_at)),
        ("drained", attempt.drained_at),
        ("off requested", power.map(|power| power.requested_at)),
        ("off proved", power.and_then(|power| power.off_at)),
        ("rebooted", attempt.rebooted_at),
        ("back", attempt.finished_at),
    ];
    let times = times
        .into_iter()
        .filter_map(|(what, at)| Some(format!("{what} {}", format_time(at?))));
    let times: Vec<String> = times.collect();
    let outcome = attempt.outcome.as_deref().unwrap_or("under way");
    let host = power.map(|power| format!(" of host {}", power.host));
    format!(
        "{}{}: {outcome}: {}",
        attempt.method.as_str(),
        host.unwrap_or_default(),
        times.join(", ")
    )
}

/// The most likely help first.
fn list_advice(
    reboot: &ObservedNodeReboot,
    controller: &ObservedController,
    now: Now,
) -> Vec<String> {
    let said = find_condition(reboot, condition::PROGRESSING);
    let reason = said.and_then(|said| NodeRebootReason::parse(&said.reason));
    let step = reason.and_then(NodeRebootReason::next_step);
    let is_idle = is_unobserved(reboot);
    let start = controller.controller_advice(is_idle, "power or healer", now);
    let start = start.filter(|_| !reboot.is_final());
    step.map(str::to_owned).into_iter().chain(start).collect()
}
