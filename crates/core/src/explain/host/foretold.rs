//! What is known of a host before anything is read, and in one sentence.

use std::sync::Arc;

use super::{HostView, POWER_AS_WANTED, host_condition};
use crate::explain::words::age;
use crate::power::{Access, Config, Cost, Memory, Owner, Seen, decide, reason};
use crate::{Because, Now};

/// What the power controller's own decision says of this host before anything is read: `Some` where no
/// reading can change it.
pub(super) fn foretold(view: &HostView, now: Now) -> Option<Because> {
    const WITHOUT_READING: [&str; 7] = [
        reason::OTHER_CONTROLLER,
        reason::DETACHED,
        reason::NO_BMC,
        reason::INVALID_ADDRESS,
        reason::SHARED_BMC,
        reason::POWER_OFF_DISABLED,
        reason::INVALID_TIMES,
    ];
    let cost = Cost::Request;
    let seen = Seen {
        host: Arc::new(view.host.clone()),
        // Where nobody knows, nothing is blamed on another controller.
        owner: match &view.owner {
            Owner::NotYetKnown => Owner::Ours,
            Owner::Ours | Owner::Theirs { .. } => view.owner.clone(),
        },
        shared_with: view.shared_with.clone(),
        same_system: Vec::new(),
        access: vec![Access::Ready { cost }; view.host.levels.len()],
        memory: Memory::default(),
    };
    let because = decide(&seen, &Config::default(), "explain", 0.0, now).because;
    WITHOUT_READING.contains(&because.reason).then_some(because)
}

/// Whether the condition may be what the controller says of the host as it stands now. Of a host that
/// another controller has it says nothing.
pub(super) fn has_looked(view: &HostView, now: Now) -> bool {
    let standing = host_condition(&view.host, POWER_AS_WANTED);
    match (foretold(view, now), standing) {
        (Some(because), _) if because.reason == reason::OTHER_CONTROLLER => true,
        (Some(because), Some(standing)) => standing.reason == because.reason,
        (Some(_), None) | (None, _) => standing.is_some(),
    }
}

pub(super) fn summary(view: &HostView, now: Now) -> String {
    let (host, name) = (&view.host, &view.host.name);
    if let Some(because) = foretold(view, now) {
        return format!("{name}: its power is not controlled: {}", because.reason);
    }
    let Some(state) = host.status.power.state else {
        return format!("{name}: no power controller has looked at it");
    };
    let Some(said) = host_condition(host, POWER_AS_WANTED) else {
        return format!("{name}: {}", state.as_str());
    };
    let long = said.last_transition.map(|at| age(now.since(at)));
    let long = long.map_or_else(String::new, |age| format!(" for {age}"));
    let (state, reason) = (state.as_str(), &said.reason);
    match said.status.as_str() {
        "True" => format!("{name}: {state}, as wanted{long}: {reason}"),
        "False" => format!("{name}: {state}, not as wanted{long}: {reason}"),
        _ => format!("{name}: {state}{long}: {reason}"),
    }
}
