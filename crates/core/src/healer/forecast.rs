//! What the healer will do if nothing changes: the same decisions, at the times at which they wake.

use crate::reboot::RebootReason;
use std::time::Duration;

use super::{
    HealerAction, HealerConfig, HealerObserve, HealerSnapshot, HealingCase, HealingSubject,
    NodeRead, decide,
};
use crate::Now;
use crate::lock::{HolderNode, HolderReads, MIN_HOLDER_READ_INTERVAL, holder_node_name};
use crate::reboot::{ObservedHolderNode, ParsedAnnotation};

/// The most steps that are forecast.
const MAX_FORECAST_STEPS: usize = 8;

/// One decision of the healer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastStep {
    /// When, on the healer's monotonic clock.
    pub at: Duration,
    pub reason: RebootReason,
    pub message: String,
    /// Whether the healer writes something then.
    pub acts: bool,
}

/// What the healer decides about this object now, and then at each time at which it wakes, until it
/// would write something or need a fact that is not in the snapshot. Empty: the object does not
/// need the healer.
///
/// Fresh reads are answered from the snapshot, as if nothing had changed.
pub fn forecast_steps(
    seen: &HealerSnapshot,
    config: &HealerConfig,
    now: Now,
    subject: &HealingSubject,
) -> Vec<ForecastStep> {
    let (mut seen, mut now) = (seen.clone(), now);
    let mut steps: Vec<ForecastStep> = Vec::new();
    for _ in 0..MAX_FORECAST_STEPS {
        let cases = decide(&seen, config, now).into_iter();
        let Some(HealingCase { decision, .. }) =
            cases.into_iter().find(|case| case.subject == *subject)
        else {
            break;
        };
        let step = ForecastStep {
            at: now.mono,
            reason: decision.cause.reason,
            message: describe_decision(&decision),
            acts: !decision.actions.is_empty(),
        };
        let says_more =
            |last: &ForecastStep| (last.reason, &last.message) != (step.reason, &step.message);
        if steps.last().is_none_or(says_more) {
            steps.push(step);
        }
        if !decision.actions.is_empty() {
            break;
        }
        let looks = &decision.observe;
        if !looks.is_empty() {
            if !looks
                .iter()
                .all(|look| answer_from_snapshot(&mut seen, look, now))
            {
                break;
            }
            continue;
        }
        match decision.wake.filter(|wake| wake.at > now.mono) {
            Some(wake) => now = advance_clock(wake.at, now),
            None => break,
        }
    }
    steps
}

fn advance_clock(mono: Duration, now: Now) -> Now {
    Now {
        wall: now.wall_after(mono.saturating_sub(now.mono)),
        mono,
    }
}

/// The message already says what is written, except when a lock is only released.
fn describe_decision(
    decision: &crate::Decision<HealerAction, HealerObserve, RebootReason>,
) -> String {
    let why = &decision.cause;
    let frees = why.reason == RebootReason::LockWithoutReboot && !decision.actions.is_empty();
    let end = if frees { "; it is freed" } else { "" };
    format!("{}{end}", why.message)
}

/// Answers a read from the snapshot, as if it were made now. Returns false if the snapshot lacks
/// the answer.
fn answer_from_snapshot(seen: &mut HealerSnapshot, look: &HealerObserve, now: Now) -> bool {
    let taken = now.mono;
    match look {
        HealerObserve::Node { name, .. } => {
            let read = NodeRead {
                node: seen.nodes.get(name).cloned(),
                escalated: ParsedAnnotation::Absent,
                taken,
            };
            seen.observations.nodes.insert(name.clone(), read);
        }
        HealerObserve::Holder { lease, .. } => {
            let node = holder_node_name(lease).and_then(|name| seen.nodes.get(&name));
            let node = match node {
                Some(node) => HolderNode::There {
                    uid: node.uid.clone(),
                },
                None => HolderNode::Gone,
            };
            let reads = ObservedHolderNode {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                reads: HolderReads {
                    nodes: [node.clone(), node],
                    apart: MIN_HOLDER_READ_INTERVAL,
                },
                taken,
            };
            seen.observations.holders.insert(lease.name.clone(), reads);
        }
        HealerObserve::Api { .. } | HealerObserve::Gates { .. } | HealerObserve::Hosts { .. } => {
            return false;
        }
    }
    true
}
