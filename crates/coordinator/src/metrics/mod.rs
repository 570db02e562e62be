//! The coordinator's metrics, in Prometheus' text format 0.0.4.
//!
//! **For:** the loop fills a [`MetricsView`], `/metrics` prints it.
//! **May touch:** nothing.
//! **Promises:** a scrape shows one moment, not a mixture; a value that does not apply now (no
//! drain, no wait) has no sample rather than a zero that means something else.
//!
//! Our own text rather than `prometheus-client`: its registry of atomics is for counters that many
//! threads increment, ours is one struct that one loop replaces.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::reboot::RebootPhase;
use dogwatch_runtime::metrics_text::{MetricKind, MetricsPage};
use jiff::Timestamp;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricsView {
    /// `None`: in service.
    pub phase: Option<RebootPhase>,
    pub phase_since: Option<Timestamp>,
    /// Since when the node waits for its turn, without the time for which its policy held it back.
    pub waiting_since: Option<Timestamp>,
    /// Who or what delays us: a kind (`lock`, `budget`, …) and a name.
    pub blocked_by: BTreeSet<(String, String)>,
    pub drain: Option<DrainView>,
    /// The state of each trigger, by source.
    pub triggers: BTreeMap<String, TriggerMetric>,
    /// The last reboot.
    pub last: Option<LastRebootView>,
    /// Reboots that ended during this process' life, by outcome.
    pub reboots: BTreeMap<String, u64>,
    /// Failed calls by reason (a status code, or `connection`).
    pub api_errors: BTreeMap<String, u64>,
    /// Conditions that need a person, by reason: `RebootFailed`, …
    pub alarms: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainView {
    /// Pods that still have to be removed.
    pub left: usize,
    /// Pods whose eviction was accepted.
    pub evicted: usize,
    /// Pods that a PodDisruptionBudget blocks.
    pub blocked: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerMetric {
    Present,
    Absent,
    /// The trigger cannot be read.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LastRebootView {
    /// One word.
    pub outcome: String,
    pub ended: Timestamp,
    /// Duration of each phase.
    pub took: BTreeMap<RebootPhase, Duration>,
}

impl MetricsView {
    pub fn raise_alarm(&mut self, reason: &str) {
        self.alarms.insert(reason.to_owned());
    }

    pub fn count_failure(&mut self, reason: &str) {
        *self.api_errors.entry(reason.to_owned()).or_default() += 1;
    }

    pub fn count_reboot(&mut self, outcome: &str) {
        *self.reboots.entry(outcome.to_owned()).or_default() += 1;
    }
}

pub fn render_metrics(view: &MetricsView) -> String {
    let mut text = MetricsPage::default();
    text.begin_family(
        "dogwatch_build_info",
        MetricKind::Gauge,
        "The program that runs.",
    )
    .write_sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
    render_phase(&mut text, view);
    render_waiting(&mut text, view);
    render_drain(&mut text, view.drain.as_ref());
    render_triggers(&mut text, view);
    render_last_reboot(&mut text, view.last.as_ref());
    render_alarms(&mut text, view);
    render_counters(&mut text, view);
    text.finish()
}

fn render_phase(text: &mut MetricsPage, view: &MetricsView) {
    let mut family = text.begin_family(
        "dogwatch_phase",
        MetricKind::Gauge,
        "1 for the phase of this node's planned reboot; in-service means that no reboot is under way.",
    );
    family.write_sample(&[("phase", "in-service")], u64::from(view.phase.is_none()));
    for phase in RebootPhase::ALL {
        let here = u64::from(view.phase == Some(phase));
        family.write_sample(&[("phase", phase.as_str())], here);
    }
    text.begin_family(
        "dogwatch_phase_since_seconds",
        MetricKind::Gauge,
        "Unix time when that phase began.",
    )
    .write_timestamp(&[], view.phase_since);
}

fn render_waiting(text: &mut MetricsPage, view: &MetricsView) {
    text.begin_family(
        "dogwatch_waiting_since_seconds",
        MetricKind::Gauge,
        "Unix time since which this node waits for its turn, not counting the time it waits for windows, a pause or minInterval. No sample while they do.",
    )
    .write_timestamp(&[], view.waiting_since);
    let mut family = text.begin_family(
        "dogwatch_blocked_by",
        MetricKind::Gauge,
        "1 for each reason for which this node waits.",
    );
    for (kind, name) in &view.blocked_by {
        family.write_sample(&[("kind", kind), ("name", name)], 1_u64);
    }
}

fn render_drain(text: &mut MetricsPage, drain: Option<&DrainView>) {
    let mut family = text.begin_family(
        "dogwatch_drain_pods",
        MetricKind::Gauge,
        "Pods of the current drain: left, evicted but still there, and blocked by a PodDisruptionBudget.",
    );
    let Some(drain) = drain else { return };
    for (state, pods) in [
        ("left", drain.left),
        ("evicted", drain.evicted),
        ("blocked", drain.blocked),
    ] {
        family.write_sample(&[("state", state)], u64::try_from(pods).unwrap_or(u64::MAX));
    }
}

fn render_triggers(text: &mut MetricsPage, view: &MetricsView) {
    let mut family = text.begin_family(
        "dogwatch_trigger",
        MetricKind::Gauge,
        "1 for the state of each trigger: present, absent or unknown.",
    );
    for (source, shown) in &view.triggers {
        for (state, this) in [
            ("present", TriggerMetric::Present),
            ("absent", TriggerMetric::Absent),
            ("unknown", TriggerMetric::Unknown),
        ] {
            let labels = [("source", source.as_str()), ("state", state)];
            family.write_sample(&labels, u64::from(*shown == this));
        }
    }
}

fn render_last_reboot(text: &mut MetricsPage, last: Option<&LastRebootView>) {
    let mut family = text.begin_family(
        "dogwatch_last_reboot_outcome",
        MetricKind::Gauge,
        "1 for the outcome of the last reboot of this node.",
    );
    let Some(last) = last else { return };
    family.write_sample(&[("outcome", &last.outcome)], 1_u64);
    text.begin_family(
        "dogwatch_last_reboot_end_seconds",
        MetricKind::Gauge,
        "Unix time when the last reboot ended.",
    )
    .write_timestamp(&[], Some(last.ended));
    let mut family = text.begin_family(
        "dogwatch_last_reboot_duration_seconds",
        MetricKind::Gauge,
        "How long each phase of the last reboot took.",
    );
    for (phase, took) in &last.took {
        family.write_sample(&[("phase", phase.as_str())], took.as_secs_f64());
    }
}

fn render_alarms(text: &mut MetricsPage, view: &MetricsView) {
    let mut family = text.begin_family(
        "dogwatch_alarm",
        MetricKind::Gauge,
        "1 for each condition that needs a person, by its reason.",
    );
    for reason in &view.alarms {
        family.write_sample(&[("reason", reason)], 1_u64);
    }
}

fn render_counters(text: &mut MetricsPage, view: &MetricsView) {
    for (name, help, label, counts) in [
        (
            "dogwatch_reboots_total",
            "Reboots that ended, by outcome.",
            "outcome",
            &view.reboots,
        ),
        (
            "dogwatch_api_errors_total",
            "Calls to the API server that failed, by reason.",
            "reason",
            &view.api_errors,
        ),
    ] {
        let mut family = text.begin_family(name, MetricKind::Counter, help);
        for (value, count) in counts {
            family.write_sample(&[(label, value)], *count);
        }
    }
}

#[cfg(test)]
mod tests;
