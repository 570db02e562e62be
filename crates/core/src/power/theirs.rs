//! A host that a live baremetal-operator keeps: nothing of it is written, and its BMC is read, for its own
//! controller's "off" has no age and may be a default. Source: specification §4.3; `facts/fencing.md` §2.2, §3.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotations::Request;
use super::context::Context;
use super::gate::{self, Knows};
use super::provisioning;
use super::readiness;
use super::readings::{Pace, due, next_poll};
use super::seen::Read;
use super::step::Step;

/// An operational status in which their controller does not do what annotations say, for hours.
const STUCK: [&str; 3] = ["error", "delayed", "detached"];

/// What is read: polls, and soon again while a key waits for its proof.
pub(super) fn looks(ctx: &Context<'_>, step: &mut Step) {
    readiness::look(ctx, step, 0);
    let proved: BTreeSet<String> = off(ctx).into_iter().flat_map(|(_, keys)| keys).collect();
    let is_waited_for = keys(ctx).any(|key| !proved.contains(&key.id()));
    if !is_waited_for {
        return step.read(ctx, 0, next_poll(ctx, 0), "the next poll");
    }
    // It goes before polls, as for a power-off of ours.
    step.is_busy = true;
    let soon = ctx.newest(0).map_or(ctx.now.mono, |read| {
        read.answered.saturating_add(ctx.config.confirm)
    });
    let soon = soon.max(due(ctx, 0, Duration::ZERO, Pace::Slow));
    step.read(ctx, 0, soon, "whether their controller powered it off");
}

/// The keys of an off that their controller brought about and will not undo, with its two readings.
pub(super) fn off<'a>(ctx: &Context<'a>) -> Option<([&'a Read; 2], Vec<String>)> {
    let refusal = gate::refusal(ctx)?;
    let host = &ctx.seen.host;
    let operational = host.status.operational.as_deref();
    let is_stuck = operational.is_some_and(|operational| STUCK.contains(&operational));
    let says_off = host.status.powered_on == Some(false);
    if refusal.knows != Knows::Theirs || host.disable_power_off || is_stuck || !says_off {
        return None;
    }
    let (first, second) = ctx
        .off_twice(0, ctx.settled_at(), ctx.config.confirm)
        .filter(|(first, _)| ctx.is_fresh(first))?;
    let proved: Vec<String> = keys(ctx)
        .filter(|key| settled(ctx, key).is_some_and(|settled| first.asked >= settled))
        .map(|key| key.id())
        .collect();
    (!proved.is_empty()).then_some(([first, second], proved))
}

/// The keys that hold the host off, by their rules: on a provisioned host, by the state that they keep. An
/// older one does not know `force`.
fn keys<'a>(ctx: &Context<'a>) -> impl Iterator<Item = Request> + use<'a> {
    let state = ctx.status().provisioning.as_deref();
    let is_obeyed = provisioning::is_provisioned(state);
    let all: Vec<Request> = if is_obeyed {
        ctx.requests.clone()
    } else {
        Vec::new()
    };
    all.into_iter().filter(|request| request.key.is_some())
}

/// From when on a power-on that their controller sent before it saw the key can be run no more.
fn settled(ctx: &Context<'_>, key: &Request) -> Option<Duration> {
    let seen = ctx.key_seen(key)?;
    Some(seen.saturating_add(ctx.config.settle))
}
