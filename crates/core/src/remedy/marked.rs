//! What is done for a Machine or a Node that is marked, and for what is left of one. Source: specification
//! §4.1; metal3's remediation design.

use std::sync::Arc;

use super::action::Action;
use super::case::Decision;
use super::context::Context;
use super::record::{Record, Stamp, Step};
use super::request::StrategyType;
use super::table::{Bits, Move, by_annotation};
use super::{Release, after, clear, prepare, reason};
use crate::decision::{Severity, because};
use crate::power::{Host, PowerNow};

pub(super) fn decide(ctx: &Context<'_>) -> Decision {
    let host = match &ctx.case.host {
        Ok(host) => host,
        Err(problem) if ctx.case.needs || is_refused(ctx) => {
            return Context::refuse(problem.clone());
        }
        Err((_, text)) => return Context::rest(text.clone()),
    };
    let bits = ctx.bits();
    if prepare::is_of_a_person(ctx) {
        return prepare::take_over(ctx, host, prepare::record(ctx, uid(ctx), 1));
    }
    match by_annotation(bits) {
        Move::AddKey => add_key(ctx, host),
        Move::Release => release(ctx),
        Move::RemoveNeed => served(ctx, host),
        Move::RemoveKey => let_go(ctx, host),
        Move::Nothing => nothing(ctx, bits),
    }
}

/// A mark that leads nowhere is answered also where it is not counted as a need.
fn is_refused(ctx: &Context<'_>) -> bool {
    ctx.case
        .node
        .as_ref()
        .is_some_and(|node| node.needs_remediation && ctx.case.trouble.is_some())
}

fn add_key(ctx: &Context<'_>, host: &Host) -> Decision {
    match prepare::prepare(ctx, host, StrategyType::DeleteNode) {
        Ok((_, host)) => prepare::add_key(ctx, host, prepare::record(ctx, uid(ctx), 1)),
        Err(not_yet) => not_yet,
    }
}

/// Of what asks for it.
fn uid<'a>(ctx: &Context<'a>) -> &'a str {
    let machine = ctx.case.machine.as_ref().map(|it| it.uid.as_str());
    let node = ctx.case.node.as_ref().map(|it| it.uid.as_str());
    machine.or(node).unwrap_or_default()
}

fn release(ctx: &Context<'_>) -> Decision {
    let how = StrategyType::DeleteNode;
    let cleared = match clear::clear(ctx, how) {
        Ok(cleared) => cleared,
        Err(not_yet) => return not_yet,
    };
    let text = clear::said(ctx, &cleared);
    because(reason::RELEASED, text)
        .act(Action::Release(Release {
            cleared,
            how,
            tainted_at: ctx.now.wall,
        }))
        .say(Severity::Normal)
}

/// Row 0101, and row 0001 on the answer: a health check may mark it again in between.
fn served(ctx: &Context<'_>, host: &Arc<Host>) -> Decision {
    let decision = let_go(ctx, host);
    let Some(machine) = &ctx.case.machine else {
        return decision;
    };
    let mut decision = decision;
    let machine = Arc::clone(machine);
    decision
        .actions
        .insert(0, Action::RemoveMachineNeed { machine });
    decision
}

/// Rows 0001 and 1001: the host comes back.
fn let_go(ctx: &Context<'_>, host: &Arc<Host>) -> Decision {
    if let Some((reason::FOREIGN_KEY, _)) = ctx.case.trouble {
        return ctx.trouble().expect("it is there");
    }
    let text = format!(
        "{} is removed from host {}: it comes back, unless something else holds it off",
        ctx.case.key.key(),
        host.name
    );
    because(reason::POWERING_ON, text)
        .act(Action::RemoveKey {
            host: Arc::clone(host),
            key: ctx.case.key.key(),
            record: ctx
                .open_record()
                .map(|record| let_go_record(ctx, host, record)),
        })
        .say(Severity::Normal)
}

/// With what was done since the key was put there: nothing of it was worth a write of its own.
pub(super) fn let_go_record(ctx: &Context<'_>, host: &Host, record: &Record) -> Record {
    let mut record = record.clone();
    if let Some(at) = host.status.power.off_confirmed_at {
        record.push(Stamp {
            step: Step::OffProved,
            at,
        });
    }
    let was_there = record.node_uid.is_some();
    if was_there && ctx.case.node.is_none() {
        record.push(ctx.stamp(Step::Released));
    }
    record.push(ctx.stamp(Step::KeyRemoved));
    record
}

/// Nothing, and why.
fn nothing(ctx: &Context<'_>, bits: Bits) -> Decision {
    match (bits.needs, bits.key) {
        (true, true) => going_off(ctx, bits.power),
        (false, true) => called_off(ctx, bits.power),
        (true, false) => off_by_others(ctx, bits.power),
        (false, false) => after::coming_back(ctx),
    }
}

/// Rows 0111 and 1111.
pub(super) fn going_off(ctx: &Context<'_>, power: PowerNow) -> Decision {
    if let Some(trouble) = ctx.trouble() {
        return trouble;
    }
    let says = ctx.power_says();
    let decision = match (power, ctx.off_since()) {
        (PowerNow::On | PowerNow::Off, _) => {
            because(reason::POWERING_OFF, format!("the host goes off: {says}"))
        }
        (PowerNow::Unknown, Some(_)) => {
            because(reason::PROVING_OFF, format!("off was read once: {says}"))
        }
        (PowerNow::Unknown, None) => {
            let next = ctx.say_so();
            let text = format!("whether the host is off is not known: {says}{next}");
            because(reason::POWER_UNKNOWN, text)
        }
    };
    ctx.look_beat(decision)
}

/// Rows 0011 and 1011: by the table the key stays until the host is off, and is removed then.
fn called_off(ctx: &Context<'_>, power: PowerNow) -> Decision {
    let says = ctx.power_says();
    if let Some((reason::FOREIGN_KEY, _)) = ctx.case.trouble {
        return ctx.trouble().expect("it is there");
    }
    let reason = match power {
        PowerNow::On | PowerNow::Off => reason::POWERING_OFF,
        PowerNow::Unknown => reason::POWER_UNKNOWN,
    };
    let text = format!(
        "nothing asks for it any more; the host goes off all the same, and then the key goes: {says}"
    );
    because(reason, text)
}

/// Rows 0100 and 1100.
fn off_by_others(ctx: &Context<'_>, power: PowerNow) -> Decision {
    if let Some(trouble) = ctx.trouble() {
        return trouble;
    }
    let says = ctx.power_says();
    match power {
        PowerNow::Unknown => {
            let next = ctx.say_so();
            let text =
                format!("whether the host is on is not known, so nothing is done: {says}{next}");
            because(reason::POWER_UNKNOWN, text)
        }
        PowerNow::On | PowerNow::Off => {
            let text = format!(
                "the host is off, and not by us: power it on, or make a PowerRemediation, which handles that as well ({says})"
            );
            because(reason::NOTHING_TO_DO, text)
        }
    }
}
