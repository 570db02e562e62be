//! Finds hosts whose power Dogwatch must not touch, each with a reason. Source: specification §3.2
//! and §3.3.

use super::annotations::{DETACHED_ANNOTATION, format_names};
use super::config::PowerConfig;
use super::context::PowerContext;
use super::host::{HostStatus, PowerState};
use super::snapshot::{HostOwner, LevelAccess, PowerSnapshot};
use super::{PowerReason, status_times};
use crate::Now;

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
    refuse_by_owner(ctx)
        .or_else(|| refuse_by_host(ctx))
        .or_else(|| refuse_by_access(ctx))
        .or_else(|| refuse_by_status_times(ctx))
        .or_else(|| refuse_by_power_off_disabled(ctx))
}

/// Why this host cannot be switched off and on, and proved off. `None`: nothing is known against
/// it; a host of metal3's controller is switched by it.
pub fn find_switching_obstacle(
    seen: &PowerSnapshot,
    config: &PowerConfig,
    now: Now,
) -> Option<(PowerReason, String)> {
    let ctx = PowerContext::new(seen, config, "", 0.0, now);
    let refusal = refuse_by_power_off_disabled(&ctx).or_else(|| find_refusal(&ctx));
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
            match refuse_by_host(ctx).or_else(|| refuse_by_access(ctx)) {
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
    if let Some(Err(bad)) = host.levels[0]
        .devices
        .iter()
        .map(|device| &device.address)
        .find(|address| address.is_err())
    {
        // The text of the error says which part of the address is wrong.
        let text = format!("{bad}; correct it");
        return Some(build_refusal(
            PowerReporting::Unknown,
            PowerReason::InvalidBMCAddress,
            text,
        ));
    }
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
    let text = "spec.disablePowerOff is set: Dogwatch can neither keep the host off nor prove it \
        off; fence it by other means, or unset the field";
    Some(build_refusal(
        PowerReporting::Power,
        PowerReason::PowerOffDisabled,
        text,
    ))
}

/// Sets the power to unknown and `poweredOn` to true: nobody may act on "off".
pub(super) fn set_power_unknown(status: &mut HostStatus) {
    status.powered_on = Some(true);
    status.power.state = Some(PowerState::Unknown);
}
