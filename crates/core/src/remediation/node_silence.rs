//! Compares a Node's heartbeats with the proof that its host is off. Source: specification §4.1.

#![expect(
    clippy::result_large_err,
    reason = "a decision is moved a few times a second at most"
)]

use std::time::Duration;

use super::RemediationReason;
use super::context::RemediationContext;
use super::heartbeat::HeartbeatHistory;
use super::snapshot::FreshReads;
use super::types::RemediationDecision;
use crate::decision::decision_with_cause;
use crate::power::{PowerOffProof, SystemMatch, compare_system_uuids};
use crate::reboot::ObservedNode;

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
    RemediationContext::refuse_with_warning((RemediationReason::NodeIsAlive, text))
}

/// Checks that the Node has been silent for long enough. Runs before the fresh reads, which are not
/// needed until then.
pub(super) fn require_lasting_silence(
    ctx: &RemediationContext<'_>,
    proof: &PowerOffProof,
) -> Result<(), RemediationDecision> {
    let Some(node) = ctx.case.node.as_ref() else {
        return Ok(());
    };
    let same = compare_system_ids(proof.system_uuid(), node.system_uuid.as_deref());
    let is_refused_later = match same {
        SystemMatch::Different => true,
        SystemMatch::NotComparable => ctx.config.require_identity,
        SystemMatch::Same => false,
    };
    let of_it =
        |beats: &&HeartbeatHistory| beats.newest_heartbeat().node_uid.as_ref() == Some(&node.uid);
    let beats = ctx.memory.heartbeats.as_ref().filter(of_it);
    let Some(beats) = beats.filter(|_| !is_refused_later) else {
        return Ok(());
    };
    match RequiredSilence::for_release(ctx, proof, beats, same) {
        Some(silence) if ctx.now.mono < silence.until => Err(silence.wait_for_silence(ctx, proof)),
        Some(_) | None => Ok(()),
    }
}

/// Checks that the heartbeat did not change between an earlier read and these fresh reads, and
/// that the silence has lasted long enough.
pub(super) fn require_silence_in_reads(
    ctx: &RemediationContext<'_>,
    fresh: &FreshReads,
    proof: &PowerOffProof,
    same: SystemMatch,
) -> Result<(), RemediationDecision> {
    let text = "reading the Node's heartbeats";
    let looking = || decision_with_cause(RemediationReason::ProvingOff, text);
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
    match RequiredSilence::for_release(ctx, proof, beats, same) {
        Some(silence) if fresh.asked_at >= silence.until => Ok(()),
        Some(silence) if ctx.now.mono < silence.until => Err(silence.wait_for_silence(ctx, proof)),
        Some(silence) => Err(silence
            .wait_for_silence(ctx, proof)
            .with_observe(ctx.observe_fresh())),
        None => Ok(()),
    }
}

/// The silence that a Node must keep before its release, in addition to the proof.
struct RequiredSilence {
    lasts: Duration,
    until: Duration,
    why: &'static str,
}

impl RequiredSilence {
    /// A kubelet sends a heartbeat every 10 s, so that the 5 s that a proof takes are no silence.
    /// Two cases need one: the BMC may be that of another machine, or the kubelet was alive when
    /// the power-off was requested and the BMC may be wrong.
    fn for_release(
        ctx: &RemediationContext<'_>,
        proof: &PowerOffProof,
        beats: &HeartbeatHistory,
        same: SystemMatch,
    ) -> Option<Self> {
        let newest = beats.newest_heartbeat();
        if same != SystemMatch::Same {
            let off = ctx.off_since().unwrap_or(proof.valid_since());
            let lasts = newest.required_silence();
            return Some(Self {
                lasts,
                until: off.max(beats.silent_since()) + lasts,
                why: "its BMC reports no system UUID to compare with the Node's",
            });
        }
        let node = ctx.case.node.as_ref()?;
        let lasts = newest.missed_renewal();
        kubelet_was_alive(node).then(|| Self {
            lasts,
            until: beats.silent_since() + lasts,
            why: "its kubelet was alive a moment ago",
        })
    }

    fn wait_for_silence(
        &self,
        ctx: &RemediationContext<'_>,
        proof: &PowerOffProof,
    ) -> RemediationDecision {
        let text = format!(
            "host {} is proved off; {}, so the Node must send no heartbeat for {}: waits until {}",
            proof.host(),
            self.why,
            crate::duration::format_duration(self.lasts),
            ctx.format_clock_at(self.until),
        );
        let waiting = decision_with_cause(RemediationReason::WaitingForSilence, text);
        if ctx.now.mono < self.until {
            waiting.wake_at(self.until, "the Node to be silent for long enough")
        } else {
            waiting
        }
    }
}

/// Whether Kubernetes has heard of this kubelet within its grace period: the node controller sets
/// Ready to Unknown after 40 s without a heartbeat, and only a kubelet sets True or False.
fn kubelet_was_alive(node: &ObservedNode) -> bool {
    let ready = node.ready_condition();
    ready.is_some_and(|ready| ready.status == "True" || ready.status == "False")
}

/// Whether a BMC and a Node report the same machine.
pub(super) fn compare_system_ids(bmc: Option<&str>, node: Option<&str>) -> SystemMatch {
    match (bmc, node) {
        (Some(bmc), Some(node)) => compare_system_uuids(bmc, node),
        (None, _) | (_, None) => SystemMatch::NotComparable,
    }
}
