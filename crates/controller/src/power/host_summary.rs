//! Summarizes a host's power, so that only changes that matter are published.

use dogwatch_core::Now;
use dogwatch_core::power::{
    self, CurrentPower, HostName, HostOwner, HostRebootAnnotation, PowerConfig, PowerDecision,
    PowerReason, PowerSnapshot, ProofSource,
};

/// Without the times of readings, which change with each poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostSummary {
    owner: HostOwner,
    shared_with: Vec<HostName>,
    same_system: Vec<HostName>,
    power: CurrentPower,
    proof: Option<OffProofSummary>,
    reason: Option<PowerReason>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OffProofSummary {
    source: ProofSource,
    system_uuid: Option<String>,
    /// The host's annotations that the proof covers.
    keys: Vec<HostRebootAnnotation>,
}

impl HostSummary {
    pub(super) fn summarize(
        seen: &PowerSnapshot,
        decision: Option<&PowerDecision>,
        config: &PowerConfig,
        now: Now,
    ) -> Self {
        Self {
            owner: seen.owner.clone(),
            shared_with: seen.shared_with.clone(),
            same_system: seen.same_system.clone(),
            power: power::current_power(seen, config, now),
            proof: summarize_proof(seen, config, now),
            reason: decision.map(|decision| decision.cause.reason),
        }
    }
}

fn summarize_proof(
    seen: &PowerSnapshot,
    config: &PowerConfig,
    now: Now,
) -> Option<OffProofSummary> {
    let proof = power::find_off_proof(seen, config, now)?;
    let mut keys = power::reboot_annotations(&seen.host);
    keys.retain(|request| proof.covers_annotation(request));
    Some(OffProofSummary {
        source: proof.source().clone(),
        system_uuid: proof.system_uuid().map(str::to_owned),
        keys,
    })
}
