//! Compares a Node's heartbeats with the proof that its host is off. Source: specification §4.1.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::time::Duration;

use super::context::RemediationContext;
use super::heartbeat::HeartbeatHistory;
use super::reason;
use super::snapshot::FreshReads;
use super::types::RemediationDecision;
use crate::decision::decision_with_cause;
use crate::power::{PowerOffProof, SystemMatch, compare_system_uuids};

/// Checks that no heartbeat arrived after the first reading of the proof. A heartbeat before it
/// came while the machine was still on. A refusal ends by itself, because the readings of the proof
/// go on.
pub(super) fn require_unbroken_silence(
    ctx: &RemediationContext<'_>,
    proof: &PowerOffProof,
) -> Result<(), RemediationDecision> {
    let moved = ctx
        .memory
        .heartbeats
        .as_ref()
        .and_then(HeartbeatHistory::last_moved_at);
    match moved.filter(|moved| *moved >= proof.valid_since()) {
        Some(_) => Err(refuse_alive_node(ctx, proof)),
        None => Ok(()),
    }
}

fn refuse_alive_node(ctx: &RemediationContext<'_>, proof: &PowerOffProof) -> RemediationDecision {
    let text = format!(
        "node {} sent a heartbeat after the BMC reported host {} off: the BMC is wrong, or \
         belongs to another machine; check both",
        ctx.case.node_name.as_ref().map_or("", |name| name.as_str()),
        proof.host()
    );
    RemediationContext::refuse_with_warning((reason::NODE_IS_ALIVE, text))
}

/// Where the system UUIDs cannot be compared, only the Node's silence shows that the host is its
/// machine: checks that the silence has lasted long enough. Runs before the fresh reads, which are
/// not needed until then.
pub(super) fn require_lasting_silence(
    ctx: &RemediationContext<'_>,
    proof: &PowerOffProof,
) -> Result<(), RemediationDecision> {
    let node = ctx.case.node.as_ref();
    let own = node.and_then(|node| node.system_uuid.as_deref());
    let is_asked = match compare_system_ids(proof.system_uuid(), own) {
        SystemMatch::NotComparable => !ctx.config.require_identity,
        SystemMatch::Same | SystemMatch::Different => false,
    };
    let of_it = |beats: &&HeartbeatHistory| {
        beats.newest_heartbeat().node_uid.as_ref() == node.map(|node| &node.uid)
    };
    let beats = ctx.memory.heartbeats.as_ref().filter(of_it);
    let Some(beats) = beats.filter(|_| is_asked) else {
        return Ok(());
    };
    let until = silence_ends_at(ctx, proof, beats);
    if ctx.now.mono < until {
        return Err(wait_for_silence(ctx, proof, beats, until));
    }
    Ok(())
}

/// Checks that the heartbeat did not change between an earlier read and these fresh reads and,
/// where the system UUIDs do not match, that the silence has lasted long enough.
pub(super) fn require_silence_in_reads(
    ctx: &RemediationContext<'_>,
    fresh: &FreshReads,
    proof: &PowerOffProof,
    same: SystemMatch,
) -> Result<(), RemediationDecision> {
    let text = "reading the Node's heartbeats";
    let looking = || decision_with_cause(reason::PROVING_OFF, text);
    let beats = ctx.memory.heartbeats.as_ref();
    let beats = beats.filter(|beats| beats.newest_heartbeat().node_uid == fresh.heartbeat.node_uid);
    let Some(beats) = beats else {
        return Err(ctx.observe_heartbeat(looking()));
    };
    if beats.first_asked_at() >= fresh.asked_at {
        return Err(looking().with_observe(ctx.observe_fresh()));
    }
    if *beats.newest_heartbeat() != fresh.heartbeat {
        return Err(refuse_alive_node(ctx, proof).wake_at(
            RemediationContext::reads_valid_until(fresh),
            "the Node's heartbeats",
        ));
    }
    let until = silence_ends_at(ctx, proof, beats);
    match same {
        SystemMatch::Same => Ok(()),
        SystemMatch::NotComparable | SystemMatch::Different if fresh.asked_at >= until => Ok(()),
        SystemMatch::NotComparable | SystemMatch::Different if ctx.now.mono < until => {
            Err(wait_for_silence(ctx, proof, beats, until))
        }
        SystemMatch::NotComparable | SystemMatch::Different => {
            Err(wait_for_silence(ctx, proof, beats, until).with_observe(ctx.observe_fresh()))
        }
    }
}

/// When the Node will have been silent for long enough since the host went off. A kubelet sends a
/// heartbeat every 10 s, so the 5 s that a proof takes are no silence.
fn silence_ends_at(
    ctx: &RemediationContext<'_>,
    proof: &PowerOffProof,
    beats: &HeartbeatHistory,
) -> Duration {
    let off = ctx.off_since().unwrap_or(proof.valid_since());
    off.max(beats.silent_since()) + beats.newest_heartbeat().required_silence()
}

fn wait_for_silence(
    ctx: &RemediationContext<'_>,
    proof: &PowerOffProof,
    beats: &HeartbeatHistory,
    until: Duration,
) -> RemediationDecision {
    let text = format!(
        "host {} is proved off; its BMC reports no system UUID to compare with the Node's, so the \
         Node must send no heartbeat for {}: waits until {}",
        proof.host(),
        crate::duration::format_duration(beats.newest_heartbeat().required_silence()),
        ctx.format_clock_at(until),
    );
    let waiting = decision_with_cause(reason::WAITING_FOR_SILENCE, text);
    if ctx.now.mono < until {
        waiting.wake_at(until, "the Node to be silent for long enough")
    } else {
        waiting
    }
}

/// Whether a BMC and a Node report the same machine.
pub(super) fn compare_system_ids(bmc: Option<&str>, node: Option<&str>) -> SystemMatch {
    match (bmc, node) {
        (Some(bmc), Some(node)) => compare_system_uuids(bmc, node),
        (None, _) | (_, None) => SystemMatch::NotComparable,
    }
}
