//! The Node's silence: what speaks against a proof, and against the link of its host. Source: specification
//! §4.1.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::time::Duration;

use super::beat::Beats;
use super::case::Decision;
use super::context::Context;
use super::reason;
use super::seen::Fresh;
use crate::decision::because;
use crate::power::{Identity, OffProof, same_system};

/// The Node's sign of life was not seen to move after the first reading of the proof. One that moved before it
/// moved while the machine was on; the proof's readings go on, and so it passes.
pub(super) fn not_broken(ctx: &Context<'_>, proof: &OffProof) -> Result<(), Decision> {
    let moved = ctx.known.beats.as_ref().and_then(Beats::moved);
    match moved.filter(|moved| *moved >= proof.since()) {
        Some(_) => Err(alive(ctx, proof)),
        None => Ok(()),
    }
}

fn alive(ctx: &Context<'_>, proof: &OffProof) -> Decision {
    let text = format!(
        "node {} gave a sign of life after host {} was read off: the BMC errs, or is that of another machine; look at both",
        ctx.case.node_name.as_ref().map_or("", |name| name.as_str()),
        proof.host()
    );
    Context::refuse((reason::NODE_IS_ALIVE, text))
}

/// Nothing but the Node's silence says that the host is its machine, and it has not lasted for long enough. Asked
/// before everything is read once more: until then nothing has to be.
pub(super) fn lasts(ctx: &Context<'_>, proof: &OffProof) -> Result<(), Decision> {
    let node = ctx.case.node.as_ref();
    let own = node.and_then(|node| node.system_uuid.as_deref());
    let is_asked = match compared(proof.system_uuid(), own) {
        Identity::NotComparable => !ctx.config.require_identity,
        Identity::Same | Identity::Different => false,
    };
    let of_it = |beats: &&Beats| beats.newest().node_uid.as_ref() == node.map(|node| &node.uid);
    let beats = ctx.known.beats.as_ref().filter(of_it);
    let Some(beats) = beats.filter(|_| is_asked) else {
        return Ok(());
    };
    let until = due(ctx, proof, beats);
    if ctx.now.mono < until {
        return Err(waits(ctx, proof, beats, until));
    }
    Ok(())
}

/// The sign of life was looked at before these reads, and in between it did not move: where the two machines
/// could not be compared, for long enough.
pub(super) fn kept(
    ctx: &Context<'_>,
    fresh: &Fresh,
    proof: &OffProof,
    same: Identity,
) -> Result<(), Decision> {
    let text = "looking at the Node's signs of life";
    let looking = || because(reason::PROVING_OFF, text);
    let beats = ctx.known.beats.as_ref();
    let beats = beats.filter(|beats| beats.newest().node_uid == fresh.beat.node_uid);
    let Some(beats) = beats else {
        return Err(ctx.look_beat(looking()));
    };
    if beats.first() >= fresh.taken {
        return Err(looking().look(ctx.look_fresh()));
    }
    if *beats.newest() != fresh.beat {
        return Err(alive(ctx, proof).wake(Context::until(fresh), "the Node's signs of life"));
    }
    let until = due(ctx, proof, beats);
    match same {
        Identity::Same => Ok(()),
        Identity::NotComparable | Identity::Different if fresh.taken >= until => Ok(()),
        Identity::NotComparable | Identity::Different if ctx.now.mono < until => {
            Err(waits(ctx, proof, beats, until))
        }
        Identity::NotComparable | Identity::Different => {
            Err(waits(ctx, proof, beats, until).look(ctx.look_fresh()))
        }
    }
}

/// When it will have been silent for long enough since the host is off. A kubelet gives a sign of life each
/// 10 s: the time of a proof, 5 s, is no silence.
fn due(ctx: &Context<'_>, proof: &OffProof, beats: &Beats) -> Duration {
    let off = ctx.off_since().unwrap_or(proof.since());
    off.max(beats.silent_since()) + beats.newest().silence()
}

fn waits(ctx: &Context<'_>, proof: &OffProof, beats: &Beats, until: Duration) -> Decision {
    let text = format!(
        "host {} is proved off; its BMC tells no system UUID to compare with the Node's, so that the Node has to be silent for {}: waits until {}",
        proof.host(),
        crate::duration::format(beats.newest().silence()),
        ctx.clock(until),
    );
    let waiting = because(reason::WAITING_FOR_SILENCE, text);
    if ctx.now.mono < until {
        waiting.wake(until, "the Node to be silent for long enough")
    } else {
        waiting
    }
}

/// Whether a BMC and a Node speak of one machine.
pub(super) fn compared(bmc: Option<&str>, node: Option<&str>) -> Identity {
    match (bmc, node) {
        (Some(bmc), Some(node)) => same_system(bmc, node),
        (None, _) | (_, None) => Identity::NotComparable,
    }
}
