//! What the healer makes of it, and when it will do something about it.
//!
//! The healer goes by what it has watched on its own clock, which nobody else can see. Here the times that
//! stand on the objects say since when everything is as it is; the decisions are its own.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::chain::{Chain, NAMED};
use super::explanation::Topic;
use super::words::{age, due};
use super::{ControllerSeen, LeaseRow};
use crate::Now;
use crate::condition::HEARTBEAT_EVERY;
use crate::heal::{self, Memory, PresenceSeen, Seen, Step, Subject};
use crate::lock::holder_node_name;
use crate::name::NodeName;
use crate::reboot::{NodeSeen, Parsed, Phase};

/// A coordinator that lives has written by then, however late its call was.
const OVERDUE: Duration = HEARTBEAT_EVERY.saturating_add(Duration::from_mins(1));
/// A leader that has not renewed its Lease for so long leads no more.
const LEADS_FOR: Duration = Duration::from_mins(1);

/// Who heals, as far as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealerSeen {
    /// Who leads the controllers.
    pub controller: ControllerSeen,
    /// Since when, by its own clock.
    pub since: Option<Timestamp>,
    /// The replicas of the lock API, and when each last renewed its presence, by its own clock.
    pub presences: Vec<(PresenceSeen, Option<Timestamp>)>,
}

impl HealerSeen {
    /// Since when somebody heals; `None`: nobody does.
    fn began(&self, now: Now) -> Option<Timestamp> {
        match &self.controller {
            ControllerSeen::Leads { renewed, .. } => renewed
                .filter(|at| now.since(*at) < LEADS_FOR)
                .map(|renewed| self.since.unwrap_or(renewed)),
            ControllerSeen::Unknown | ControllerSeen::Nobody => None,
        }
    }
}

impl Chain<'_> {
    /// What becomes of this node, or of the lock that it waits for, where somebody seems to be dead.
    pub(super) fn healer(&mut self) {
        let Some(healer) = &self.view.healer else {
            return;
        };
        let began = healer.began(self.now);
        let watch = Watch::of(self, healer, began.unwrap_or(self.now.wall));
        let told: Vec<String> = self
            .subjects()
            .iter()
            .flat_map(|(subject, of)| watch.told(subject, of.as_ref()))
            .collect();
        if began.is_none() && !told.is_empty() {
            let text = format!(
                "no dogwatch controller leads, so nobody heals; one that begins to lead watches for {} first",
                age(watch.config.heal_after)
            );
            self.add(Topic::Healer, text);
        }
        for text in told {
            self.add(Topic::Healer, text);
        }
    }

    /// The node, and the Leases that it holds or waits for with the nodes behind them; those that are
    /// not this one by their names.
    fn subjects(&self) -> Vec<(Subject, Option<NodeName>)> {
        let name = &self.node.name;
        let mut all = vec![(Subject::Node(name.clone()), None)];
        let fleet = &self.view.fleet;
        let rows: Vec<&LeaseRow> = match fleet.held_by(name) {
            Some(row) => vec![row],
            None if self.record_phase() == Some(Phase::Waiting) => {
                fleet.slots(&fleet.group(self.node))
            }
            None => Vec::new(),
        };
        for row in rows.into_iter().take(NAMED) {
            all.push((Subject::Lease(row.lease.name.clone()), None));
            let holder = holder_node_name(&row.lease).filter(|holder| holder != name);
            all.extend(holder.map(|holder| (Subject::Node(holder.clone()), Some(holder))));
        }
        all
    }
}

/// The healer's eyes, as far as they can be told.
struct Watch {
    seen: Seen,
    config: heal::Config,
    now: Now,
}

impl Watch {
    fn of(chain: &Chain<'_>, healer: &HealerSeen, began: Timestamp) -> Self {
        let fleet = &chain.view.fleet;
        let now = Now {
            wall: chain.now.wall,
            mono: chain.now.since(began),
        };
        let leases = fleet.leases.iter();
        let held = leases
            .clone()
            .filter_map(|row| holder_node_name(&row.lease));
        let held: Vec<NodeName> = held.collect();
        let nodes = fleet.nodes.iter();
        let nodes = nodes.filter(|node| heal::concerns(node) || held.contains(&node.name));
        let presences = healer.presences.iter();
        let renewed: BTreeMap<String, Timestamp> = presences
            .clone()
            .filter_map(|(presence, at)| Some((presence.process.clone(), (*at)?)))
            .collect();
        let mut seen = Seen {
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
            ..Seen::default()
        };
        seen.memory = Memory::told(&seen, began, &renewed, now);
        let config = heal::Config::default();
        Self { seen, config, now }
    }

    /// Its decision about this, and those that follow; none while nothing is the matter.
    fn told(&self, subject: &Subject, of: Option<&NodeName>) -> Vec<String> {
        let steps = heal::foresee(&self.seen, &self.config, self.now, subject);
        let is_worth_it = match subject {
            Subject::Node(name) => self
                .seen
                .nodes
                .get(name)
                .is_some_and(|node| is_overdue(node, self.now)),
            Subject::Lease(_) | Subject::Presence(_) => false,
        };
        let first = steps.first().map(|step| step.reason);
        if !is_worth_it && first.is_none_or(|first| first == heal::reason::WATCHING) {
            return Vec::new();
        }
        let of = of.map(|of| format!("of {of}, ")).unwrap_or_default();
        let steps = steps.iter();
        steps
            .map(|step| format!("{of}{}", self.words(step)))
            .collect()
    }

    fn words(&self, step: &Step) -> String {
        let ahead = step.at.saturating_sub(self.now.mono);
        let when = if ahead.is_zero() {
            "now".to_owned()
        } else {
            let at = due(self.now.plus(ahead), self.now);
            format!("{at}, if nothing changes")
        };
        format!("{when}: {}: {}", step.reason, step.message)
    }
}

/// Its coordinator should have given a sign, or a person waits to be obeyed.
fn is_overdue(node: &NodeSeen, now: Now) -> bool {
    let sign = heal::last_sign(node);
    node.abort != Parsed::Absent || sign.is_some_and(|sign| now.since(sign) > OVERDUE)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, fleet, free, held, in_phase, now, view, waiting};
    use super::super::{Fleet, explain};
    use super::*;

    fn draining() -> NodeSeen {
        in_phase(
            "n1",
            Phase::Draining,
            20,
            ("DrainBlocked", "web is held up"),
        )
    }

    /// The lines of the healer that leads since second 0, as they are at this second.
    fn told(name: &str, fleet: Fleet, second: i64) -> Vec<String> {
        let controller = ControllerSeen::Leads {
            holder: "c1".into(),
            renewed: Some(at(second - 2)),
        };
        by(controller, name, fleet, second)
    }

    fn by(controller: ControllerSeen, name: &str, fleet: Fleet, second: i64) -> Vec<String> {
        let mut view = view(name, fleet);
        view.healer = Some(HealerSeen {
            controller,
            since: Some(at(0)),
            presences: Vec::new(),
        });
        let explanation = explain(&view, now(second)).unwrap();
        let lines = explanation.chain.into_iter();
        let ours = lines.filter(|line| line.topic == Topic::Healer);
        ours.map(|line| line.text).collect()
    }

    fn one_drains() -> Fleet {
        fleet(vec![draining(), waiting("n2", 30)], vec![held(0, "n1", 20)])
    }

    #[test]
    fn a_coordinator_that_is_overdue_is_told_with_what_the_healer_will_do_and_when() {
        assert_eq!(
            told("n1", one_drains(), 500),
            [
                "now: WatchingCoordinator: watches whether the coordinator gives a sign",
                "at 1970-01-01 00:15:20Z (in 7m), if nothing changes: CoordinatorGaveNoSign: its coordinator gave no sign for 15m; the drain has until its deadline",
                "at 1970-01-01 01:00:20Z (in 52m), if nothing changes: DrainTimedOut: not drained within 3600s, and its coordinator gave no sign for 15m; undoing",
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
        let ends = "BreakingLock: Lease dogwatch-default-0 is cleared: Node gone";
        assert!(lines[1].contains(ends), "{lines:#?}");
    }

    #[test]
    fn where_nobody_leads_that_is_said_first_and_nothing_counts_before_somebody_does() {
        let ended = ControllerSeen::Leads {
            holder: "c1".into(),
            renewed: Some(at(100)),
        };
        for controller in [ControllerSeen::Nobody, ended] {
            let lines = by(controller, "n1", one_drains(), 500);
            assert!(lines[0].starts_with("no dogwatch controller leads, so nobody heals"));
            assert!(
                lines[2].starts_with("at 1970-01-01 00:23:20Z (in 15m)"),
                "{lines:#?}"
            );
        }
    }
}
