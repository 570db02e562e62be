//! Explains when a schedule issues requests, why it does not, and with what results, from what is
//! on the cluster.
//!
//! Future occurrences are computed here by the decision's own functions. Everything else comes from
//! what the controller wrote: conditions, and the records of past occurrences.

mod advice;
mod chain;
mod row;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use chain::explain_schedule;
pub use row::{ScheduleRow, schedule_rows};

use super::{ExplanationLine, ObservedController};
use crate::condition::CurrentCondition;
use crate::schedule::{Schedule, SchedulePlan, ScheduleTargetKind, TargetChoice};

/// Everything that the explanation of a schedule is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleReportInput {
    pub schedule: Schedule,
    pub controller: ObservedController,
}

/// When a schedule issues requests, why it does not, and with what results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanation {
    /// `NAMESPACE/NAME`.
    pub schedule: String,
    pub summary: String,
    /// From the spec to the results.
    pub chain: Vec<ExplanationLine>,
    /// What a person can do; empty when waiting is all.
    pub advice: Vec<String>,
}

fn find_condition<'a>(schedule: &'a Schedule, kind: &str) -> Option<&'a CurrentCondition> {
    let mut conditions = schedule.status.conditions.iter();
    conditions.find(|condition| condition.kind == kind)
}

/// Whether the controller's conditions are about another version of the schedule.
fn is_unobserved(schedule: &Schedule) -> bool {
    schedule.status.observed_generation != schedule.generation
}

/// The targets, one text for each kind.
fn describe_targets(plan: &SchedulePlan) -> Vec<String> {
    let kinds = [
        (ScheduleTargetKind::Node, "every Node", &plan.nodes),
        (
            ScheduleTargetKind::Host,
            "every BareMetalHost here",
            &plan.hosts,
        ),
    ];
    let chosen = kinds
        .into_iter()
        .filter_map(|(kind, all, chosen)| Some((kind, all, chosen.as_ref()?)));
    chosen
        .flat_map(|(kind, all, chosen)| describe_target_kind(kind, all, chosen))
        .collect()
}

fn describe_target_kind(kind: ScheduleTargetKind, all: &str, chosen: &TargetChoice) -> Vec<String> {
    /// More targets would make the line too long.
    const MAX_NAMED_TARGETS: usize = 5;
    let kind = kind.as_str();
    let names = (!chosen.names.is_empty()).then(|| {
        format!(
            "{kind} {}",
            super::join_first_names(&chosen.names, MAX_NAMED_TARGETS)
        )
    });
    let selector = chosen.selector.as_ref();
    let selected = selector.map(|selector| match selector.to_query_string() {
        query if query.is_empty() => all.to_owned(),
        query => format!("{kind} with {query}"),
    });
    names.into_iter().chain(selected).collect()
}
