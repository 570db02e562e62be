//! Hosts that a live baremetal-operator manages. Dogwatch writes nothing to them, and reads the BMC
//! itself: the operator's "off" has no age and may be a default. Source: specification §4.3;
//! `facts/fencing.md` §2.2, §3.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotations::HostRebootAnnotation;
use super::context::PowerContext;
use super::machine_change::{self, MachineChange, MachineChangeKind};
use super::provisioning;
use super::readiness;
use super::readings::{ReadPace, next_poll_at, next_read_at};
use super::refusal::{self, PowerReporting};
use super::snapshot::LevelReading;
use super::step::PowerStep;

/// In these operational statuses metal3's controller may ignore annotations for hours.
const STUCK_OPERATIONAL_STATUSES: [&str; 3] = ["error", "delayed", "detached"];

/// Polls, and reads again soon while a key waits for its proof.
pub(super) fn observe_power(ctx: &PowerContext<'_>, step: &mut PowerStep) {
    readiness::check_level(ctx, step, 0);
    let mut keys = obeyed_keys(ctx);
    if let Some(change) = keys.find_map(|key| machine_change_since_key(ctx, &key)) {
        machine_change::warn_of_other_machine(ctx, step, 0, change);
    }
    let proved: BTreeSet<String> = proved_off_keys(ctx)
        .into_iter()
        .flat_map(|(_, keys)| keys)
        .collect();
    let is_waited_for = obeyed_keys(ctx).any(|key| !proved.contains(&key.id()));
    if !is_waited_for {
        return step.read_level_at(ctx, 0, next_poll_at(ctx, 0), "the next poll");
    }
    // The read goes before polls, as for a power-off of Dogwatch's own.
    step.is_busy = true;
    machine_change::request_identity(ctx, step, 0);
    let soon = ctx.newest_reading(0).map_or(ctx.now.mono, |read| {
        read.answered.saturating_add(ctx.config.confirm)
    });
    let soon = soon.max(next_read_at(ctx, 0, Duration::ZERO, ReadPace::Slow));
    step.read_level_at(
        ctx,
        0,
        soon,
        "whether the other power controller has powered it off",
    );
}

/// The keys that are proved: metal3's controller switched the host off for them and will not undo
/// it. Returned with the two readings of off.
pub(super) fn proved_off_keys<'a>(
    ctx: &PowerContext<'a>,
) -> Option<([&'a LevelReading; 2], Vec<String>)> {
    let refusal = refusal::find_refusal(ctx)?;
    let host = &ctx.seen.host;
    let operational = host.status.operational.as_deref();
    let is_stuck =
        operational.is_some_and(|operational| STUCK_OPERATIONAL_STATUSES.contains(&operational));
    let says_off = host.status.powered_on == Some(false);
    if refusal.reporting != PowerReporting::Metal3Managed
        || host.disable_power_off
        || is_stuck
        || !says_off
    {
        return None;
    }
    let (first, second) = ctx
        .two_off_readings(0, ctx.settled_at(), ctx.config.confirm)
        .filter(|(first, _)| ctx.is_reading_fresh(first))?;
    let proved: Vec<String> = obeyed_keys(ctx)
        .filter(|key| key_settled_at(ctx, key).is_some_and(|settled| first.asked >= settled))
        .filter(|key| machine_change_since_key(ctx, key).is_none())
        .map(|key| key.id())
        .collect();
    (!proved.is_empty()).then_some(([first, second], proved))
}

/// The keys that hold the host off by metal3's rules: only on a provisioned host, by the state that
/// metal3 records. `force` does not count, because older versions of metal3 do not know it.
fn obeyed_keys<'a>(ctx: &PowerContext<'a>) -> impl Iterator<Item = HostRebootAnnotation> + use<'a> {
    let state = ctx.host_status().provisioning.as_deref();
    let is_obeyed = provisioning::is_provisioned(state);
    let all: Vec<HostRebootAnnotation> = if is_obeyed {
        ctx.requests.clone()
    } else {
        Vec::new()
    };
    all.into_iter().filter(|request| request.key.is_some())
}

/// Another machine answers at the BMC's address since the key was seen: its off proves nothing of this
/// host's.
fn machine_change_since_key<'a>(
    ctx: &PowerContext<'a>,
    key: &HostRebootAnnotation,
) -> Option<&'a MachineChange> {
    let change = ctx.seen.memory.machine_changes.get(0)?;
    let is_later = ctx.annotation_seen_at(key)? <= change.asked;
    (is_later && change.kind == MachineChangeKind::Unexpected).then_some(change)
}

/// From this moment on no BMC can run a power-on that metal3's controller sent before it saw the
/// key.
fn key_settled_at(ctx: &PowerContext<'_>, key: &HostRebootAnnotation) -> Option<Duration> {
    let seen = ctx.annotation_seen_at(key)?;
    Some(seen.saturating_add(ctx.config.settle))
}
