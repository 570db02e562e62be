//! Hosts whose power is not to be touched, each with its reason. Source: specification §3.2 and §3.3.

use super::annotations::{DETACHED, listed};
use super::context::Context;
use super::host::{HostStatus, State};
use super::seen::{Access, Owner};
use super::{reason, times};

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    /// A sentence, with what a person does next.
    pub(super) message: String,
    pub(super) knows: Knows,
}

/// What is said of the power all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knows {
    /// Nothing is written: the status is another controller's, or it is not known yet whether it is.
    Nothing,
    /// It is not known, which is "on".
    Unknown,
    /// It is read.
    Power,
    /// It is read for whoever asks, and nothing is written: the status is another controller's.
    Theirs,
}

impl Knows {
    /// Whether the status is ours to write.
    pub(super) fn is_written(self) -> bool {
        match self {
            Knows::Unknown | Knows::Power => true,
            Knows::Nothing | Knows::Theirs => false,
        }
    }
}

/// Why this host is left alone, if it is.
pub(super) fn refusal(ctx: &Context<'_>) -> Option<Refusal> {
    whose(ctx)
        .or_else(|| object(ctx))
        .or_else(|| first_level(ctx))
        .or_else(|| times_without_room(ctx))
        .or_else(|| power_off_disabled(ctx))
}

fn refuse(knows: Knows, reason: &'static str, message: impl Into<String>) -> Refusal {
    Refusal {
        reason,
        message: message.into(),
        knows,
    }
}

fn whose(ctx: &Context<'_>) -> Option<Refusal> {
    match &ctx.seen.owner {
        Owner::Ours => None,
        Owner::Theirs { leader } => Some(refuse(
            match object(ctx).or_else(|| first_level(ctx)) {
                Some(_) => Knows::Nothing,
                None => Knows::Theirs,
            },
            reason::OTHER_CONTROLLER,
            format!(
                "the baremetal-operator that leads as {leader} controls this host; to hand it over, pause the host for it (baremetalhost.metal3.io/paused) or name its namespace by --host-namespaces"
            ),
        )),
        Owner::NotYetKnown => Some(refuse(
            Knows::Nothing,
            reason::OWNER_UNKNOWN,
            "finding out whether a baremetal-operator controls this host",
        )),
    }
}

fn object(ctx: &Context<'_>) -> Option<Refusal> {
    let host = &ctx.seen.host;
    if host.annotations.contains_key(DETACHED) {
        let text =
            format!("the host is detached: nothing is done until annotation {DETACHED} is removed");
        return Some(refuse(Knows::Unknown, reason::DETACHED, text));
    }
    if host
        .levels
        .first()
        .is_none_or(|level| level.devices.is_empty())
    {
        let text = "the host has no BMC: write spec.bmc.address and spec.bmc.credentialsName";
        return Some(refuse(Knows::Unknown, reason::NO_BMC, text));
    }
    if let Some(Err(bad)) = host.levels[0]
        .devices
        .iter()
        .map(|device| &device.address)
        .find(|address| address.is_err())
    {
        // The address says where it stands.
        let text = format!("{bad}; correct it");
        return Some(refuse(Knows::Unknown, reason::INVALID_ADDRESS, text));
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
        "its BMC is that of {}, which had it first and keeps it; nothing is done for this host: correct its address, or delete the one that is wrong",
        listed(&others)
    );
    Some(refuse(Knows::Unknown, reason::SHARED_BMC, text))
}

fn first_level(ctx: &Context<'_>) -> Option<Refusal> {
    match ctx.seen.access.first() {
        Some(Access::Ready { .. }) => None,
        Some(Access::NotYet) | None => Some(refuse(
            Knows::Nothing,
            reason::POWER_UNKNOWN,
            "reading the credentials of its BMC",
        )),
        Some(Access::Missing { reason, message }) => {
            Some(refuse(Knows::Unknown, reason, message.clone()))
        }
    }
}

fn times_without_room(ctx: &Context<'_>) -> Option<Refusal> {
    if times::next(ctx.status(), ctx.now).is_some() {
        return None;
    }
    let text = "a time in status.provisioning or status.power.offConfirmedAt is the last one there is, so that no later one can be written; remove it";
    Some(refuse(Knows::Power, reason::INVALID_TIMES, text))
}

fn power_off_disabled(ctx: &Context<'_>) -> Option<Refusal> {
    if !ctx.seen.host.disable_power_off {
        return None;
    }
    let text = "spec.disablePowerOff is set: the host can neither be held off nor be proved off; fence it by other means, or unset it";
    Some(refuse(Knows::Power, reason::POWER_OFF_DISABLED, text))
}

/// Nothing is known of the power: whoever acts on "off" must not.
pub(super) fn unknown(status: &mut HostStatus) {
    status.powered_on = Some(true);
    status.power.state = Some(State::Unknown);
}
