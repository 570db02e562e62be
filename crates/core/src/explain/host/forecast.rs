//! The decision about a host as far as no reading is needed, and the summary of its explanation.

use std::sync::Arc;

use super::{HostReportInput, POWER_AS_WANTED, host_condition};
use crate::explain::human_format::format_age;
use crate::power::{
    CallCost, HostOwner, LevelAccess, PowerConfig, PowerMemory, PowerReason, PowerSnapshot, decide,
};
use crate::{DecisionCause, Now};

/// The power controller's decision for reasons that no reading of the power can change; `None` for
/// all others.
pub(super) fn forecast_without_reading(
    view: &HostReportInput,
    now: Now,
) -> Option<DecisionCause<PowerReason>> {
    const REASONS_WITHOUT_READING: [PowerReason; 7] = [
        PowerReason::OwnedByBaremetalOperator,
        PowerReason::Detached,
        PowerReason::NoBMC,
        PowerReason::InvalidBMCAddress,
        PowerReason::SharedBMC,
        PowerReason::PowerOffDisabled,
        PowerReason::InvalidStatusTimes,
    ];
    let cost = CallCost::Request;
    let seen = PowerSnapshot {
        host: Arc::new(view.host.clone()),
        // An unknown owner counts as Dogwatch, so that no other controller is blamed.
        owner: match &view.owner {
            HostOwner::NotYetKnown => HostOwner::Ours,
            HostOwner::Ours | HostOwner::Metal3 { .. } => view.owner.clone(),
        },
        shared_with: view.shared_with.clone(),
        same_system: Vec::new(),
        access: vec![LevelAccess::Ready { cost }; view.host.levels.len()],
        memory: PowerMemory::default(),
    };
    let because = decide(&seen, &PowerConfig::default(), "explain", 0.0, now).cause;
    REASONS_WITHOUT_READING
        .contains(&because.reason)
        .then_some(because)
}

/// Whether the condition may be the controller's statement about the host's present state. For a
/// host of another controller the condition does not matter.
pub(super) fn is_condition_current(view: &HostReportInput, now: Now) -> bool {
    let standing = host_condition(&view.host, POWER_AS_WANTED);
    match (forecast_without_reading(view, now), standing) {
        (Some(because), _) if because.reason == PowerReason::OwnedByBaremetalOperator => true,
        (Some(because), Some(standing)) => standing.reason == because.reason.as_str(),
        (Some(_), None) | (None, _) => standing.is_some(),
    }
}

pub(super) fn host_summary(view: &HostReportInput, now: Now) -> String {
    let (host, name) = (&view.host, &view.host.name);
    if let Some(because) = forecast_without_reading(view, now) {
        return format!(
            "{name}: Dogwatch does not control its power: {}",
            because.reason
        );
    }
    let Some(state) = host.status.power.state else {
        return format!("{name}: no power controller has checked it");
    };
    let Some(said) = host_condition(host, POWER_AS_WANTED) else {
        return format!("{name}: {}", state.as_str());
    };
    let long = said
        .last_transition
        .map(|at| format_age(now.elapsed_since(at)));
    let long = long.map_or_else(String::new, |age| format!(" for {age}"));
    let (state, reason) = (state.as_str(), &said.reason);
    match said.status.as_str() {
        "True" => format!("{name}: {state}, as requested{long}: {reason}"),
        "False" => format!("{name}: {state}, not as requested{long}: {reason}"),
        _ => format!("{name}: {state}{long}: {reason}"),
    }
}
