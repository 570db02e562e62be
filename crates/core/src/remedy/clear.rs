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
use super::key::KeyOwner;
use super::link::BACKUP;
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
    let (bmc, own) = (proof.system_uuid(), node.system_uuid.as_deref());
    let same = silence::compared(bmc, own);
    let (bmc, own) = (bmc.unwrap_or("nothing"), own.unwrap_or("nothing"));
    match same {
        Identity::Different => {
            let text = format!(
                "the BMC of host {} says that it is system {bmc}, and node {} that it is {own}: another machine was switched off; correct spec.bmc.address, or the link to the host",
                proof.host(),
                node.name
            );
            Err(Context::refuse((reason::WRONG_HOST, text)))
        }
        Identity::NotComparable if ctx.config.require_identity => {
            let text = format!(
                "the BMC of host {} tells {bmc} as its system UUID, and node {} {own}: they cannot be compared, and --require-host-identity is set",
                proof.host(),
                node.name
            );
            Err(Context::refuse((reason::IDENTITY_UNKNOWN, text)))
        }
        Identity::Same | Identity::NotComparable => Ok(same),
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

/// What others had put on the Node is on the host, before the Node goes.
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
    let watched = ctx.case.host.as_ref().ok();
    let is_behind = watched.and_then(|host| standing(host)?.ok()).as_ref() == Some(wanted);
    match standing(host) {
        Some(Ok(standing)) if standing == *wanted => Ok(()),
        Some(Ok(standing)) if standing.uid != node.uid => Err(not_restored(ctx, &standing, host)),
        // Our own write came after these reads.
        Some(Ok(_)) | None if is_behind => {
            let text = "looking whether the host keeps what is on the Node";
            Err(because(reason::PROVING_OFF, text).look(ctx.look_fresh()))
        }
        Some(Ok(_)) | None => {
            let text = "what is on the Node is kept on the host";
            Err(because(reason::PROVING_OFF, text).act(Action::KeepBackup {
                host: Arc::clone(host),
                backup: wanted.clone(),
            }))
        }
        Some(Err(why)) => {
            let text = format!(
                "annotation {BACKUP} of host {} cannot be read ({why}): mend it, or remove it if what it keeps is not wanted",
                host.name
            );
            Err(Context::refuse((reason::RESTORING, text)))
        }
    }
}

fn standing(host: &Host) -> Option<serde_json::Result<Backup>> {
    let text = host.annotations.get(BACKUP)?;
    Some(serde_json::from_str(text))
}

fn not_restored(ctx: &Context<'_>, standing: &Backup, host: &Host) -> Decision {
    if ctx.case.node_name.as_ref().map(NodeName::as_str) == Some(&standing.node) {
        let text = "what was on the Node before this one comes back first";
        return because(reason::RESTORING, text);
    }
    let text = format!(
        "host {} keeps what was on node {}, which has not come back: remove annotation {BACKUP} if that is not wanted",
        host.name, standing.node
    );
    Context::refuse((reason::RESTORING, text))
}
