//! Table tests of the view.

mod format;
mod groups;
mod lists;
mod sentence;
mod tasks;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{FleetView, FleetViewInput, build_fleet_view};
use crate::explain::testkit::{at, boot, now};
use crate::explain::{FleetSnapshot, ObservedController};
use crate::name::GroupName;
use crate::policy::{ClusterPolicies, Policy, PolicyPause};
use crate::reboot::{LastReboot, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase};

/// The view of the fleet alone at this second.
fn view_of(fleet: &FleetSnapshot, second: i64) -> FleetView {
    build_fleet_view(FleetViewInput::of_fleet(fleet), now(second))
}

/// A policy for all nodes.
fn policy(name: &str) -> Policy {
    Policy::without_rules(GroupName::new(name).unwrap())
}

fn with_policy(mut fleet: FleetSnapshot, policy: Policy) -> FleetSnapshot {
    fleet.policies = ClusterPolicies::Known(vec![policy]);
    fleet
}

fn paused(until: Option<Timestamp>) -> Policy {
    Policy {
        paused: Some(PolicyPause {
            reason: "freeze".into(),
            until,
        }),
        ..policy("workers")
    }
}

/// A node that was rebooted: wanted at the first second, back at the last.
fn rebooted(name: &str, planned: i64, finished: i64) -> ObservedNode {
    let trigger = crate::explain::testkit::record(RebootPhase::Waiting, planned).trigger;
    let third = (finished - planned) / 3;
    let began = [
        (RebootPhase::Draining, at(planned + third)),
        (RebootPhase::Rebooting, at(planned + 2 * third)),
    ];
    ObservedNode {
        last_reboot: ParsedAnnotation::Is(LastReboot {
            outcome: RebootOutcome::Rebooted,
            planned: at(planned),
            finished: at(finished),
            old_boot_id: boot("older-boot"),
            new_boot_id: boot("old-boot"),
            soft: false,
            trigger,
            fingerprints: BTreeMap::new(),
            began: BTreeMap::from(began),
            rebooted: None,
        }),
        ..crate::explain::testkit::node(name)
    }
}
