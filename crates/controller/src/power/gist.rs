//! What of a host's power is worth telling others when it is another.

use dogwatch_core::Now;
use dogwatch_core::power::{
    self, Config, Decision, HostName, Owner, PowerNow, Request, Seen, Source,
};

/// A host's power in few words. Not the moments of readings: those are others with each poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gist {
    owner: Owner,
    shared_with: Vec<HostName>,
    same_system: Vec<HostName>,
    power: PowerNow,
    proof: Option<Proved>,
    reason: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Proved {
    source: Source,
    system_uuid: Option<String>,
    /// Which of the host's annotations it is for.
    keys: Vec<Request>,
}

impl Gist {
    pub(super) fn of(seen: &Seen, decision: Option<&Decision>, config: &Config, now: Now) -> Self {
        Self {
            owner: seen.owner.clone(),
            shared_with: seen.shared_with.clone(),
            same_system: seen.same_system.clone(),
            power: power::now(seen, config, now),
            proof: proved(seen, config, now),
            reason: decision.map(|decision| decision.because.reason),
        }
    }
}

fn proved(seen: &Seen, config: &Config, now: Now) -> Option<Proved> {
    let proof = power::proof(seen, config, now)?;
    let mut keys = power::requests(&seen.host);
    keys.retain(|request| proof.is_for(request));
    Some(Proved {
        source: proof.source().clone(),
        system_uuid: proof.system_uuid().map(str::to_owned),
        keys,
    })
}
