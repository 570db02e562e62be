//! What remediation counts. The families are listed in `docs/controller.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::remedy::{Action, Case, Config, Known, Record, Step, reason};
use jiff::Timestamp;

use super::words;
use crate::metrics::{Family, Labels, Metrics, Shape};

static CASES: Family = Family {
    name: "dogwatch_remediations",
    help: "Machines, Nodes, requests and hosts that remediation has in hand, by the reason of its last decision.",
    shape: Shape::Gauge,
};
static STUCK: Family = Family {
    name: "dogwatch_remediation_stuck",
    help: "Those that have stood at the same reason for ten minutes. Alert on it.",
    shape: Shape::Gauge,
};
static ACTIONS: Family = Family {
    name: "dogwatch_remediation_actions_total",
    help: "Writes of remediation, by how they ended: done, changed, refused or failed.",
    shape: Shape::Counter,
};
static STEPS: Family = Family {
    name: "dogwatch_remediation_steps_seconds",
    help: "How long each step of a remediation took, from the one before it.",
    shape: Shape::Seconds(&[
        0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 15.0, 30.0, 60.0, 180.0, 600.0, 1800.0,
    ]),
};

/// How many cases stand at each reason.
#[derive(Debug, Default)]
pub(super) struct Counts {
    cases: BTreeMap<&'static str, f64>,
    stuck: BTreeMap<&'static str, f64>,
}

impl Counts {
    /// One more.
    pub(super) fn count(&mut self, because: &'static str, known: &Known, now: Now) {
        *self.cases.entry(because).or_default() += 1.0;
        let since = known.since.map(|(_, since)| now.mono.saturating_sub(since));
        let is_long = since.is_some_and(|since| since >= Config::SAY_AFTER);
        if is_long && because != reason::NOT_NEEDED {
            *self.stuck.entry(because).or_default() += 1.0;
        }
    }

    /// Shows them.
    pub(super) fn show(self, metrics: &Metrics) {
        metrics.replace(&CASES, by_reason(self.cases));
        metrics.replace(&STUCK, by_reason(self.stuck));
    }
}

fn by_reason(counts: BTreeMap<&'static str, f64>) -> impl Iterator<Item = (Labels, f64)> {
    let labels = |reason: &str| vec![("reason", reason.to_owned())];
    counts
        .into_iter()
        .map(move |(reason, count)| (labels(reason), count))
}

/// A write was tried.
pub(super) fn acted(metrics: &Metrics, case: &Case, action: &Action, end: &'static str) {
    let labels = [("action", words::name(action)), ("result", end)];
    metrics.add(&ACTIONS, &labels, 1);
    if end == "done" {
        for (step, took) in steps(case.record.as_ref(), action) {
            metrics.observe(&STEPS, &[("step", step.as_str())], took);
        }
    }
}

/// The steps that this write has put on the host, and how long each took from the one before it.
fn steps(before: Option<&Record>, action: &Action) -> Vec<(Step, Duration)> {
    let Some(record) = action.record() else {
        return Vec::new();
    };
    let known = before.map_or(&[][..], |before| &before.steps);
    let pairs = record.steps.windows(2);
    let new = pairs.filter(|pair| !known.contains(&pair[1]));
    new.map(|pair| (pair[1].step, between(pair[0].at, pair[1].at)))
        .collect()
}

/// Clocks of two leaders may disagree.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
