//! When a schedule issues, why it does not, and what came of it, from what stands on the cluster.
//!
//! What lies ahead is worked out here by the decision's own functions; the rest is what the controller
//! wrote: conditions, and the records of past occurrences.

mod advice;
mod chain;
mod row;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use chain::explain_schedule;
pub use row::{ScheduleRow, schedule_rows};

use super::{ControllerSeen, Line};
use crate::condition::Condition;
use crate::schedule::{Chosen, Kind, Plan, Schedule};

/// Everything that an explanation of a schedule is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleView {
    /// The schedule.
    pub schedule: Schedule,
    /// Who leads the controllers.
    pub controller: ControllerSeen,
}

/// When a schedule issues, why it does not, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleExplanation {
    /// Which schedule: `NAMESPACE/NAME`.
    pub schedule: String,
    /// One sentence.
    pub summary: String,
    /// From what it says to what came of it.
    pub chain: Vec<Line>,
    /// What a person can do; empty where there is nothing but to wait.
    pub advice: Vec<String>,
}

fn condition<'a>(schedule: &'a Schedule, kind: &str) -> Option<&'a Condition> {
    let mut conditions = schedule.status.conditions.iter();
    conditions.find(|condition| condition.kind == kind)
}

/// Whether what the controller wrote is about another version of the schedule than this one.
fn is_unseen(schedule: &Schedule) -> bool {
    schedule.status.observed_generation != schedule.generation
}

/// Whom it asks, each kind in words.
fn whom(plan: &Plan) -> Vec<String> {
    let kinds = [
        (Kind::Node, "every Node", &plan.nodes),
        (Kind::Host, "every BareMetalHost here", &plan.hosts),
    ];
    let chosen = kinds
        .into_iter()
        .filter_map(|(kind, all, chosen)| Some((kind, all, chosen.as_ref()?)));
    chosen
        .flat_map(|(kind, all, chosen)| parts(kind, all, chosen))
        .collect()
}

fn parts(kind: Kind, all: &str, chosen: &Chosen) -> Vec<String> {
    /// As many as a line has room for.
    const NAMED: usize = 5;
    let kind = kind.as_str();
    let names =
        (!chosen.names.is_empty()).then(|| format!("{kind} {}", super::some(&chosen.names, NAMED)));
    let selector = chosen.selector.as_ref();
    let selected = selector.map(|selector| match selector.query() {
        query if query.is_empty() => all.to_owned(),
        query => format!("{kind} with {query}"),
    });
    names.into_iter().chain(selected).collect()
}
