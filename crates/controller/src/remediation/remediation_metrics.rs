//! The metrics of remediation. The families are listed in `docs/controller.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::remediation::{
    Remediation, RemediationAction, RemediationConfig, RemediationMemory, RemediationReason,
    RemediationRecord, RemediationStep,
};
use jiff::Timestamp;

use super::action_names;
use crate::metrics::{MetricFamily, MetricLabels, MetricShape, MetricsRegistry};

static REMEDIATIONS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_remediations",
    help: "Machines, Nodes, requests and hosts under remediation, by the reason of the last decision.",
    shape: MetricShape::Gauge,
};
static STUCK_REMEDIATIONS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_remediation_stuck",
    help: "Remediations whose reason has not changed for ten minutes. Alert on it.",
    shape: MetricShape::Gauge,
};
static REMEDIATION_ACTIONS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_remediation_actions_total",
    help: "Writes of remediation, by result: done, changed, refused or failed.",
    shape: MetricShape::Counter,
};
static REMEDIATION_STEPS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_remediation_steps_seconds",
    help: "How long each step of a remediation took, from the end of the step before it.",
    shape: MetricShape::Seconds(&[
        0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 15.0, 30.0, 60.0, 180.0, 600.0, 1800.0,
    ]),
};

/// The number of remediations at each reason.
#[derive(Debug, Default)]
pub(super) struct RemediationReasonCounts {
    cases: BTreeMap<RemediationReason, f64>,
    stuck: BTreeMap<RemediationReason, f64>,
}

impl RemediationReasonCounts {
    pub(super) fn count_case(
        &mut self,
        because: RemediationReason,
        known: &RemediationMemory,
        now: Now,
    ) {
        *self.cases.entry(because).or_default() += 1.0;
        let since = known
            .reason_since
            .map(|(_, since)| now.mono.saturating_sub(since));
        let is_long = since.is_some_and(|since| since >= RemediationConfig::WARN_AFTER);
        if is_long && because != RemediationReason::NotNeeded {
            *self.stuck.entry(because).or_default() += 1.0;
        }
    }

    pub(super) fn publish_counts(self, metrics: &MetricsRegistry) {
        metrics.replace_gauge(&REMEDIATIONS_METRIC, samples_by_reason(self.cases));
        metrics.replace_gauge(&STUCK_REMEDIATIONS_METRIC, samples_by_reason(self.stuck));
    }
}

fn samples_by_reason(
    counts: BTreeMap<RemediationReason, f64>,
) -> impl Iterator<Item = (MetricLabels, f64)> {
    let labels = |reason: RemediationReason| vec![("reason", reason.to_string())];
    counts
        .into_iter()
        .map(move |(reason, count)| (labels(reason), count))
}

/// Records one attempted write.
pub(super) fn record_action(
    metrics: &MetricsRegistry,
    case: &Remediation,
    action: &RemediationAction,
    end: &'static str,
) {
    let labels = [
        ("action", action_names::action_label(action)),
        ("result", end),
    ];
    metrics.add_to_counter(&REMEDIATION_ACTIONS_METRIC, &labels, 1);
    if end == "done" {
        for (step, took) in new_steps_of(case.record.as_ref(), action) {
            metrics.observe_duration(&REMEDIATION_STEPS_METRIC, &[("step", step.as_str())], took);
        }
    }
}

/// The steps that this write has recorded on the host, and how long each took after the one before
/// it.
fn new_steps_of(
    before: Option<&RemediationRecord>,
    action: &RemediationAction,
) -> Vec<(RemediationStep, Duration)> {
    let Some(record) = action.host_record() else {
        return Vec::new();
    };
    let known = before.map_or(&[][..], |before| &before.steps);
    let pairs = record.steps.windows(2);
    let new = pairs.filter(|pair| !known.contains(&pair[1]));
    new.map(|pair| (pair[1].step, duration_between(pair[0].at, pair[1].at)))
        .collect()
}

/// Zero if negative, because the clocks of two leaders may disagree.
fn duration_between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
