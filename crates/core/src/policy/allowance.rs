//! Decides whether a reboot may begin, or go on.

use std::time::Duration;

use jiff::Timestamp;

use super::rollout::{self, BeginRefusal, RolloutCandidate};
use super::types::{ClusterPolicies, Policy};
use super::window::{WindowOpening, window_opening};
use crate::reboot::{LastReboot, RebootReason};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebootAllowance {
    Yes {
        /// When the permission ends at the latest (the end of a window).
        until: Option<Timestamp>,
    },
    No {
        reason: RebootReason,
        /// Names the policy, the times and what to do.
        message: String,
        /// When the refusal may end by itself.
        until: Option<Timestamp>,
    },
}

/// The last reboot, from which `minInterval` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MinInterval {
    last: Option<Timestamp>,
}

impl MinInterval {
    /// Takes the time from the record of the node's last attempt. An attempt that a person stopped
    /// was no reboot, so the reboot before it counts.
    pub fn since_last_reboot(last: Option<&LastReboot>) -> Self {
        let last = last.and_then(LastReboot::last_rebooted_at);
        Self { last }
    }
}

/// Whether a reboot may begin at `now`, given how long its drain may take and when the last reboot
/// was. `candidate` is who is to begin: a rollout names its first nodes.
pub fn may_reboot_begin(
    policies: &ClusterPolicies,
    policy: Option<&Policy>,
    drain_timeout: Duration,
    interval: MinInterval,
    candidate: RolloutCandidate<'_>,
    now: Timestamp,
) -> RebootAllowance {
    match check_policy_state(policies, policy, now) {
        RebootAllowance::Yes { .. } => {}
        no @ RebootAllowance::No { .. } => return no,
    }
    let Some(policy) = policy else {
        return RebootAllowance::Yes { until: None };
    };
    if let Some(no) = check_min_interval(policy, interval, now) {
        return no;
    }
    let window = check_window(policy, now, drain_timeout);
    match (&window, rollout::check_rollout(policy, candidate)) {
        (RebootAllowance::Yes { .. }, Some(refusal)) => refuse_for_rollout(refusal),
        (RebootAllowance::Yes { .. } | RebootAllowance::No { .. }, _) => window,
    }
}

/// Whether a drain that has begun may go on at `now`: no pause, no halt, and the window still open.
pub fn may_reboot_continue(
    policies: &ClusterPolicies,
    policy: Option<&Policy>,
    now: Timestamp,
) -> RebootAllowance {
    match check_policy_state(policies, policy, now) {
        RebootAllowance::Yes { .. } => {}
        no @ RebootAllowance::No { .. } => return no,
    }
    policy.map_or(RebootAllowance::Yes { until: None }, |policy| {
        check_window(policy, now, Duration::ZERO)
    })
}

/// The conditions that do not depend on the time: policies can be read, and there is neither a
/// pause nor a halt.
fn check_policy_state(
    policies: &ClusterPolicies,
    policy: Option<&Policy>,
    now: Timestamp,
) -> RebootAllowance {
    match policies {
        ClusterPolicies::NotYetRead => {
            return refuse_reboot(
                RebootReason::LookingAtPolicies,
                "reading the RebootPolicies".into(),
                None,
            );
        }
        ClusterPolicies::Unreadable { why } => {
            let text = format!("the RebootPolicies cannot be read, so no reboot begins: {why}");
            return refuse_reboot(RebootReason::PoliciesUnreadable, text, None);
        }
        ClusterPolicies::Known(_) => {}
    }
    let Some(policy) = policy else {
        return RebootAllowance::Yes { until: None };
    };
    if !policy.problems.is_empty() {
        let text = format!(
            "RebootPolicy {} is invalid, so no reboot begins: {}",
            policy.name,
            policy.problems.join("; ")
        );
        return refuse_reboot(RebootReason::PolicyInvalid, text, None);
    }
    let halt = || rollout::find_halt(policy).map(refuse_for_rollout);
    let refusal = check_pause(policy, now).or_else(halt);
    refusal.unwrap_or(RebootAllowance::Yes { until: None })
}

/// No time ends it: the controller or a person does.
fn refuse_for_rollout(refusal: BeginRefusal) -> RebootAllowance {
    refuse_reboot(refusal.reason, refusal.message, None)
}

fn check_pause(policy: &Policy, now: Timestamp) -> Option<RebootAllowance> {
    let pause = policy.active_pause(now)?;
    let until = pause
        .until
        .map_or_else(String::new, |until| format!(" until {until}"));
    let why = match pause.reason.trim() {
        "" => "no reason given",
        reason => reason,
    };
    let text = format!(
        "RebootPolicy {} is paused{until}: {why}; to resume, run `dogwatch resume {}`",
        policy.name, policy.name
    );
    Some(refuse_reboot(RebootReason::Paused, text, pause.until))
}

fn check_min_interval(
    policy: &Policy,
    interval: MinInterval,
    now: Timestamp,
) -> Option<RebootAllowance> {
    let (least, last) = (policy.min_interval?, interval.last?);
    let next = last.checked_add(least).unwrap_or(Timestamp::MAX);
    (next > now).then(|| {
        let text = format!(
            "the last reboot was at {last}; RebootPolicy {} requires {} between two reboots, so \
             the next may begin at {next}",
            policy.name,
            crate::duration::format_duration(least)
        );
        refuse_reboot(RebootReason::RebootedTooRecently, text, Some(next))
    })
}

fn check_window(policy: &Policy, now: Timestamp, needs: Duration) -> RebootAllowance {
    if policy.windows.is_empty() {
        return RebootAllowance::Yes { until: None };
    }
    match window_opening(&policy.windows, now, needs) {
        WindowOpening::Open { until } => RebootAllowance::Yes { until: Some(until) },
        WindowOpening::TooShort { ends, opens } => {
            let text = format!(
                "the window of RebootPolicy {} closes at {ends}, and a drain may take {}; {}",
                policy.name,
                crate::duration::format_duration(needs),
                describe_next_opening(opens)
            );
            refuse_reboot(RebootReason::WindowTooShort, text, opens)
        }
        WindowOpening::Shut { opens } => {
            let text = format!(
                "outside the windows of RebootPolicy {}; {}",
                policy.name,
                describe_next_opening(opens)
            );
            refuse_reboot(RebootReason::OutsideWindow, text, opens)
        }
    }
}

fn describe_next_opening(opens: Option<Timestamp>) -> String {
    match opens {
        Some(at) => format!("the next window that is long enough opens at {at}"),
        None => "no later window is long enough: change `windows` or `drain.timeout`".into(),
    }
}

fn refuse_reboot(
    reason: RebootReason,
    message: String,
    until: Option<Timestamp>,
) -> RebootAllowance {
    RebootAllowance::No {
        reason,
        message,
        until,
    }
}
