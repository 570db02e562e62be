//! What the healer decides about a node, and when it acts.
//!
//! The healer measures on its own clock what it has watched, which no other process can read. This
//! module starts from the times on the objects instead, and uses the healer's decision.

use crate::reboot::RebootReason;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::chain::{MAX_NAMED_ITEMS, NodeExplainer};
use super::controller::LEADER_RENEW_LIMIT;
use super::explanation::ExplanationTopic;
use super::human_format::{format_age, format_due};
use super::{LeaseRow, ObservedController};
use crate::Now;
use crate::condition::HEARTBEAT_INTERVAL;
use crate::healer::{
    self, ForecastStep, HealerMemory, HealerSnapshot, HealingSubject, ObservedPresence,
};
use crate::lock::holder_node_name;
use crate::name::NodeName;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};

/// A live coordinator has written by then, even after a slow call.
const COORDINATOR_SILENCE_LIMIT: Duration =
    HEARTBEAT_INTERVAL.saturating_add(Duration::from_mins(1));

/// What the API shows of the healer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedHealer {
    pub controller: ObservedController,
    /// Start of the leadership, by the leader's clock.
    pub since: Option<Timestamp>,
    /// The replicas of the lock API, each with its last renewal by its own clock.
    pub presences: Vec<(ObservedPresence, Option<Timestamp>)>,
}

impl ObservedHealer {
    /// Since when a healer works; `None` if none does.
    fn healing_since(&self, now: Now) -> Option<Timestamp> {
        match &self.controller {
            ObservedController::Leads { renewed, .. } => renewed
                .filter(|at| now.elapsed_since(*at) < LEADER_RENEW_LIMIT)
                .map(|renewed| self.since.unwrap_or(renewed)),
            ObservedController::Unknown
            | ObservedController::Nobody
            | ObservedController::Ended { .. } => None,
        }
    }
}

impl NodeExplainer<'_> {
    /// Adds the healer's plans for this node, and for the lock that it waits for, if a holder seems
    /// to be dead.
    pub(super) fn add_healer(&mut self) {
        let Some(healer) = &self.view.healer else {
            return;
        };
        let began = healer.healing_since(self.now);
        let watch = HealerForecast::of_explainer(self, healer, began.unwrap_or(self.now.wall));
        let told: Vec<String> = self
            .list_healer_objects()
            .iter()
            .flat_map(|(subject, of)| watch.describe_steps(subject, of.as_ref()))
            .collect();
        if began.is_none() && !told.is_empty() {
            let text = format!(
                "no dogwatch controller leads, so no healer runs; a new leader watches for {} first",
                format_age(watch.config.heal_after)
            );
            self.add_line(ExplanationTopic::Healer, text);
        }
        for text in told {
            self.add_line(ExplanationTopic::Healer, text);
        }
    }

    /// The node, and the Leases that it holds or waits for, with the nodes that hold them. Other
    /// nodes than this one come with their names.
    fn list_healer_objects(&self) -> Vec<(HealingSubject, Option<NodeName>)> {
        let name = &self.node.name;
        let mut all = vec![(HealingSubject::Node(name.clone()), None)];
        let fleet = &self.view.fleet;
        let rows: Vec<&LeaseRow> = match fleet.lease_held_by(name) {
            Some(row) => vec![row],
            None if self.record_phase() == Some(RebootPhase::Waiting) => {
                fleet.slots_of_group(&fleet.group_of_node(self.node))
            }
            None => Vec::new(),
        };
        for row in rows.into_iter().take(MAX_NAMED_ITEMS) {
            all.push((HealingSubject::Lease(row.lease.name.clone()), None));
            let holder = holder_node_name(&row.lease).filter(|holder| holder != name);
            all.extend(holder.map(|holder| (HealingSubject::Node(holder.clone()), Some(holder))));
        }
        all
    }
}

/// The healer's input, rebuilt from the cluster with its default flags.
struct HealerForecast {
    snapshot: HealerSnapshot,
    config: healer::HealerConfig,
    now: Now,
}

impl HealerForecast {
    fn of_explainer(chain: &NodeExplainer<'_>, healer: &ObservedHealer, began: Timestamp) -> Self {
        let fleet = &chain.view.fleet;
        let now = Now {
            wall: chain.now.wall,
            mono: chain.now.elapsed_since(began),
        };
        let leases = fleet.leases.iter();
        let held = leases
            .clone()
            .filter_map(|row| holder_node_name(&row.lease));
        let held: Vec<NodeName> = held.collect();
        let nodes = fleet.iter_nodes();
        let nodes = nodes.filter(|node| healer::needs_healing(node) || held.contains(&node.name));
        let presences = healer.presences.iter();
        let renewed: BTreeMap<String, Timestamp> = presences
            .clone()
            .filter_map(|(presence, at)| Some((presence.process.clone(), (*at)?)))
            .collect();
        let mut seen = HealerSnapshot {
            nodes: nodes
                .map(|node| (node.name.clone(), node.clone()))
                .collect(),
            leases: leases
                .map(|row| (row.lease.name.clone(), row.lease.clone()))
                .collect(),
            presences: presences
                .map(|(presence, _)| (presence.process.clone(), presence.clone()))
                .collect(),
            policies: fleet.policies.clone(),
            ..HealerSnapshot::default()
        };
        seen.memory = HealerMemory::reconstruct_from_timestamps(&seen, began, &renewed, now);
        let config = healer::HealerConfig::default();
        Self {
            snapshot: seen,
            config,
            now,
        }
    }

    /// The healer's decision and the ones that follow, while something is wrong; else empty.
    fn describe_steps(&self, subject: &HealingSubject, of: Option<&NodeName>) -> Vec<String> {
        let steps = healer::forecast_steps(&self.snapshot, &self.config, self.now, subject);
        let is_worth_it = match subject {
            HealingSubject::Node(name) => self
                .snapshot
                .nodes
                .get(name)
                .is_some_and(|node| is_overdue(node, self.now)),
            HealingSubject::Lease(_) | HealingSubject::Presence(_) => false,
        };
        let first = steps.first().map(|step| step.reason);
        if !is_worth_it && first.is_none_or(|first| first == RebootReason::WatchingCoordinator) {
            return Vec::new();
        }
        let of = of.map(|of| format!("of {of}, ")).unwrap_or_default();
        let steps = steps.iter();
        steps
            .map(|step| format!("{of}{}", self.describe_step(step)))
            .collect()
    }

    fn describe_step(&self, step: &ForecastStep) -> String {
        let ahead = step.at.saturating_sub(self.now.mono);
        let when = if ahead.is_zero() {
            "now".to_owned()
        } else {
            let at = format_due(self.now.wall_after(ahead), self.now);
            format!("{at}, if nothing changes")
        };
        format!("{when}: {}: {}", step.reason, step.message)
    }
}

/// Whether the coordinator should have written by now, or a person waits for an abort.
fn is_overdue(node: &ObservedNode, now: Now) -> bool {
    let sign = healer::last_coordinator_sign(node);
    node.abort != ParsedAnnotation::Absent
        || sign.is_some_and(|sign| now.elapsed_since(sign) > COORDINATOR_SILENCE_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, fleet, free, held, in_phase, now, view, waiting};
    use super::super::{FleetSnapshot, explain_node};
    use super::*;

    fn draining() -> ObservedNode {
        in_phase(
            "n1",
            RebootPhase::Draining,
            20,
            ("DrainBlocked", "web is held up"),
        )
    }

    /// The healer's lines at this second; it has led since second 0.
    fn told(name: &str, fleet: FleetSnapshot, second: i64) -> Vec<String> {
        let controller = ObservedController::Leads {
            holder: "c1".into(),
            renewed: Some(at(second - 2)),
        };
        by(controller, name, fleet, second)
    }

    fn by(
        controller: ObservedController,
        name: &str,
        fleet: FleetSnapshot,
        second: i64,
    ) -> Vec<String> {
        let mut view = view(name, fleet);
        view.healer = Some(ObservedHealer {
            controller,
            since: Some(at(0)),
            presences: Vec::new(),
        });
        let explanation = explain_node(&view, now(second)).unwrap();
        let lines = explanation.chain.into_iter();
        let ours = lines.filter(|line| line.topic == ExplanationTopic::Healer);
        ours.map(|line| line.text).collect()
    }

    fn one_drains() -> FleetSnapshot {
        fleet(vec![draining(), waiting("n2", 30)], vec![held(0, "n1", 20)])
    }

    #[test]
    fn a_coordinator_that_is_overdue_is_told_with_what_the_healer_will_do_and_when() {
        assert_eq!(
            told("n1", one_drains(), 500),
            [
                "now: WatchingCoordinator: watches for a sign of the coordinator",
                "at 1970-01-01 00:15:20Z (in 7m), if nothing changes: CoordinatorGaveNoSign: its coordinator has not updated anything for 15m; the drain may continue until its deadline",
                "at 1970-01-01 01:00:20Z (in 52m), if nothing changes: DrainTimedOut: not drained within 1h, and its coordinator has not updated anything for 15m; undoing the drain",
            ]
        );
    }

    #[test]
    fn a_coordinator_that_may_well_live_is_no_matter_of_the_healers() {
        assert_eq!(told("n1", one_drains(), 20 + 360), Vec::<String>::new());
        let mut alive = draining();
        alive.conditions[0].last_heartbeat = Some(at(400));
        let fleet = fleet(vec![alive], vec![held(0, "n1", 20)]);
        assert_eq!(told("n1", fleet, 500), Vec::<String>::new());
    }

    #[test]
    fn who_waits_is_told_what_becomes_of_the_holder() {
        let lines = told("n2", one_drains(), 500);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(
            lines[0].starts_with("of n1, now: WatchingCoordinator"),
            "{lines:#?}"
        );
    }

    #[test]
    fn a_lock_of_a_node_that_is_gone_is_told_to_be_cleared() {
        let fleet = fleet(vec![waiting("n2", 30)], vec![held(0, "gone", 5), free(1)]);
        let lines = told("n2", fleet, 60);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        let ends = "BreakingLock: Lease dogwatch-default-0 is freed: Node gone";
        assert!(lines[1].contains(ends), "{lines:#?}");
    }

    #[test]
    fn where_nobody_leads_that_is_said_first_and_nothing_counts_before_somebody_does() {
        let ended = ObservedController::Leads {
            holder: "c1".into(),
            renewed: Some(at(100)),
        };
        for controller in [ObservedController::Nobody, ended] {
            let lines = by(controller, "n1", one_drains(), 500);
            assert!(lines[0].starts_with("no dogwatch controller leads, so no healer runs"));
            assert!(
                lines[2].starts_with("at 1970-01-01 00:23:20Z (in 15m)"),
                "{lines:#?}"
            );
        }
    }
}
