//! The coordinator's metrics, in Prometheus' text format 0.0.4.
//!
//! **For:** the loop fills a [`MetricsView`], `/metrics` prints it.
//! **May touch:** nothing.
//! **Promises:** a scrape shows one moment, not a mixture; what does not apply now (no drain, no
//! wait) has no sample rather than a zero that means something else.
//!
//! Own text rather than `prometheus-client`: its registry of atomics is for counters that many
//! threads raise, ours is one struct that one loop replaces.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::reboot::Phase;
use dogwatch_process::text::{Kind, Text};
use jiff::Timestamp;

/// Everything that `/metrics` shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricsView {
    /// Where this node stands; `None` is in service.
    pub phase: Option<Phase>,
    /// Since when in this phase.
    pub phase_since: Option<Timestamp>,
    /// Since when it waits for its turn, without the time for which its policy held it back.
    pub waiting_since: Option<Timestamp>,
    /// Who holds what we wait for, or what else holds us back: `lock`, `budget`, …, and its name.
    pub blocked_by: BTreeSet<(String, String)>,
    /// The drain, while there is one.
    pub drain: Option<DrainView>,
    /// What each trigger says, by source: `present`, `absent` or `unknown`.
    pub triggers: BTreeMap<String, TriggerShown>,
    /// How the last reboot ended, and when.
    pub last: Option<LastView>,
    /// Reboots that ended during this process' life, by outcome.
    pub reboots: BTreeMap<String, u64>,
    /// Calls that failed, by reason (a status code, or `connection`).
    pub api_errors: BTreeMap<String, u64>,
    /// What needs a person, by the reason of its condition: `RebootFailed`, …
    pub alarms: BTreeSet<String>,
}

/// A drain under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainView {
    /// Pods that have to go and are still there.
    pub left: usize,
    /// Pods whose eviction was accepted.
    pub evicted: usize,
    /// Pods that a budget holds back.
    pub blocked: usize,
}

/// What a trigger says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerShown {
    /// Reboot.
    Present,
    /// Do not.
    Absent,
    /// It cannot be read.
    Unknown,
}

/// The last reboot.
#[derive(Debug, Clone, PartialEq)]
pub struct LastView {
    /// Its outcome, one word.
    pub outcome: String,
    /// When it ended.
    pub ended: Timestamp,
    /// How long each phase took.
    pub took: BTreeMap<Phase, Duration>,
}

impl MetricsView {
    /// Raises an alarm; it stays until the view is replaced or cleared of it.
    pub fn alarm(&mut self, reason: &str) {
        self.alarms.insert(reason.to_owned());
    }

    /// Counts a call to the API server that failed.
    pub fn count_failure(&mut self, reason: &str) {
        *self.api_errors.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts a reboot that has ended.
    pub fn count_reboot(&mut self, outcome: &str) {
        *self.reboots.entry(outcome.to_owned()).or_default() += 1;
    }
}

/// The whole page.
pub fn render(view: &MetricsView) -> String {
    let mut text = Text::default();
    text.family("dogwatch_build_info", Kind::Gauge, "The program that runs.")
        .sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
    phase(&mut text, view);
    waiting(&mut text, view);
    drain(&mut text, view.drain.as_ref());
    triggers(&mut text, view);
    last(&mut text, view.last.as_ref());
    alarms(&mut text, view);
    counters(&mut text, view);
    text.finish()
}

const PHASES: [Phase; 4] = [
    Phase::Waiting,
    Phase::Draining,
    Phase::Rebooting,
    Phase::Returning,
];

fn phase(text: &mut Text, view: &MetricsView) {
    let mut family = text.family(
        "dogwatch_phase",
        Kind::Gauge,
        "1 for the phase of the planned reboot that this node is in; in-service is none.",
    );
    family.sample(&[("phase", "in-service")], u64::from(view.phase.is_none()));
    for phase in PHASES {
        let here = u64::from(view.phase == Some(phase));
        family.sample(&[("phase", phase.as_str())], here);
    }
    text.family(
        "dogwatch_phase_since_seconds",
        Kind::Gauge,
        "When that phase began, in Unix time.",
    )
    .time(&[], view.phase_since);
}

fn waiting(text: &mut Text, view: &MetricsView) {
    text.family(
        "dogwatch_waiting_since_seconds",
        Kind::Gauge,
        "Since when this node waits for its turn, in Unix time, without the time for which windows, a pause or minInterval held it back. No sample while they do.",
    )
    .time(&[], view.waiting_since);
    let mut family = text.family(
        "dogwatch_blocked_by",
        Kind::Gauge,
        "1 for each thing that holds this node back.",
    );
    for (kind, name) in &view.blocked_by {
        family.sample(&[("kind", kind), ("name", name)], 1_u64);
    }
}

fn drain(text: &mut Text, drain: Option<&DrainView>) {
    let mut family = text.family(
        "dogwatch_drain_pods",
        Kind::Gauge,
        "Pods of the drain under way: left, of those evicted already, and blocked by a budget.",
    );
    let Some(drain) = drain else { return };
    for (state, pods) in [
        ("left", drain.left),
        ("evicted", drain.evicted),
        ("blocked", drain.blocked),
    ] {
        family.sample(&[("state", state)], u64::try_from(pods).unwrap_or(u64::MAX));
    }
}

fn triggers(text: &mut Text, view: &MetricsView) {
    let mut family = text.family(
        "dogwatch_trigger",
        Kind::Gauge,
        "1 for what each trigger says: present, absent or unknown.",
    );
    for (source, shown) in &view.triggers {
        for (state, this) in [
            ("present", TriggerShown::Present),
            ("absent", TriggerShown::Absent),
            ("unknown", TriggerShown::Unknown),
        ] {
            let labels = [("source", source.as_str()), ("state", state)];
            family.sample(&labels, u64::from(*shown == this));
        }
    }
}

fn last(text: &mut Text, last: Option<&LastView>) {
    let mut family = text.family(
        "dogwatch_last_reboot_outcome",
        Kind::Gauge,
        "1 for how the last reboot of this node ended.",
    );
    let Some(last) = last else { return };
    family.sample(&[("outcome", &last.outcome)], 1_u64);
    text.family(
        "dogwatch_last_reboot_end_seconds",
        Kind::Gauge,
        "When it ended, in Unix time.",
    )
    .time(&[], Some(last.ended));
    let mut family = text.family(
        "dogwatch_last_reboot_duration_seconds",
        Kind::Gauge,
        "How long each of its phases took.",
    );
    for (phase, took) in &last.took {
        family.sample(&[("phase", phase.as_str())], took.as_secs_f64());
    }
}

fn alarms(text: &mut Text, view: &MetricsView) {
    let mut family = text.family(
        "dogwatch_alarm",
        Kind::Gauge,
        "1 for each thing that needs a person, by the reason of its condition.",
    );
    for reason in &view.alarms {
        family.sample(&[("reason", reason)], 1_u64);
    }
}

fn counters(text: &mut Text, view: &MetricsView) {
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
        let mut family = text.family(name, Kind::Counter, help);
        for (value, count) in counts {
            family.sample(&[(label, value)], *count);
        }
    }
}

#[cfg(test)]
mod tests;
