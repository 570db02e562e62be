//! Finds hosts whose power Dogwatch must not touch, each with a reason. Source: specification §3.2
//! and §3.3.

use super::annotations::{DETACHED_ANNOTATION, format_names};
use super::config::PowerConfig;
use super::context::PowerContext;
use super::host::{HostStatus, PowerState};
use super::readings::next_poll_at;
use super::snapshot::{HostOwner, LevelAccess, LevelReading, PowerSnapshot};
use super::step::PowerStep;
use super::{PowerReason, bmc_crosscheck, status_times};
use crate::Now;
use crate::condition::ConditionStatus;
use crate::decision::EventSeverity;

pub(super) const POWER_OFF_DISABLED_TEXT: &str = "spec.disablePowerOff is set: Dogwatch can neither keep the host off nor prove it off; fence it \
     by other means, or unset the field";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PowerRefusal {
    pub(super) reason: PowerReason,
    /// A sentence that tells a person what to do next.
    pub(super) message: String,
    pub(super) reporting: PowerReporting,
}

/// What the status reports about the power of a refused host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PowerReporting {
    /// Nothing is written: the status belongs to another controller, or that is not known yet.
    Nothing,
    /// The power is unknown, which is reported as "on".
    Unknown,
    Power,
    /// The power is read for whoever asks, but not written: another controller owns the status.
    Metal3Managed,
}

impl PowerReporting {
    pub(super) fn is_status_written(self) -> bool {
        match self {
            PowerReporting::Unknown | PowerReporting::Power => true,
            PowerReporting::Nothing | PowerReporting::Metal3Managed => false,
        }
    }
}

/// Why Dogwatch leaves this host alone. `None`: it does not.
pub(super) fn find_refusal(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    // A further level that cut the power needs no BMC to give it back.
    let bmc_refusal = |refuse: fn(&PowerContext<'_>) -> Option<PowerRefusal>| {
        refuse(ctx).filter(|_| !ctx.is_further_level_in_use())
    };
    refuse_by_owner(ctx)
        .or_else(|| refuse_by_host(ctx))
        .or_else(|| bmc_refusal(refuse_by_address))
        .or_else(|| refuse_by_shared_bmc(ctx))
        .or_else(|| bmc_refusal(refuse_by_access))
        .or_else(|| refuse_by_status_times(ctx))
}

/// Why the host's BMC cannot be called.
fn refuse_by_bmc(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    refuse_by_host(ctx)
        .or_else(|| refuse_by_address(ctx))
        .or_else(|| refuse_by_shared_bmc(ctx))
        .or_else(|| refuse_by_access(ctx))
}

/// Why this host cannot be switched off and on, and proved off. `None`: nothing is known against
/// it; a host of metal3's controller is switched by it.
pub fn find_switching_obstacle(
    seen: &PowerSnapshot,
    config: &PowerConfig,
    now: Now,
) -> Option<(PowerReason, String)> {
    let ctx = PowerContext::new(seen, config, "", 0.0, now);
    let refusal = refuse_by_power_off_disabled(&ctx)
        .or_else(|| find_refusal(&ctx))
        .or_else(|| refuse_by_bmc(&ctx));
    if let Some(other) = seen.same_system.first() {
        let text = format!("its BMC reports the same machine as that of host {other}");
        return Some((PowerReason::SharedBMC, text));
    }
    let refusal = refusal.filter(|it| it.reporting != PowerReporting::Metal3Managed)?;
    Some((refusal.reason, refusal.message))
}

fn build_refusal(
    knows: PowerReporting,
    reason: PowerReason,
    message: impl Into<String>,
) -> PowerRefusal {
    PowerRefusal {
        reason,
        message: message.into(),
        reporting: knows,
    }
}

fn refuse_by_owner(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    match &ctx.seen.owner {
        HostOwner::Ours => None,
        HostOwner::Metal3 { leader } => Some(build_refusal(
            match refuse_by_bmc(ctx) {
                Some(_) => PowerReporting::Nothing,
                None => PowerReporting::Metal3Managed,
            },
            PowerReason::OwnedByBaremetalOperator,
            format!(
                "the baremetal-operator with leader {leader} controls this host; to let Dogwatch control it, pause the \
                 host for the operator (baremetalhost.metal3.io/paused) or name its namespace in --host-namespaces"
            ),
        )),
        HostOwner::NotYetKnown => Some(build_refusal(
            PowerReporting::Nothing,
            PowerReason::OwnerNotYetKnown,
            "checking whether a baremetal-operator controls this host",
        )),
    }
}

fn refuse_by_host(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    let host = &ctx.seen.host;
    if host.annotations.contains_key(DETACHED_ANNOTATION) {
        let text = format!(
            "the host is detached: Dogwatch does nothing until annotation {DETACHED_ANNOTATION} is removed"
        );
        return Some(build_refusal(
            PowerReporting::Unknown,
            PowerReason::Detached,
            text,
        ));
    }
    if host
        .levels
        .first()
        .is_none_or(|level| level.devices.is_empty())
    {
        let text = "the host has no BMC: write spec.bmc.address and spec.bmc.credentialsName";
        return Some(build_refusal(
            PowerReporting::Unknown,
            PowerReason::NoBMC,
            text,
        ));
    }
    None
}

fn refuse_by_address(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    let bad = ctx.invalid_bmc_address()?;
    // The text of the error says which part of the address is wrong.
    Some(build_refusal(
        PowerReporting::Unknown,
        PowerReason::InvalidBMCAddress,
        format!("{bad}; correct it"),
    ))
}

fn refuse_by_shared_bmc(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    if ctx.seen.shared_with.is_empty() {
        return None;
    }
    let others: Vec<String> = ctx
        .seen
        .shared_with
        .iter()
        .map(ToString::to_string)
        .collect();
    let text = format!(
        "its BMC already belongs to {}, which keeps it; Dogwatch does nothing for this host: \
         correct its address, or delete the wrong host",
        format_names(&others)
    );
    Some(build_refusal(
        PowerReporting::Unknown,
        PowerReason::SharedBMC,
        text,
    ))
}

fn refuse_by_access(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    match ctx.seen.access.first() {
        Some(LevelAccess::Ready { .. }) => None,
        Some(LevelAccess::NotYet) | None => Some(build_refusal(
            PowerReporting::Nothing,
            PowerReason::PowerUnknown,
            "reading the credentials of its BMC",
        )),
        Some(LevelAccess::Missing { reason, message }) => Some(build_refusal(
            PowerReporting::Unknown,
            *reason,
            message.clone(),
        )),
    }
}

fn refuse_by_status_times(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    if status_times::next_status_time(ctx.host_status(), ctx.now).is_some() {
        return None;
    }
    let text = "a time in status.provisioning or status.power.offConfirmedAt is the latest \
        possible one, so Dogwatch cannot write a later one; remove it";
    Some(build_refusal(
        PowerReporting::Power,
        PowerReason::InvalidStatusTimes,
        text,
    ))
}

fn refuse_by_power_off_disabled(ctx: &PowerContext<'_>) -> Option<PowerRefusal> {
    if !ctx.seen.host.disable_power_off {
        return None;
    }
    Some(build_refusal(
        PowerReporting::Power,
        PowerReason::PowerOffDisabled,
        POWER_OFF_DISABLED_TEXT,
    ))
}

/// Reports a power-off that is wanted and not sent.
pub(super) fn report_power_off_disabled(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    let (reason, text) = (PowerReason::PowerOffDisabled, POWER_OFF_DISABLED_TEXT);
    step.set_cause(ConditionStatus::Unknown, reason, text);
    step.add_event(EventSeverity::Warning, reason, text);
    let level = ctx.level_in_use();
    // What runs again was off before: that off is no proof any more.
    if ctx
        .newest_reading(level)
        .is_some_and(LevelReading::shows_running)
    {
        step.status.power.off_confirmed_at = None;
        step.status.power.confirmed_for.clear();
    }
    bmc_crosscheck::request_crosscheck(ctx, step, level);
    step.read_level_at(ctx, level, next_poll_at(ctx, level), "the next poll");
}

/// Sets the power to unknown and `poweredOn` to true: nobody may act on "off".
pub(super) fn set_power_unknown(status: &mut HostStatus) {
    status.powered_on = Some(true);
    status.power.state = Some(PowerState::Unknown);
}
