//! What other components decide with of a host's power.

use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::power::{self, HostName, PowerDecision, PowerOffProof, PowerSnapshot};
use dogwatch_core::remediation::ObservedPower;

use super::HostRegistry;

/// The host's power now. Ask each time, because a proof holds only for its moment.
pub(crate) fn observe_power(
    board: &HostRegistry,
    config: &power::PowerConfig,
    host: &HostName,
    at: Now,
) -> Option<ObservedPower> {
    board.inspect_host(host, |seen, decision| {
        summarize_power(seen, decision, config, at)
    })
}

pub(crate) fn summarize_power(
    seen: &PowerSnapshot,
    decision: Option<&Arc<PowerDecision>>,
    config: &power::PowerConfig,
    at: Now,
) -> ObservedPower {
    let proof = power::find_off_proof(seen, config, at);
    let because = decision.map(|decision| &decision.cause);
    ObservedPower {
        now: power::current_power(seen, config, at),
        off_since: power::off_since(seen, config, at)
            .or(proof.as_ref().map(PowerOffProof::valid_since)),
        proof,
        bmc_answers: does_bmc_answer(seen),
        system_uuid: power::bmc_system_uuid(seen).map(str::to_owned),
        because: because.map(|because| format!("{}: {}", because.reason, because.message)),
    }
}

/// Whether the newest reading succeeded. A BMC without a reading counts as answering.
pub(crate) fn does_bmc_answer(seen: &PowerSnapshot) -> bool {
    let readings = seen.memory.readings.iter();
    let newest = readings.max_by_key(|read| read.answered);
    newest.is_none_or(|read| read.result.is_ok())
}
