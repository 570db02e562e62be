//! What an estimate does not know.

use std::collections::BTreeSet;

use dogwatch_core::duration::format_duration;
use dogwatch_core::explain::{FleetSnapshot, join_first_names};
use dogwatch_core::reboot::{RebootPhase, RebootReason};
use dogwatch_core::report::FleetView;

use super::phase_times::{PhaseTimes, RebootTimes};

/// One sentence each.
pub(super) fn describe_left_out(
    fleet: &FleetSnapshot,
    view: &FleetView,
    times: &PhaseTimes,
) -> Vec<String> {
    let mut told = vec![
        "failures, and pods whose PodDisruptionBudgets hold a drain up for longer than before"
            .to_owned(),
    ];
    if times.is_empty() {
        let assumed = RebootTimes::assumed_times();
        told.push(format!(
            "how long a reboot takes here: none is recorded, so that {} are assumed for a drain, {} \
             for the reboot and {} for the return",
            format_duration(assumed.drain),
            format_duration(assumed.reboot),
            format_duration(assumed.back)
        ));
    }
    told.extend(describe_gates(fleet, view));
    told.extend(describe_endless(view));
    told.extend(describe_taken(view));
    if !view.waiting_hosts.is_empty() || !fleet.lock_api_waiters.is_empty() {
        told.push("for how long hosts of the lock API keep a lock: they are taken to be as fast as the nodes".to_owned());
    }
    if view.remediations.iter().any(|row| row.under_way) || !fleet.remediation_leases.is_empty() {
        told.push("when a remediation ends: it is taken to last ten minutes, or as long again as it has lasted".to_owned());
    }
    told
}

fn describe_gates(fleet: &FleetSnapshot, view: &FleetView) -> Vec<String> {
    let policies = fleet.policies.known_policies().iter();
    let gated = policies.filter(|policy| !policy.gates.is_empty());
    let gated = gated.filter(|policy| {
        let mut waiting = view.waiting.iter();
        waiting.any(|node| node.group == policy.name.as_str())
    });
    gated
        .map(|policy| {
            let mut waiting = view.waiting.iter();
            let is_shut = waiting.any(|node| {
                node.group == policy.name.as_str()
                    && node.reason.as_deref() == Some(RebootReason::GateShut.as_str())
            });
            let state = if is_shut { "shut" } else { "open" };
            format!(
                "the gates of RebootPolicy {}: they are taken to stay {state}",
                policy.name
            )
        })
        .collect()
}

/// Nodes that are out until a person acts.
fn describe_endless(view: &FleetView) -> Option<String> {
    let out = view.out.iter().filter(|out| {
        let reason = out.reason.as_deref().and_then(RebootReason::parse);
        let needs_person = reason.is_some_and(RebootReason::needs_person);
        out.phase == RebootPhase::Holding.as_str() || needs_person
    });
    let names: BTreeSet<String> = out.map(|out| out.name.clone()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "when a person brings these back, which count as out until then: {}",
            join_names(&names)
        )
    })
}

fn describe_taken(view: &FleetView) -> Option<String> {
    let busy = view.groups.iter().filter(|group| group.waiting > 0);
    let taken = busy.flat_map(|group| &group.taken_by_others);
    let names: BTreeSet<String> = taken.map(|slot| slot.node.clone()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "when others bring back what they have taken from the budget: {}",
            join_names(&names)
        )
    })
}

/// More names would make the sentence too long.
const MAX_NAMES: usize = 5;

fn join_names(names: &BTreeSet<String>) -> String {
    let names: Vec<String> = names.iter().cloned().collect();
    join_first_names(&names, MAX_NAMES)
}
