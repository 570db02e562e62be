//! What a policy means, in sentences, and when its next windows are.

use std::time::Duration;

use dogwatch_core::duration::format_duration;
use dogwatch_core::explain::{DEFAULT_DRAIN_TIMEOUT, describe_gate, format_time};
use dogwatch_core::policy::Policy;
use dogwatch_core::policy::rollout::describe_rollout;
use dogwatch_core::policy::window::{
    WindowOpening, describe_window, list_open_spans, window_opening,
};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// How far ahead windows are listed.
const LISTED_AHEAD: SignedDuration = SignedDuration::from_hours(400 * 24);
const LISTED_WINDOWS: usize = 3;

/// A window on the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextWindow {
    pub from: Timestamp,
    pub until: Timestamp,
    /// Both in words, on the clock of the window's zone.
    pub text: String,
}

pub fn describe_policy(policy: &Policy, now: Timestamp) -> Vec<String> {
    let mut sentences = vec![describe_nodes(policy), describe_budget(policy)];
    if let Some(pause) = policy.active_pause(now) {
        let until = pause.until.map_or_else(
            || "until somebody resumes it".to_owned(),
            |until| format!("until {}", format_time(until)),
        );
        sentences.push(format!("It is paused {until}: {}.", pause.reason));
    }
    sentences.push(describe_windows(policy));
    let drain = policy.drain.timeout.map(format_duration);
    sentences.extend(drain.map(|timeout| format!("A drain may take {timeout}.")));
    let interval = policy.min_interval.filter(|interval| !interval.is_zero());
    sentences.extend(interval.map(|interval| {
        let interval = format_duration(interval);
        format!("The same node reboots again after {interval} at the earliest.")
    }));
    let shape = describe_rollout(&policy.rollout);
    sentences.extend(shape.map(|shape| format!("Rollout: {shape}.")));
    let gates = policy.gates.iter().map(describe_gate);
    sentences.extend(gates.map(|gate| format!("A reboot begins only while: {gate}.")));
    sentences
}

fn describe_nodes(policy: &Policy) -> String {
    let query = policy.selector.to_query_string();
    let which = if query.is_empty() {
        "every node".to_owned()
    } else {
        format!("nodes with {query}")
    };
    format!("It selects {which}, with priority {}.", policy.priority)
}

fn describe_budget(policy: &Policy) -> String {
    match (policy.max_unavailable, policy.max_unavailable_nodes) {
        (Some(limit), nodes) => {
            let limit = limit.capped_at(nodes);
            format!("At most {limit} of its nodes may be unavailable at once.")
        }
        (None, Some(nodes)) => format!(
            "At most {nodes} of its nodes may be unavailable at once, or fewer by the coordinators' --max-unavailable."
        ),
        (None, None) => {
            "How many may be unavailable at once is what the coordinators' --max-unavailable says."
                .to_owned()
        }
    }
}

fn describe_windows(policy: &Policy) -> String {
    if policy.windows.is_empty() {
        return "Reboots may begin at any time.".to_owned();
    }
    let windows: Vec<String> = policy.windows.iter().map(describe_window).collect();
    format!(
        "Reboots may begin in these windows: {}.",
        windows.join("; ")
    )
}

/// How long a window must be so that a reboot begins in it.
fn needed_time(policy: &Policy) -> Duration {
    policy.drain.timeout.unwrap_or(DEFAULT_DRAIN_TIMEOUT)
}

/// A policy in which nothing ever begins, although each of its fields is valid.
pub fn never_opens_problem(policy: &Policy, now: Timestamp) -> Option<String> {
    if policy.windows.is_empty() {
        return None;
    }
    let needs = needed_time(policy);
    match window_opening(&policy.windows, now, needs) {
        WindowOpening::Open { .. } => None,
        WindowOpening::TooShort { opens, .. } | WindowOpening::Shut { opens } => {
            opens.is_none().then(|| {
                let needs = format_duration(needs);
                format!(
                    "spec.windows: no reboot ever begins: within 400 days no window is open for {needs}, which a drain may take (drain.timeout)"
                )
            })
        }
    }
}

pub fn next_windows(policy: &Policy, zone: Option<&str>, now: Timestamp) -> Vec<NextWindow> {
    let zone = zone.and_then(|name| TimeZoneDatabase::bundled().get(name).ok());
    let zone = zone.unwrap_or(TimeZone::UTC);
    let until = now.checked_add(LISTED_AHEAD).unwrap_or(Timestamp::MAX);
    let spans = list_open_spans(&policy.windows, now, until).into_iter();
    spans
        .take(LISTED_WINDOWS)
        .map(|(from, until)| NextWindow {
            from,
            until,
            text: describe_span(from, until, &zone, now),
        })
        .collect()
}

fn describe_span(from: Timestamp, until: Timestamp, zone: &TimeZone, now: Timestamp) -> String {
    let clock = |time: Timestamp| time.to_zoned(zone.clone());
    let begin = if from <= now {
        "now".to_owned()
    } else {
        clock(from).strftime("%a %Y-%m-%d %H:%M").to_string()
    };
    let length = Duration::try_from(until.duration_since(from)).unwrap_or_default();
    let length = format_duration(Duration::from_secs(length.as_secs()));
    let end = clock(until).strftime("%a %Y-%m-%d %H:%M %Z");
    format!("{begin} to {end} ({length})")
}
