//! Simulates what a planned node observes.

use std::time::Duration;

use dogwatch_coordinator::agent::facts::{self, ObservedFact};
use dogwatch_core::drain::{DrainProgress, PodIdentity, PodRules};
use dogwatch_core::lock::{self, BudgetReads, GroupMember, ObservedLease, UnavailableCount};
use dogwatch_core::name::GroupName;
use dogwatch_core::reboot::{self, ObservedBudgetCount, ObservedStartGates, RebootObserve};

use super::{PlannedRollout, RolloutEvent, WATCH_LIFETIME};
use crate::plan::planned_node::PlannedNode;

impl PlannedRollout<'_> {
    /// Begins new observations, and ends those that the decision no longer asks for.
    pub(super) fn update_observations(&mut self, number: usize, looks: &[RebootObserve]) {
        let machine = &mut self.machines[number];
        let begun: Vec<RebootObserve> = looks
            .iter()
            .filter(|look| !machine.observations.contains(look))
            .cloned()
            .collect();
        let had_locks = machine.observations.iter().any(is_lock_observation);
        if had_locks && !looks.iter().any(is_lock_observation) {
            let renewals = self.now.saturating_sub(machine.observing_since).as_secs()
                / WATCH_LIFETIME.as_secs();
            self.result.calls.add_calls("renew watches", renewals);
        }
        machine.observations = looks.to_vec();
        if let Some(seen) = &mut machine.snapshot {
            facts::forget_unobserved(seen, looks, false);
        }
        for look in begun {
            self.begin_observation(number, look);
        }
    }

    pub(super) fn begin_observation(&mut self, number: usize, look: RebootObserve) {
        let latency = self.plan.api_latency;
        let (after, fact) = match &look {
            RebootObserve::Locks { group, slots } => {
                let made = self.slots.ensure_slots(group, *slots);
                self.count_calls("create leases", made);
                self.count_calls("list and watch leases", 2);
                self.machines[number].observing_since = self.now;
                self.machines[number].lease_version = None;
                let me = self.machines[number].holder_id.clone();
                (
                    latency,
                    ObservedFact::Leases(self.slots.visible_leases(group, &me, self.now)),
                )
            }
            RebootObserve::GroupSize { group } => {
                self.count_calls("list nodes", 1);
                (latency, ObservedFact::GroupSize(self.count_members(group)))
            }
            RebootObserve::Count { lease, .. } => {
                self.count_calls("count the budget", 3);
                (3 * latency, self.budget_count_fact(number, lease))
            }
            RebootObserve::Holder { .. } => {
                unreachable!("a planned node leaves holders that are gone to the controller")
            }
            RebootObserve::Drain { rules, .. } => self.begin_drain(number, &look, rules),
            RebootObserve::Attachments { .. } => {
                self.count_calls("list and watch volumes", 2);
                (latency, ObservedFact::Attachments(Vec::new()))
            }
            RebootObserve::StartGates { gates } => {
                let (gates, taken) = (gates.clone(), self.now);
                let shut = Vec::new();
                (
                    latency,
                    ObservedFact::StartGates(ObservedStartGates { gates, shut, taken }),
                )
            }
            RebootObserve::Gates { .. } => {
                self.count_calls("look at return gates", 2);
                (2 * latency, ObservedFact::Gates(Vec::new()))
            }
        };
        self.queue.schedule_event(
            self.now + after,
            RolloutEvent::Fact(number, look, Box::new(fact)),
        );
    }

    /// How long the drain takes, and its last report.
    fn begin_drain(
        &mut self,
        number: usize,
        look: &RebootObserve,
        rules: &PodRules,
    ) -> (Duration, ObservedFact) {
        let pods = u64::from(self.plan.pods_per_node);
        self.count_calls("evict pods", pods);
        self.count_calls("list and watch pods", 3);
        let wait = rules.longest_wait();
        if !wait.is_zero() {
            self.report_running_jobs(number, look, rules);
        }
        let jobs = self.plan.job_time.unwrap_or(Duration::MAX);
        let time = self.machines[number].spread_duration(self.plan.drain_time);
        let progress = DrainProgress {
            listed: true,
            rules: rules.clone(),
            gone: usize::try_from(pods).unwrap_or(usize::MAX),
            ..DrainProgress::default()
        };
        let fact = ObservedFact::Drain(Box::new(progress));
        (time.saturating_add(jobs.min(wait)), fact)
    }

    /// The drain's first report: a job is on the node, for which a rule waits.
    fn report_running_jobs(&mut self, number: usize, look: &RebootObserve, rules: &PodRules) {
        let job = PodIdentity {
            namespace: "default".into(),
            name: "job".into(),
            uid: "job".into(),
        };
        let progress = DrainProgress {
            listed: true,
            rules: rules.clone(),
            waiting: vec![job],
            pending_wait: Some(rules.longest_wait()),
            ..DrainProgress::default()
        };
        let fact = ObservedFact::Drain(Box::new(progress));
        self.queue.schedule_event(
            self.now + self.plan.api_latency,
            RolloutEvent::Fact(number, look.clone(), Box::new(fact)),
        );
    }

    pub(super) fn count_members(&self, group: &GroupName) -> u32 {
        self.groups.get(group).map_or(0, |group| group.nodes)
    }

    /// Counts the other unavailable nodes. Only those are listed, because members in service do not
    /// change the count.
    pub(super) fn budget_count_fact(&self, number: usize, lease: &ObservedLease) -> ObservedFact {
        let machine = &self.machines[number];
        let out = self.out.get(&machine.group).into_iter().flatten();
        let nodes = out.map(|other| node_row(&self.machines[*other])).collect();
        let held = self.slots.held_leases(&machine.group);
        let reads = BudgetReads {
            lease: lease.name.clone(),
            group: machine.group.clone(),
            nodes,
            held,
        };
        let members = self.count_members(&machine.group);
        let count = UnavailableCount {
            members,
            ..lock::count_unavailable(&reads, &machine.holder_id)
        };
        ObservedFact::Count(ObservedBudgetCount {
            count,
            taken: self.now,
            arrived: self.now,
        })
    }

    /// Counts the calls by which a node checks whether the holders that it waits for still exist. They
    /// do, in a plan; to decide at each check would double the decisions of a large rollout.
    pub(super) fn count_holder_checks(&mut self, number: usize, is_waiting: bool) {
        let machine = &mut self.machines[number];
        if is_waiting {
            machine.waiting_for_holders_since.get_or_insert(self.now);
            return;
        }
        let since = machine.waiting_for_holders_since.take();
        let (Some(since), Some(seen)) = (since, &machine.snapshot) else {
            return;
        };
        let waited = self.now.saturating_sub(since);
        let checks = reboot::count_holder_checks(waited, seen.run.jitter);
        self.count_calls("look at holders", 2 * checks);
    }

    pub(super) fn deliver_fact(&mut self, number: usize, look: &RebootObserve, fact: ObservedFact) {
        if self.machines[number].observations.contains(look) {
            let now = self.current_time();
            if is_lock_observation(look) {
                // The list was made some time ago: the Leases may have changed since.
                self.machines[number].lease_version = None;
            }
            self.machines[number].apply_fact(fact, now);
            self.decide_node(number);
        }
    }
}

pub(super) fn is_lock_observation(look: &RebootObserve) -> bool {
    matches!(look, RebootObserve::Locks { .. })
}

fn node_row(machine: &PlannedNode) -> GroupMember {
    GroupMember {
        name: machine.object.name.clone(),
        ready: machine.object.ready,
        unschedulable: machine.object.unschedulable,
        ignored: false,
        control_plane: false,
    }
}
