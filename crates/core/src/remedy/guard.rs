//! Guards: they delay new keys, and nothing else. Source: specification §4.4.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::around::{FencedSeen, Stage};
use super::config::Config;
use super::context::Context;
use super::reason;
use super::record::{Record, Step};
use crate::decision::{Severity, because};
use crate::name::NodeName;
use crate::power::{Host, HostName, is_obeyed, requests};
use crate::reboot::is_rebooting_until;

/// Why no key is added now.
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    /// Names and numbers.
    pub(super) message: String,
    /// When it ends by itself.
    pub(super) until: Option<Duration>,
}

/// Why this case gets no key now, if something is in the way.
pub(super) fn refusal(ctx: &Context<'_>, host: &Host) -> Option<Refusal> {
    obeyed(ctx, host)
        .or_else(|| paused(ctx))
        .or_else(|| planned(ctx))
        .or_else(|| cooling(ctx, host))
        .or_else(|| control_plane(ctx, host))
        .or_else(|| cap(ctx, host))
}

impl Refusal {
    fn new(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            message,
            until: None,
        }
    }

    fn until(self, until: Duration) -> Self {
        let until = Some(until);
        Self { until, ..self }
    }

    /// As a decision.
    pub(super) fn into_decision(self) -> super::Decision {
        let decision = because(self.reason, self.message).say(Severity::Normal);
        match self.until {
            Some(until) => decision.wake(until, "the guard to let it go ahead"),
            None => decision,
        }
    }
}

/// A key that would not be obeyed holds nothing off.
fn obeyed(ctx: &Context<'_>, host: &Host) -> Option<Refusal> {
    let keyed = ctx.case.key.put_on(host);
    let name = ctx.case.key.key();
    let requests = requests(&keyed);
    let ours = requests.iter().find(|request| request.name == name);
    if ours.is_some_and(|request| is_obeyed(&keyed, request)) {
        return None;
    }
    let state = host.status.provisioning.as_deref().unwrap_or("unknown");
    let text = format!(
        "host {} is not provisioned (it is {state:?}): reboot annotations are not obeyed there",
        host.name
    );
    Some(Refusal::new(reason::HOST_NOT_PROVISIONED, text))
}

/// What was begun is finished all the same: a host must not stay off because of it.
fn paused(ctx: &Context<'_>) -> Option<Refusal> {
    let machine = ctx.case.machine.as_ref().filter(|machine| machine.paused)?;
    let text = format!(
        "machine {} has annotation cluster.x-k8s.io/paused",
        machine.name
    );
    Some(Refusal::new(reason::PAUSED, text))
}

/// A node that reboots as planned is not failed before its time is up. The time counts since the reboot began,
/// whatever else this case waited for meanwhile.
fn planned(ctx: &Context<'_>) -> Option<Refusal> {
    let node = ctx.case.node.as_ref()?;
    let (reboots, policies) = (&ctx.around.reboots, &ctx.around.policies);
    let flags = &ctx.config.reboot;
    let until = reboots.until(node, policies, flags).or_else(|| {
        // An answer of ours shows it at its `rebooting`, and no watch does yet.
        is_rebooting_until(node, policies, flags, ctx.stood(reason::PLANNED_REBOOT))
    })?;
    let text = format!(
        "node {} reboots as planned, and is given until its rebootTimeout",
        node.name
    );
    (ctx.now.mono < until).then(|| Refusal::new(reason::PLANNED_REBOOT, text).until(until))
}

/// A host is left alone after a remediation; and while one is coming back it is not cut off again: health
/// checks call a machine failed whose Node was deleted a moment ago. Whoever asked for that one. But a request
/// tries again when its own timeout says so.
fn cooling(ctx: &Context<'_>, host: &Host) -> Option<Refusal> {
    let record = super::link::record_on(host)?;
    let request = ctx.case.request.as_ref();
    if request.is_some_and(|request| request.uid == record.uid) {
        return None;
    }
    let (at, long, what) = match (record.ended(), last_on(&record)) {
        (Some(ended), _) => (ended, ctx.config.cooldown, "was remediated at"),
        (None, Some(on)) => {
            let long = ctx.config.cooldown.max(Config::SAY_AFTER);
            (on, long, "is on its way back since")
        }
        // It was never held off, or somebody else took the key away: the table rules.
        (None, None) => return None,
    };
    let until = after(ctx, reason::COOLING_DOWN, at, long)?;
    let text = format!(
        "host {} {what} {at}, and is left alone for {}",
        host.name,
        crate::duration::format(long)
    );
    Some(Refusal::new(reason::COOLING_DOWN, text).until(until))
}

fn last_on(record: &Record) -> Option<Timestamp> {
    record.at(Step::PoweredOn).or(record.at(Step::KeyRemoved))
}

/// When so much has passed since then, if it has not. A time that lies ahead was written by another clock:
/// then it counts from when this process first saw it stand so.
fn after(
    ctx: &Context<'_>,
    reason: &'static str,
    since: Timestamp,
    long: Duration,
) -> Option<Duration> {
    let by_wall = (since <= ctx.now.wall).then(|| {
        let left = long.saturating_sub(ctx.now.since(since));
        ctx.now.mono + left
    });
    let until = by_wall.unwrap_or_else(|| ctx.stood(reason) + long);
    (ctx.now.mono < until).then_some(until)
}

/// One control-plane host at a time, planned or not.
fn control_plane(ctx: &Context<'_>, host: &Host) -> Option<Refusal> {
    if !ctx.case.control_plane {
        return None;
    }
    let refuse = |text: String| Some(Refusal::new(reason::CONTROL_PLANE_ONE_BY_ONE, text));
    let own = ctx.case.node_name.as_ref().map(NodeName::as_str);
    let holder = ctx.around.control_plane_lock.as_deref();
    if let Some(holder) = holder.filter(|holder| Some(*holder) != own) {
        return refuse(format!(
            "{holder} holds the control plane's lock for a planned reboot"
        ));
    }
    let mut others = others(ctx, &host.name);
    let other = others.find(|other| other.control_plane)?;
    refuse(format!(
        "host {} of the control plane is being remediated ({}); when it cannot come back, end that by removing annotation {} from it",
        other.host,
        other.subject,
        super::link::RECORD
    ))
}

/// `--max-fenced`.
fn cap(ctx: &Context<'_>, host: &Host) -> Option<Refusal> {
    let is_off_already = ctx
        .around
        .others(ctx.case)
        .any(|other| other.host == host.name && other.stage == Stage::HeldOff);
    if is_off_already {
        return None;
    }
    let others = others(ctx, &host.name);
    let off: BTreeSet<&HostName> = others
        .filter(|other| other.answers && other.stage != Stage::Returning)
        .map(|other| &other.host)
        .collect();
    let most = usize::try_from(ctx.config.max_fenced).unwrap_or(usize::MAX);
    if off.len() < most {
        return None;
    }
    let text = format!(
        "{} hosts are held off already, and --max-fenced is {most}",
        off.len()
    );
    Some(Refusal::new(reason::TOO_MANY_FENCED, text))
}

/// Those on other hosts that go before this one. Of two that have only got ready neither may wait for the
/// other: the one that is first by name goes ahead.
fn others<'a>(
    ctx: &'a Context<'_>,
    host: &'a HostName,
) -> impl Iterator<Item = &'a FencedSeen> + 'a {
    let is_ready = ctx.case.stage() == Some(Stage::Preparing);
    let others = ctx.around.others(ctx.case);
    others.filter(move |other| {
        let goes_first = match other.stage {
            Stage::HeldOff | Stage::Returning | Stage::Admitted => true,
            Stage::Preparing => !is_ready || other.subject < ctx.case.subject,
        };
        goes_first && other.host != *host
    })
}
