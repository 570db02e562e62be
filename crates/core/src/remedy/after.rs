//! After the key: the host comes back, its Node is Ready with another boot, and nothing of ours is left.
//! Source: specification §1 S4, §4.1, §4.4.

use std::sync::Arc;

use super::action::Action;
use super::case::Decision;
use super::context::Context;
use super::kept::{Fate, Kept};
use super::key::KeyOwner;
use super::record::{Record, Step};
use super::{reason, restore};
use crate::decision::because;
use crate::power::{Host, PowerNow, is_obeyed, requests};
use crate::reboot::NodeSeen;

/// Neither key nor need.
pub(super) fn coming_back(ctx: &Context<'_>) -> Decision {
    if let Some((reason::FOREIGN_KEY, _)) = ctx.case.trouble {
        return ctx.trouble().expect("it is there");
    }
    let Some(record) = ctx.open_record() else {
        return at_rest(ctx);
    };
    if record.at(Step::KeyRemoved).is_none() {
        let text = "the key was taken away before the host was off";
        return because(reason::WITHDRAWN, text);
    }
    if let Some(why) = no_longer_awaited(ctx) {
        return because(reason::WITHDRAWN, why);
    }
    if is_back(ctx.case.node.as_deref(), record) {
        if restore::is_due(ctx) {
            let text = "the Node is Ready, with another boot; what was on the old one comes back";
            return because(reason::RESTORING, text);
        }
        return because(reason::REMEDIATED, "the Node is Ready, with another boot");
    }
    if ctx.power() == PowerNow::On {
        let text = "the host is on; waits for its Node to be Ready with another boot";
        return because(reason::WAITING_FOR_NODE, text);
    }
    let text = format!("the host is to come back: {}", ctx.power_says());
    because(reason::POWERING_ON, text)
}

fn at_rest(ctx: &Context<'_>) -> Decision {
    if let Some(text) = ctx.case.kept.as_ref().and_then(waits) {
        return because(reason::RESTORING, text);
    }
    let is_done = |record: &Record| record.at(Step::NodeReady).is_some();
    if ctx.case.record.as_ref().is_some_and(is_done) {
        return because(reason::REMEDIATED, "the Node is Ready, with another boot");
    }
    Context::rest("nothing is asked of it")
}

/// What is kept, and goes on no Node yet.
fn waits(kept: &Kept) -> Option<String> {
    let name = &kept.backup().node;
    match &kept.fate {
        Fate::Waits => Some(format!("what was on node {name} waits for it to come back")),
        Fate::NotIts(why) => Some(format!(
            "what was on node {name} goes on no Node: {why}; it waits for its own machine"
        )),
        Fate::NotDeleted | Fate::Due { .. } | Fate::Stale(_) => None,
    }
}

/// A new boot id is the proof; where the old one was never known, another Node is.
pub(super) fn is_back(node: Option<&NodeSeen>, record: &Record) -> bool {
    let Some(node) = node.filter(|node| node.ready) else {
        return false;
    };
    match (&record.boot_id, &node.boot_id) {
        (Some(old), Some(new)) => old != new.as_str(),
        (Some(_), None) => false,
        (None, _) => record.node_uid.as_ref() != Some(&node.uid),
    }
}

/// Why its Node is not coming back: its Lease would count it as out for ever.
fn no_longer_awaited(ctx: &Context<'_>) -> Option<String> {
    if let Some((reason::WITHDRAWN, text)) = &ctx.case.trouble {
        return Some(text.clone());
    }
    let host = ctx.case.host.as_ref().ok()?;
    is_deprovisioned(host).then(|| {
        format!(
            "host {} is provisioned no more: its Node is gone",
            host.name
        )
    })
}

/// Its provisioner has taken the machine away from whoever ran there.
fn is_deprovisioned(host: &Host) -> bool {
    let key = KeyOwner::Unnamed;
    let asked = key.put_on(host);
    !requests(&asked)
        .iter()
        .filter(|request| request.name == key.key())
        .all(|request| is_obeyed(&asked, request))
}

/// What was seen since the key went, once for each step.
pub(super) fn record(ctx: &Context<'_>, decision: Decision) -> Decision {
    let Some(next) = next_record(ctx) else {
        return decision;
    };
    let Ok(host) = &ctx.case.host else {
        return decision;
    };
    let host = Arc::clone(host);
    decision.act(Action::WriteRecord { host, record: next })
}

fn next_record(ctx: &Context<'_>) -> Option<Record> {
    let record = ctx.open_record().filter(|_| !ctx.case.is_keyed())?;
    let mut next = record.clone();
    if record.at(Step::KeyRemoved).is_none() {
        if ctx.case.needs {
            return None;
        }
        next.push(ctx.stamp(Step::Withdrawn));
        return Some(next);
    }
    if ctx.power() == PowerNow::On {
        next.push(ctx.stamp(Step::PoweredOn));
    }
    if is_back(ctx.case.node.as_deref(), record) && !restore::is_due(ctx) {
        next.push(ctx.stamp(Step::NodeReady));
    } else if no_longer_awaited(ctx).is_some() {
        next.push(ctx.stamp(Step::Failed));
    }
    (next != *record).then_some(next)
}

/// The mark and the Lease go once nothing of this case is under way, and nobody else has the Node in hand.
pub(super) fn free(ctx: &Context<'_>, decision: Decision) -> Decision {
    let case = ctx.case;
    let Some(name) = &case.node_name else {
        return decision;
    };
    let is_preparing = decision.because.reason == reason::PREPARING;
    let is_open = ctx.open_record().is_some() && !ends(&decision);
    if case.is_keyed() || is_preparing || is_open || ctx.around.is_claimed(case, name) {
        return decision;
    }
    let mut decision = decision;
    if let Some(node) = case.node.as_ref().filter(|node| node.fenced) {
        decision = decision.act(Action::UnmarkNode {
            node: Arc::clone(node),
        });
    }
    if case.leased {
        decision = decision.act(Action::FreeLease { node: name.clone() });
    }
    decision
}

/// This very decision writes the end down, before what follows it.
fn ends(decision: &Decision) -> bool {
    let mut records = decision.actions.iter().filter_map(Action::record);
    records.any(|record| record.ended().is_some())
}
