//! Whether a reboot may begin, or go on.

use std::time::Duration;

use jiff::Timestamp;

use super::types::{Policies, Policy};
use super::window::{Opening, opening};
use crate::reboot::{LastReboot, reason};

/// Whether something may happen now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowance {
    /// It may.
    Yes {
        /// Until then at the latest (a window's end).
        until: Option<Timestamp>,
    },
    /// It may not.
    No {
        /// One CamelCase word.
        reason: &'static str,
        /// A sentence with the policy, the times and what to do.
        message: String,
        /// When that may change by itself.
        until: Option<Timestamp>,
    },
}

/// What `minInterval` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MinInterval {
    /// When the node's last reboot was finished.
    last: Option<Timestamp>,
}

impl MinInterval {
    /// Of a node with this record of its last attempt. One that a person stopped was no reboot; the one
    /// before it counts.
    pub fn of(last: Option<&LastReboot>) -> Self {
        let last = last.and_then(LastReboot::last_rebooted);
        Self { last }
    }
}

/// Whether a reboot may begin at `now`, given how long its drain may take and when the last was.
pub fn allowed(
    policies: &Policies,
    policy: Option<&Policy>,
    drain_timeout: Duration,
    interval: MinInterval,
    now: Timestamp,
) -> Allowance {
    match standing(policies, policy, now) {
        Allowance::Yes { .. } => {}
        no @ Allowance::No { .. } => return no,
    }
    let Some(policy) = policy else {
        return Allowance::Yes { until: None };
    };
    if let Some(no) = too_soon(policy, interval, now) {
        return no;
    }
    in_window(policy, now, drain_timeout)
}

/// Whether a drain that has begun may go on at `now`: no pause, and the window still open.
pub fn still_allowed(policies: &Policies, policy: Option<&Policy>, now: Timestamp) -> Allowance {
    match standing(policies, policy, now) {
        Allowance::Yes { .. } => {}
        no @ Allowance::No { .. } => return no,
    }
    policy.map_or(Allowance::Yes { until: None }, |policy| {
        in_window(policy, now, Duration::ZERO)
    })
}

/// What holds whatever the calendar says: readable policies, and no pause.
fn standing(policies: &Policies, policy: Option<&Policy>, now: Timestamp) -> Allowance {
    match policies {
        Policies::NotYet => {
            return no(
                reason::LOOKING_AT_POLICIES,
                "looking at the RebootPolicies".into(),
                None,
            );
        }
        Policies::Unreadable { why } => {
            let text = format!("the RebootPolicies cannot be read, so nothing begins: {why}");
            return no(reason::POLICIES_UNREADABLE, text, None);
        }
        Policies::Known(_) => {}
    }
    let Some(policy) = policy else {
        return Allowance::Yes { until: None };
    };
    if !policy.problems.is_empty() {
        let text = format!(
            "RebootPolicy {} cannot be followed, so nothing begins: {}",
            policy.name,
            policy.problems.join("; ")
        );
        return no(reason::POLICY_INVALID, text, None);
    }
    paused(policy, now).unwrap_or(Allowance::Yes { until: None })
}

fn paused(policy: &Policy, now: Timestamp) -> Option<Allowance> {
    let pause = policy.paused.as_ref()?;
    if pause.until.is_some_and(|until| until <= now) {
        return None;
    }
    let until = pause
        .until
        .map_or_else(String::new, |until| format!(" until {until}"));
    let why = match pause.reason.trim() {
        "" => "no reason given",
        reason => reason,
    };
    let text = format!(
        "RebootPolicy {} is paused{until}: {why}; `dogwatch resume {}` ends it",
        policy.name, policy.name
    );
    Some(no(reason::PAUSED, text, pause.until))
}

fn too_soon(policy: &Policy, interval: MinInterval, now: Timestamp) -> Option<Allowance> {
    let (least, last) = (policy.min_interval?, interval.last?);
    let next = last.checked_add(least).unwrap_or(Timestamp::MAX);
    (next > now).then(|| {
        let text = format!(
            "the last reboot was at {last}; RebootPolicy {} wants {} between two, so not before {next}",
            policy.name,
            crate::duration::format(least)
        );
        no(reason::TOO_SOON, text, Some(next))
    })
}

fn in_window(policy: &Policy, now: Timestamp, needs: Duration) -> Allowance {
    if policy.windows.is_empty() {
        return Allowance::Yes { until: None };
    }
    match opening(&policy.windows, now, needs) {
        Opening::Open { until } => Allowance::Yes { until: Some(until) },
        Opening::TooShort { ends, opens } => {
            let text = format!(
                "the window of RebootPolicy {} closes at {ends}, and a drain may take {}; {}",
                policy.name,
                crate::duration::format(needs),
                next(opens)
            );
            no(reason::WINDOW_TOO_SHORT, text, opens)
        }
        Opening::Shut { opens } => {
            let text = format!(
                "outside the windows of RebootPolicy {}; {}",
                policy.name,
                next(opens)
            );
            no(reason::OUTSIDE_WINDOW, text, opens)
        }
    }
}

fn next(opens: Option<Timestamp>) -> String {
    match opens {
        Some(at) => format!("the next one that is long enough opens at {at}"),
        None => "no later one is long enough: change `windows` or `drain.timeout`".into(),
    }
}

fn no(reason: &'static str, message: String, until: Option<Timestamp>) -> Allowance {
    Allowance::No {
        reason,
        message,
        until,
    }
}
