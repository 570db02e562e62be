//! Decides about a marked Machine or Node, and about what a remediation left behind. Source:
//! specification §4.1; metal3's remediation design.

use std::sync::Arc;

use super::action::RemediationAction;
use super::context::RemediationContext;
use super::record::{RemediationRecord, RemediationStep, StepStamp};
use super::request::StrategyType;
use super::truth_table::{RemediationMove, TruthTableInputs, move_by_annotation};
use super::types::RemediationDecision;
use super::{RemediationReason, WorkloadRelease, prepare, recovery, release_permit};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::power::{CurrentPower, HostSnapshot};

pub(super) fn decide(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let host = match &ctx.case.host {
        Ok(host) => host,
        Err(problem) if ctx.case.needs_remediation || is_refused(ctx) => {
            return RemediationContext::refuse_with_warning(problem.clone());
        }
        Err((_, text)) => return RemediationContext::not_needed(text.clone()),
    };
    if let Some(decision) = wait_for_cluster(ctx) {
        return decision;
    }
    let bits = ctx.table_inputs();
    if prepare::is_key_of_person(ctx) {
        return prepare::take_over_key(ctx, host, prepare::new_record(ctx, requester_uid(ctx), 1));
    }
    match move_by_annotation(bits) {
        RemediationMove::AddKey if recovery::is_mark_served(ctx) => recovery::decide_recovery(ctx),
        RemediationMove::AddKey => add_key(ctx, host),
        RemediationMove::Release => release_node(ctx),
        RemediationMove::RemoveNeed => finish_served(ctx, host),
        RemediationMove::RemoveKey => remove_key(ctx, host),
        RemediationMove::Nothing => decide_without_move(ctx, bits),
    }
}

/// A mark without a usable host is answered although it does not count as `needs_remediation`.
fn is_refused(ctx: &RemediationContext<'_>) -> bool {
    ctx.case
        .node
        .as_ref()
        .is_some_and(|node| node.needs_remediation && ctx.case.problem.is_some())
}

/// While nothing is known about the Node, the table's "Node exists" has no value. Only a remediation
/// that was withdrawn goes on: its two rows are the same for both values.
fn wait_for_cluster(ctx: &RemediationContext<'_>) -> Option<RemediationDecision> {
    let problem = ctx.case.cluster.problem.clone()?;
    ctx.case
        .needs_remediation
        .then(|| RemediationContext::wait_for_cluster(problem))
}

fn add_key(ctx: &RemediationContext<'_>, host: &HostSnapshot) -> RemediationDecision {
    match prepare::prepare_key(ctx, host, StrategyType::DeleteNode) {
        Ok((_, host)) => {
            prepare::add_key(ctx, host, prepare::new_record(ctx, requester_uid(ctx), 1))
        }
        Err(not_yet) => not_yet,
    }
}

/// UID of the Machine or Node that asks for the remediation.
fn requester_uid<'a>(ctx: &RemediationContext<'a>) -> &'a str {
    let machine = ctx.case.machine.as_ref().map(|it| it.uid.as_str());
    let node = ctx.case.node.as_ref().map(|it| it.uid.as_str());
    machine.or(node).unwrap_or_default()
}

fn release_node(ctx: &RemediationContext<'_>) -> RemediationDecision {
    let how = StrategyType::DeleteNode;
    let cleared = match release_permit::issue_release_permit(ctx, how) {
        Ok(cleared) => cleared,
        Err(not_yet) => return not_yet,
    };
    let text = release_permit::describe_release(ctx, &cleared);
    decision_with_cause(RemediationReason::Released, text)
        .with_action(RemediationAction::Release(WorkloadRelease {
            permit: cleared,
            strategy_type: how,
            tainted_at: ctx.now.wall,
        }))
        .with_event(EventSeverity::Normal)
}

/// Rows 0101 and 0001 in one decision: between two decisions a health check could set the mark
/// again.
fn finish_served(ctx: &RemediationContext<'_>, host: &Arc<HostSnapshot>) -> RemediationDecision {
    let decision = remove_key(ctx, host);
    let Some(machine) = &ctx.case.machine else {
        return decision;
    };
    let mut decision = decision;
    let machine = Arc::clone(machine);
    decision
        .actions
        .insert(0, RemediationAction::RemoveMachineNeed { machine });
    decision
}

/// Rows 0001 and 1001: removes the key, so that the host comes back.
fn remove_key(ctx: &RemediationContext<'_>, host: &Arc<HostSnapshot>) -> RemediationDecision {
    if let Some((RemediationReason::ForeignKey, _)) = ctx.case.problem {
        return ctx.problem_decision().expect("it is there");
    }
    let text = format!(
        "{} is removed from host {}: the host is powered on, unless something else keeps it off",
        ctx.case.key.annotation_name(),
        host.name
    );
    decision_with_cause(RemediationReason::PoweringOn, text)
        .with_action(RemediationAction::RemoveKey {
            host: Arc::clone(host),
            key: ctx.case.key.annotation_name(),
            record: ctx
                .open_record()
                .map(|record| record_key_removal(ctx, host, record)),
        })
        .with_event(EventSeverity::Normal)
}

/// The record includes the steps done since the key was added; none of them was worth its own
/// write.
pub(super) fn record_key_removal(
    ctx: &RemediationContext<'_>,
    host: &HostSnapshot,
    record: &RemediationRecord,
) -> RemediationRecord {
    let mut record = record.clone();
    if let Some(at) = host.status.power.off_confirmed_at {
        record.push_step(StepStamp {
            step: RemediationStep::OffProved,
            at,
        });
    }
    let was_there = record.node_uid.is_some();
    let is_known = ctx.case.cluster.problem.is_none();
    if was_there && is_known && ctx.case.node.is_none() {
        record.push_step(ctx.stamp_step(RemediationStep::Released));
    }
    record.push_step(ctx.stamp_step(RemediationStep::KeyRemoved));
    record
}

fn decide_without_move(
    ctx: &RemediationContext<'_>,
    bits: TruthTableInputs,
) -> RemediationDecision {
    match (bits.needs_remediation, bits.key) {
        (true, true) => wait_for_off(ctx, bits.power),
        (false, true) => wait_for_off_when_withdrawn(ctx, bits.power),
        (true, false) => decide_off_by_others(ctx, bits.power),
        (false, false) => recovery::decide_recovery(ctx),
    }
}

/// Rows 0111 and 1111.
pub(super) fn wait_for_off(
    ctx: &RemediationContext<'_>,
    power: CurrentPower,
) -> RemediationDecision {
    if let Some(trouble) = ctx.problem_decision() {
        return trouble;
    }
    let says = ctx.describe_power();
    let decision = match (power, ctx.off_since()) {
        (CurrentPower::On | CurrentPower::Off, _) => decision_with_cause(
            RemediationReason::PoweringOff,
            format!("the host is being powered off: {says}"),
        ),
        (CurrentPower::Unknown, Some(_)) => decision_with_cause(
            RemediationReason::ProvingOff,
            format!("the BMC reported off once: {says}"),
        ),
        (CurrentPower::Unknown, None) => {
            let next = ctx.confirm_off_hint();
            let text = format!("the host's power state is unknown: {says}{next}");
            decision_with_cause(RemediationReason::PowerUnknown, text)
        }
    };
    ctx.observe_heartbeat(decision)
}

/// Rows 0011 and 1011: by the table the key stays until the host is off, and is removed then. On a host
/// that left the states in which keys are obeyed nothing would switch it off, and the key would switch off
/// what is installed there next.
fn wait_for_off_when_withdrawn(
    ctx: &RemediationContext<'_>,
    power: CurrentPower,
) -> RemediationDecision {
    let says = ctx.describe_power();
    if let Some((RemediationReason::ForeignKey, _)) = ctx.case.problem {
        return ctx.problem_decision().expect("it is there");
    }
    // What nobody has recorded yet is no reason.
    if let Ok(host) = &ctx.case.host
        && host.status.provisioning.is_some()
        && !ctx.is_key_obeyed(host)
    {
        return remove_key(ctx, host);
    }
    let reason = match power {
        CurrentPower::On | CurrentPower::Off => RemediationReason::PoweringOff,
        CurrentPower::Unknown => RemediationReason::PowerUnknown,
    };
    let text = format!(
        "the remediation is no longer requested; the host is still powered off first, and then \
         the key is removed: {says}"
    );
    decision_with_cause(reason, text)
}

/// Rows 0100 and 1100. A health check may mark the Machine again before its host is on again.
fn decide_off_by_others(ctx: &RemediationContext<'_>, power: CurrentPower) -> RemediationDecision {
    if let Some(trouble) = ctx.problem_decision() {
        return trouble;
    }
    let says = ctx.describe_power();
    match power {
        CurrentPower::On | CurrentPower::Off if recovery::is_node_out(ctx) => {
            recovery::say_powering_on(ctx)
        }
        CurrentPower::Unknown => {
            let next = ctx.confirm_off_hint();
            let text = format!(
                "Dogwatch does nothing, because the host's power state is unknown: {says}{next}"
            );
            decision_with_cause(RemediationReason::PowerUnknown, text)
        }
        CurrentPower::On | CurrentPower::Off => {
            let text = format!(
                "the host is off, and Dogwatch did not power it off: power it on, or create a \
                 PowerRemediation, which handles this case too ({says})"
            );
            decision_with_cause(RemediationReason::NothingToDo, text)
        }
    }
}
