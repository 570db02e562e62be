//! The permission to release a Node's workloads. Source: specification §1 S2, §4.1.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::action::Action;
use super::beat::Beat;
use super::case::Decision;
use super::context::Context;
use super::kept::{Fate, KeptBackup};
use super::key::KeyOwner;
use super::link::Problem;
use super::record::Backup;
use super::request::StrategyType;
use super::seen::Fresh;
use super::{reason, silence};
use crate::decision::because;
use crate::name::NodeName;
use crate::power::{Host, HostName, Identity, OffProof};
use crate::reboot::NodeSeen;

/// This Node's machine is proved off, for this request, and was so a moment ago. Made by [`super::decide`]
/// alone; whoever deletes a Node, or taints it out of service, demands one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    node: NodeName,
    node_uid: String,
    host: HostName,
    proof: OffProof,
    beat: Beat,
    until: Duration,
}

/// A release: of whom, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The permission.
    pub cleared: Cleared,
    /// How.
    pub how: StrategyType,
    /// `timeAdded` of the taint, in whole seconds: by it, as it stands in the request's status, the taint is
    /// known to be ours when it is lifted. No meaning for a Node that is deleted.
    pub tainted_at: Timestamp,
}

impl Cleared {
    /// The Node.
    pub fn node(&self) -> &NodeName {
        &self.node
    }

    /// Its UID: the precondition.
    pub fn node_uid(&self) -> &str {
        &self.node_uid
    }

    /// The host that is off.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// What it rests on.
    pub fn proof(&self) -> &OffProof {
        &self.proof
    }

    /// The Node's sign of life, as it was read: one that has moved since contradicts this.
    pub fn beat(&self) -> &Beat {
        &self.beat
    }

    /// Whether it still holds at this moment of the monotonic clock that it was made by. Later: all again.
    pub fn lasts(&self, now: Duration) -> bool {
        now < self.until
    }

    /// How long it holds from this moment on.
    pub fn left(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now)
    }
}

/// Whether the Node may be released now; else why not, with what has to be looked at or written first.
///
/// Everything is asked of reads that are at most 5 s old, and of the proof as it is now. In their order: what
/// the power side says, what a fresh GET of the host says, then the Node, its identity, and its silence.
pub(super) fn clear(ctx: &Context<'_>, how: StrategyType) -> Result<Cleared, Decision> {
    if let Some(trouble) = ctx.trouble() {
        return Err(trouble);
    }
    if ctx.case.key == KeyOwner::Unnamed {
        return Err(foreign(ctx));
    }
    let proof = ctx.proof().ok_or_else(|| unproved(ctx))?;
    silence::not_broken(ctx, proof)?;
    silence::lasts(ctx, proof)?;
    let Some(fresh) = ctx.fresh().filter(|fresh| fresh.taken >= proof.since()) else {
        let text = "off is proved; looking once more before the Node is released";
        return Err(because(reason::PROVING_OFF, text).look(ctx.look_fresh()));
    };
    let host = host(ctx, fresh, proof)?;
    let node = node(ctx, fresh)?;
    let same = identity(ctx, proof, node)?;
    silence::kept(ctx, fresh, proof, same)?;
    match how {
        StrategyType::DeleteNode => kept(ctx, fresh, host, node)?,
        StrategyType::OutOfServiceTaint => {}
    }
    Ok(Cleared {
        node: node.name.clone(),
        node_uid: node.uid.clone(),
        host: host.name.clone(),
        proof: proof.clone(),
        beat: fresh.beat.clone(),
        until: Context::until(fresh),
    })
}

/// The table looks at the key only; but of one that is not ours nobody knows for whom it was put there.
fn foreign(ctx: &Context<'_>) -> Decision {
    let text = format!(
        "annotation {} of the host has a value that is not ours, so that nothing is released on it; remove it, and ours is put there",
        ctx.case.key.key()
    );
    Context::refuse((reason::FOREIGN_KEY, text))
}

/// The host is off, and nobody knows whether by our doing.
fn unproved(ctx: &Context<'_>) -> Decision {
    let text = format!("the host is read off; not proved yet: {}", ctx.power_says());
    ctx.look_beat(because(reason::PROVING_OFF, text))
}

/// What was read contradicts what is watched: the watch will show it.
fn changed(fresh: &Fresh, reason: &'static str, text: String) -> Decision {
    because(reason, text).wake(Context::until(fresh), "what was read to be seen")
}

/// Our key stands on it, and the need stands.
fn host<'a>(
    ctx: &Context<'_>,
    fresh: &'a Fresh,
    proof: &OffProof,
) -> Result<&'a Arc<Host>, Decision> {
    let changed = |text: &str| Err(changed(fresh, reason::PROVING_OFF, text.to_owned()));
    let Some(host) = fresh.host.as_ref() else {
        return changed("the host is gone");
    };
    if !ctx.case.key.is_on(host) {
        return changed("our key is not on the host any more");
    }
    if !ctx.proves(proof, host) {
        return changed("the key on the host is another one than the one that was proved");
    }
    if !fresh.needs {
        return changed("the need was taken away a moment ago");
    }
    Ok(host)
}

/// It is the one that was to be released.
fn node<'a>(ctx: &Context<'_>, fresh: &'a Fresh) -> Result<&'a Arc<NodeSeen>, Decision> {
    let watched = ctx.case.node.as_ref().map(|node| &node.uid);
    match &fresh.node {
        None => {
            let text = "the Node is gone already".to_owned();
            Err(changed(fresh, reason::PROVING_OFF, text))
        }
        Some(node) if Some(&node.uid) == watched => Ok(node),
        Some(node) => {
            let text = format!("another Node is called {} now", node.name);
            Err(changed(fresh, reason::NODE_REPLACED, text))
        }
    }
}

/// The machine behind the BMC is the Node's; or the two cannot be compared, and that is not required.
fn identity(ctx: &Context<'_>, proof: &OffProof, node: &NodeSeen) -> Result<Identity, Decision> {
    let same = silence::compared(proof.system_uuid(), node.system_uuid.as_deref());
    match mistaken(ctx, proof.host(), proof.system_uuid(), node) {
        Some(problem) => Err(Context::refuse(problem)),
        None => Ok(same),
    }
}

/// Before the key: what would refuse the release then.
pub(super) fn foreseen(ctx: &Context<'_>, host: &Host) -> Option<Problem> {
    let node = ctx.case.node.as_ref()?;
    let power = ctx.known.power.as_ref();
    let bmc = power.and_then(|power| power.system_uuid.as_deref());
    mistaken(ctx, &host.name, bmc, node)
}

/// The host's BMC is another machine's, or not known to be this Node's where it has to be.
fn mistaken(
    ctx: &Context<'_>,
    host: &HostName,
    bmc: Option<&str>,
    node: &NodeSeen,
) -> Option<Problem> {
    let own = node.system_uuid.as_deref();
    let same = silence::compared(bmc, own);
    let (bmc, own) = (bmc.unwrap_or("nothing"), own.unwrap_or("nothing"));
    match same {
        Identity::Different => {
            let text = format!(
                "the BMC of host {host} says that it is system {bmc}, and node {} that it is {own}: it would switch off another machine; correct spec.bmc.address, or the link to the host",
                node.name
            );
            Some((reason::WRONG_HOST, text))
        }
        Identity::NotComparable if ctx.config.require_identity => {
            let text = format!(
                "the BMC of host {host} tells {bmc} as its system UUID, and node {} {own}: they cannot be compared, and --require-host-identity is set",
                node.name
            );
            Some((reason::IDENTITY_UNKNOWN, text))
        }
        Identity::Same | Identity::NotComparable => None,
    }
}

/// What a release is said to rest on; also that the identity could not be checked.
pub(super) fn said(ctx: &Context<'_>, cleared: &Cleared) -> String {
    let node = ctx.case.node.as_ref();
    let own = node.and_then(|node| node.system_uuid.as_deref());
    let same = silence::compared(cleared.proof.system_uuid(), own);
    let text = format!(
        "host {} is proved off: the workloads of node {} are released",
        cleared.host, cleared.node
    );
    match same {
        Identity::Same => text,
        Identity::NotComparable | Identity::Different => format!(
            "{text}; that it is the Node's machine could not be checked by system UUIDs, and the Node was silent for {} of it",
            crate::duration::format(cleared.beat.silence())
        ),
    }
}

/// What others had put on the Node is kept, before the Node goes.
fn kept(
    ctx: &Context<'_>,
    fresh: &Fresh,
    host: &Arc<Host>,
    node: &NodeSeen,
) -> Result<(), Decision> {
    let wanted = fresh.backup.as_ref();
    let Some(wanted) = wanted.filter(|wanted| wanted.uid == node.uid) else {
        let text = "what is on the Node was not read".to_owned();
        return Err(changed(fresh, reason::PROVING_OFF, text));
    };
    match keep(ctx, host, wanted) {
        None => Ok(()),
        Some(keep) => {
            let text = "what is on the Node is written down first";
            Err(because(reason::PROVING_OFF, text).act(keep))
        }
    }
}

/// What is on the Node is written down, unless it stands there. With it goes what is to come back on this
/// machine's Node since before. Anything else that stands there is written over: it blocks nothing.
pub(super) fn keep(ctx: &Context<'_>, host: &Arc<Host>, there: &Backup) -> Option<Action> {
    let stored = ctx.case.stored.as_ref();
    let is_its =
        |stored: &&Arc<KeptBackup>| stored.backup.uid == there.uid || is_due_on(ctx, there);
    let wanted = match stored.filter(is_its) {
        Some(stored) => there.clone().with(&stored.backup),
        None => there.clone(),
    };
    let stands = stored.is_some_and(|stored| stored.backup == wanted);
    (!stands).then(|| Action::KeepBackup {
        host: Arc::clone(host),
        backup: wanted,
        over: stored.cloned(),
    })
}

/// What is kept is to come back on this very Node, for certain.
fn is_due_on(ctx: &Context<'_>, there: &Backup) -> bool {
    let fate = ctx.case.kept.as_ref().map(|kept| &kept.fate);
    matches!(fate, Some(Fate::Due { node, is_proved: true }) if node.uid == there.uid)
}
