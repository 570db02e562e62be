//! Whether a node that came back may be uncordoned: the checks of `return.ready`. Source:
//! specification §10.3.

use std::time::Duration;

use super::record::RebootRecord;
use super::step::RebootStep;
use super::{RebootContext, RebootReason};
use crate::duration::format_duration;
use crate::policy::{self, ReadyTimeoutAction};

pub(super) enum NodeReadiness {
    Usable,
    /// Cordon and lock stay.
    Unusable(RebootStep),
    /// The policy's `Proceed`: why this has to be reported.
    Overruled(String),
}

/// Applies while the node is cordoned, by whomever. `settled` is when the node had been Ready for
/// long enough; the policy's time counts from then.
pub(super) fn check_node_readiness(
    ctx: &RebootContext<'_>,
    record: &RebootRecord,
    settled: Duration,
) -> NodeReadiness {
    let Some(rule) = ctx.rule.policy.map(|policy| &policy.on_return) else {
        return NodeReadiness::Usable;
    };
    if !ctx.node.unschedulable {
        return NodeReadiness::Usable;
    }
    let unmet = policy::unmet_ready_checks(&rule.ready, ctx.node, record.since);
    if unmet.is_empty() {
        return NodeReadiness::Usable;
    }
    let unmet = unmet.join("; ");
    let allowed = rule.ready_timeout.unwrap_or(policy::DEFAULT_READY_TIMEOUT);
    let deadline = settled.saturating_add(allowed);
    if ctx.now.mono < deadline {
        let text = format!("the node stays cordoned until it is usable: {unmet}");
        let step = RebootStep::new(RebootReason::ReadyChecksUnmet, text);
        return NodeReadiness::Unusable(step.with_wake(deadline, "the deadline of return.ready"));
    }
    let late = format!("not usable within {}: {unmet}", format_duration(allowed));
    match rule.on_ready_timeout {
        ReadyTimeoutAction::Keep => {
            let text = format!("{late}; cordon and lock stay");
            let step = RebootStep::new(RebootReason::ReadyChecksTimedOut, text);
            NodeReadiness::Unusable(step.with_warning_event())
        }
        ReadyTimeoutAction::Proceed => NodeReadiness::Overruled(late),
    }
}

pub(super) fn has_ready_checks(ctx: &RebootContext<'_>) -> bool {
    let policy = ctx.rule.policy;
    policy.is_some_and(|policy| !policy.on_return.ready.is_empty())
}
