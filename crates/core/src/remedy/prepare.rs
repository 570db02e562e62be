//! The way to a new key: guards, the Lease, the mark on the Node, fresh reads; then the key. Source:
//! specification §2.2, §4.4.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::sync::Arc;

use super::action::Action;
use super::case::Decision;
use super::context::Context;
use super::key::{Key, KeyOwner};
use super::link::record_on;
use super::record::{Record, Step};
use super::request::StrategyType;
use super::seen::Fresh;
use super::{clear, guard, reason};
use crate::decision::{Severity, because};
use crate::power::Host;

/// Everything stands that has to stand before a key: the reads that show it, and the host as they found it.
/// Else what is to be done, or waited for, first.
pub(super) fn prepare<'a>(
    ctx: &Context<'a>,
    host: &Host,
    how: StrategyType,
) -> Result<(&'a Fresh, &'a Arc<Host>), Decision> {
    if let Some(trouble) = ctx.trouble() {
        return Err(trouble);
    }
    // Whatever would refuse the release later: no host is switched off for nothing.
    if let Some(problem) = clear::foreseen(ctx, host) {
        return Err(Context::refuse(problem));
    }
    if let Some(refusal) = guard::refusal(ctx, host) {
        return Err(refusal.into_decision());
    }
    announce(ctx)?;
    let Some(fresh) = ctx.fresh() else {
        let text = "looking once more before the host is switched off";
        return Err(because(reason::PREPARING, text).look(ctx.look_fresh()));
    };
    match stands(ctx, host, fresh) {
        Ok(host) => {
            written_down(ctx, host, fresh, how)?;
            Ok((fresh, host))
        }
        Err(Stale::Later(text)) => {
            let until = Context::until(fresh);
            Err(because(reason::PREPARING, text).wake(until, "what was read to be seen"))
        }
        Err(Stale::Again(text)) => Err(because(reason::PREPARING, text).look(ctx.look_fresh())),
    }
}

/// What is on the Node is written down before its host is switched off: where that fails, no host goes off for
/// nothing.
fn written_down(
    ctx: &Context<'_>,
    host: &Arc<Host>,
    fresh: &Fresh,
    how: StrategyType,
) -> Result<(), Decision> {
    let keep = match (how, &fresh.backup) {
        (StrategyType::DeleteNode, Some(there)) => clear::keep(ctx, host, there),
        (StrategyType::DeleteNode, None) | (StrategyType::OutOfServiceTaint, _) => None,
    };
    let text = "what is on the Node is written down, before the host is switched off";
    keep.map_or(Ok(()), |keep| {
        Err(because(reason::PREPARING, text).act(keep))
    })
}

fn announce(ctx: &Context<'_>) -> Result<(), Decision> {
    let text = "the node's Lease and mark, before the host is switched off";
    let decision = announced(ctx, because(reason::PREPARING, text));
    if decision.actions.is_empty() {
        Ok(())
    } else {
        Err(decision)
    }
}

/// The budgets of planned reboots count this node, and whoever drains it stops.
fn announced(ctx: &Context<'_>, decision: Decision) -> Decision {
    let case = ctx.case;
    let mut decision = decision;
    if let Some(node) = case.node_name.clone().filter(|_| !case.leased) {
        decision = decision.act(Action::TakeLease {
            node,
            control_plane: case.control_plane,
            subject: case.subject.clone(),
        });
    }
    if let Some(node) = case.node.as_ref().filter(|node| !node.fenced) {
        decision = decision.act(Action::MarkNode {
            node: Arc::clone(node),
            subject: case.subject.clone(),
        });
    }
    decision
}

/// A key of this case that is not our doing: a person's, with their word. Ours comes with a record, in one patch.
pub(super) fn is_of_a_person(ctx: &Context<'_>) -> bool {
    let case = ctx.case;
    case.is_keyed()
        && case.needs
        && case.key != KeyOwner::Unnamed
        && case.trouble.is_none()
        && !ctx.open_record().is_some_and(is_held)
        && !is_written_over(ctx)
}

/// It is of a key that still stands.
fn is_held(record: &Record) -> bool {
    record.ended().is_none() && record.at(Step::KeyRemoved).is_none()
}

/// Two remediations hold one host off, and there is place for one record: that of the later one. The earlier
/// one does not write its own over it, or each would take the host for a person's in turn, for ever.
fn is_written_over(ctx: &Context<'_>) -> bool {
    let Ok(host) = &ctx.case.host else {
        return false;
    };
    let record = record_on(host).filter(is_held);
    let stands = |record: &Record| Key::of(host).any(|key| key.owner.uid() == Some(&record.uid));
    record.is_some_and(|record| ctx.case.key.uid() != Some(&record.uid) && stands(&record))
}

/// What goes before a key of ours is made up for. The record is last: it says that all of it was done.
pub(super) fn take_over(ctx: &Context<'_>, host: &Arc<Host>, record: Record) -> Decision {
    let text = format!(
        "{} was put on host {} by somebody else: the node's Lease and mark, and the record, come first",
        ctx.case.key.key(),
        host.name
    );
    let host = Arc::clone(host);
    announced(ctx, because(reason::PREPARING, text)).act(Action::WriteRecord { host, record })
}

/// Why the reads do not do.
enum Stale {
    /// The watch will show it.
    Later(String),
    /// They are older than our own last write.
    Again(String),
}

/// The need stands, and all are the ones that the decision was made for.
fn stands<'a>(ctx: &Context<'_>, host: &Host, fresh: &'a Fresh) -> Result<&'a Arc<Host>, Stale> {
    let case = ctx.case;
    let later = |text: &str| Err(Stale::Later(text.to_owned()));
    if !fresh.needs {
        return later("the need was taken away a moment ago");
    }
    let Some(read) = fresh.host.as_ref().filter(|read| read.uid == host.uid) else {
        return later("the host was replaced a moment ago");
    };
    if read.annotations.contains_key(&case.key.key()) {
        return later("the key is on the host; waits to see it");
    }
    let uid = |node: Option<&Arc<crate::reboot::NodeSeen>>| node.map(|node| node.uid.clone());
    if uid(fresh.node.as_ref()) != uid(case.node.as_ref()) {
        return later("the Node was replaced a moment ago");
    }
    if fresh.node.as_ref().is_some_and(|node| !node.fenced) {
        return Err(Stale::Again("looking whether the mark stands".to_owned()));
    }
    Ok(read)
}

/// The key goes on the host, and the record of this remediation with it.
pub(super) fn add_key(ctx: &Context<'_>, host: &Arc<Host>, record: Record) -> Decision {
    let text = format!(
        "{} is put on host {}: it is switched off, and held off",
        ctx.case.key.key(),
        host.name
    );
    because(reason::PREPARING, text)
        .act(Action::AddKey {
            host: Arc::clone(host),
            key: ctx.case.key.clone(),
            record,
        })
        .say(Severity::Normal)
}

/// The record of a remediation that begins now.
pub(super) fn record(ctx: &Context<'_>, uid: &str, attempt: u32) -> Record {
    let case = ctx.case;
    let node = case.node.as_ref();
    let boot = node.and_then(|node| node.boot_id.as_ref());
    let mut requested = ctx.stamp(Step::Requested);
    requested.at = ctx.wall(ctx.known.first.unwrap_or(ctx.now.mono));
    Record {
        subject: case.subject.to_string(),
        uid: uid.to_owned(),
        node: case.node_name.as_ref().map(ToString::to_string),
        node_uid: node.map(|node| node.uid.clone()),
        boot_id: boot.map(ToString::to_string),
        attempt,
        steps: vec![requested, ctx.stamp(Step::KeyAdded)],
    }
}
