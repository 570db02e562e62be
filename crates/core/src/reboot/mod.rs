//! The planned reboot of one node: trigger → lock → drain → reboot → return.
//!
//! Source: specification §2.1 to §2.5. [`decide`] starts from facts: the record on the Node, the
//! host's boot id, the Leases, the drain. It remembers nothing between calls.

mod abort;
mod action;
mod config;
mod drained;
mod draining;
mod fencing;
mod gates;
mod group;
mod holders;
mod holding;
mod idle;
mod memory;
mod method;
mod mute;
mod power_cycle;
mod readiness;
mod reason;
mod reboot_deadline;
mod reboot_limits;
mod rebooting;
mod record;
mod report;
mod request_label;
mod returning;
mod shared_conditions;
mod snapshot;
mod soft_reboot;
mod step;
mod takeover;
#[cfg(test)]
mod tests;
mod trigger_conditions;
mod triggers;
mod undo;
mod waiting;

pub use action::{NodePatch, RebootAction, RebootObserve, RecordChange};
pub use config::{DrainTimeoutAction, GateTimeoutAction, RebootConfig};
pub use draining::{describe_dropped_pods, describe_remaining_drain};
pub use group::{group_of_lease, lock_group};
pub use holders::count_holder_checks;
pub(crate) use holding::describe_hold;
pub use memory::HeldBackTime;
pub(crate) use method::is_hold_requested;
pub use reason::{HeldBackBy, RebootReason};
pub use reboot_deadline::{WatchedReboots, rebooting_deadline_since};
pub use reboot_limits::RebootLimits;
pub(crate) use reboot_limits::flags_of_coordinator;
pub use rebooting::permit_time_left;
pub use record::{
    AbortRequest, LastReboot, NodeRebootRef, ParsedAnnotation, RebootOutcome, RebootPhase,
    RebootRecord, RebootRequest, RebootTrigger, TriggerFingerprint,
};
pub(crate) use report::COORDINATOR_CONDITIONS;
pub use report::WAITS_FOR_LOCK_MESSAGE;
pub(crate) use shared_conditions::{find_waiting_condition, is_condition_of_other};
pub use snapshot::{
    ActiveTriggers, CommandEnd, ObservedBudgetCount, ObservedDrain, ObservedHolderNode,
    ObservedLock, ObservedNode, ObservedOwnHost, ObservedPhase, ObservedStartGates,
    ObservedTrigger, OwnNodeState, RebootCommandState, RebootPermit, RebootSnapshot, RunMemory,
    TriggerState, UnansweredRelease,
};
pub(crate) use takeover::{TakeoverStep, decide_on_behalf};
pub use triggers::{is_source_served, list_active_triggers};

use std::time::Duration;

use crate::Now;
use crate::name::BootId;
use crate::policy::{self, ClusterPolicies};
use step::RebootStep;

pub type RebootDecision = crate::Decision<RebootAction, RebootObserve, RebootReason>;

/// What to do about this node's reboot, and why.
pub fn decide(seen: &RebootSnapshot, flags: &RebootConfig, now: Now) -> RebootDecision {
    let node = match &seen.node {
        OwnNodeState::NotYet => {
            return RebootStep::new(
                RebootReason::NodeNotSeen,
                "this coordinator's Node has not been read yet",
            )
            .into_unreported_decision();
        }
        OwnNodeState::Gone => {
            let text = format!(
                "the Node of {} does not exist: check whether it was deleted",
                seen.run.holder
            );
            return RebootStep::new(RebootReason::NodeGone, text).into_unreported_decision();
        }
        OwnNodeState::There(node) => node,
    };
    let boot = match &seen.host.boot_id {
        Ok(boot) => boot,
        Err(why) => return report::report_unreadable_boot_id(why),
    };
    let rule = policy::resolve_policy(&seen.policies, &node.labels, flags);
    let ctx = RebootContext {
        seen,
        node,
        boot,
        config: &rule.config,
        rule: &rule,
        now,
    };
    undo::block_late_patches(&ctx, decide_step(&ctx)).into_reported_decision(&ctx)
}

/// The input of every phase's decision.
struct RebootContext<'a> {
    seen: &'a RebootSnapshot,
    node: &'a ObservedNode,
    boot: &'a BootId,
    /// The settings for this node: the flags, overridden by its policy.
    config: &'a RebootConfig,
    rule: &'a policy::EffectivePolicy<'a>,
    now: Now,
}

impl RebootContext<'_> {
    /// How long the record's phase has lasted.
    fn phase_elapsed(&self, record: &RebootRecord) -> Duration {
        match self.seen.run.phase {
            Some(phase) if phase.since == record.since => phase.elapsed_until(self.now.mono),
            Some(_) | None => self.now.elapsed_since(record.since),
        }
    }

    /// How long the node has been usable; `None` where the record does not say that it is.
    fn usable_elapsed(&self, record: &RebootRecord) -> Option<Duration> {
        let since = record.usable?;
        let seen = self.seen.run.usable.filter(|seen| seen.since == since);
        Some(seen.map_or_else(
            || self.now.elapsed_since(since),
            |seen| seen.elapsed_until(self.now.mono),
        ))
    }

    /// The monotonic time at which the phase will have lasted `allowed`. `None`: it already has.
    fn deadline_after(&self, record: &RebootRecord, allowed: Duration) -> Option<Duration> {
        let left = allowed.saturating_sub(self.phase_elapsed(record));
        (!left.is_zero()).then(|| self.now.mono + left)
    }
}

fn decide_step(ctx: &RebootContext<'_>) -> RebootStep {
    let record = match &ctx.node.record {
        ParsedAnnotation::Absent => return idle::decide_idle_node(ctx),
        ParsedAnnotation::Bad { why } => {
            let text = format!(
                "annotation dogwatch.dev/reboot cannot be read ({why}); the coordinator does \
                 nothing until you repair or remove it"
            );
            return RebootStep::new(RebootReason::RecordUnreadable, text).with_warning_event();
        }
        ParsedAnnotation::Is(record) => record,
    };
    if record.run != ctx.seen.run.id {
        return adopt_record(ctx, record);
    }
    if record.phase < RebootPhase::Returning && record.boot_id != *ctx.boot {
        return take_new_boot(ctx, record);
    }
    if matches!(ctx.seen.policies, ClusterPolicies::NotYetRead) {
        // The policies decide which group's lock it is, and how long each phase may take.
        return RebootStep::new(
            RebootReason::LookingAtPolicies,
            "reading the RebootPolicies",
        );
    }
    if ctx.node.abort != ParsedAnnotation::Absent {
        return abort::decide_abort(ctx, record);
    }
    if let Some(step) = fencing::hold_while_fenced(ctx, record) {
        return step;
    }
    match record.phase {
        RebootPhase::Waiting => waiting::decide_waiting_phase(ctx, record),
        RebootPhase::Draining => draining::decide_draining_phase(ctx, record),
        RebootPhase::Holding => holding::decide_holding_phase(ctx, record),
        RebootPhase::Rebooting => rebooting::decide_rebooting_phase(ctx, record),
        RebootPhase::Returning => returning::decide_returning_phase(ctx, record),
    }
}

/// A new boot is the return from a reboot; if it does not end what is under way, it is written down.
fn take_new_boot(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    if record.ends_with_new_boot() {
        return returning::begin_return(ctx, record);
    }
    let text = format!(
        "booted again while {}: {} → {}",
        record.phase.as_str(),
        record.boot_id,
        ctx.boot
    );
    let record = RebootRecord {
        boot_id: ctx.boot.clone(),
        ..record.clone()
    };
    let step = RebootStep::new(RebootReason::NewBoot, text).with_normal_event();
    undo::keep_lock_observed(ctx, step.with_record_patch(ctx, record))
}

/// Another run owns the record. It is an older run, unless this process has owned the record
/// before.
fn adopt_record(ctx: &RebootContext<'_>, record: &RebootRecord) -> RebootStep {
    let by = record.run.to_string();
    if ctx.seen.run.owned_since.is_some() {
        let text = format!("run {by} of this node's coordinator has taken over");
        return RebootStep::new(RebootReason::SupersededByNewerRun, text)
            .with_action(RebootAction::Stop { by });
    }
    let record = RebootRecord {
        run: ctx.seen.run.id.clone(),
        ..record.clone()
    };
    RebootStep::new(
        RebootReason::AdoptingOlderRun,
        format!("taking over phase {} from run {by}", record.phase.as_str()),
    )
    .with_record_patch(ctx, record)
}
