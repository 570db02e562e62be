//! Runs the rollout: events in order of time; each node decides for itself.

mod actions;
mod holds;
mod observations;
mod setup;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_coordinator::agent::facts::ObservedFact;
use dogwatch_core::Now;
use dogwatch_core::decision::WakeTime;
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::{Policy, RebootAllowance};
use dogwatch_core::reboot::{self, RebootAction, RebootConfig, RebootObserve, RebootReason};
use jiff::Timestamp;

use self::observations::is_lock_observation;
use self::setup::{build_groups, build_nodes, coordinator_config, empty_outcome, time_at};
use self::shape::PlannedShapes;
use super::event_queue::EventQueue;
use super::planned_node::PlannedNode;
use super::slot_leases::SlotLeases;
use super::{GroupOutcome, RolloutOutcome, RolloutPlan, UsedWindow};

/// How long the loop collects reports before it sends them.
const REPORT_DELAY: Duration = Duration::from_millis(30);
/// From the reboot command until the host is down.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);
/// The `why` of a decision's wake-up that waits for the end of a pause or for a window.
const POLICY_WAIT_REASON: &str = "the policy to allow it";
/// How often a watch is renewed.
const WATCH_LIFETIME: Duration = Duration::from_secs(290);

enum RolloutEvent {
    Want(usize),
    Wake(usize, u64),
    Done(usize, Box<RebootAction>),
    Fact(usize, RebootObserve, Box<ObservedFact>),
    Report(usize),
    Down(usize),
    Up(usize),
    NextInLineTimeout(GroupName, u32, String),
    /// The controller looks at the rollouts' shapes.
    AdvanceShapes,
    /// The watch brings what it wrote.
    TakePolicies(Vec<usize>),
}

/// Runs the rollout to its end.
pub fn run_plan(plan: &RolloutPlan) -> RolloutOutcome {
    run_with_progress(plan, &mut |_, _| {})
}

/// Runs the rollout to its end. Each time that one more node is done, calls `watch` with the time
/// and the number of nodes that are done.
pub fn run_with_progress(
    plan: &RolloutPlan,
    watch: &mut dyn FnMut(u32, Duration),
) -> RolloutOutcome {
    let mut rollout = PlannedRollout::new(plan);
    let mut done = 0;
    while let Some((at, event)) = rollout.queue.pop_event() {
        rollout.now = at;
        rollout.handle_event(event);
        if rollout.result.rebooted > done {
            done = rollout.result.rebooted;
            watch(done, at);
        }
        if rollout.left == 0 {
            break;
        }
    }
    rollout.into_outcome()
}

struct PlannedRollout<'a> {
    plan: &'a RolloutPlan,
    config: RebootConfig,
    now: Duration,
    machines: Vec<PlannedNode>,
    numbers: BTreeMap<HolderId, usize>,
    slots: SlotLeases,
    queue: EventQueue<RolloutEvent>,
    out: BTreeMap<GroupName, BTreeSet<usize>>,
    groups: BTreeMap<GroupName, GroupOutcome>,
    waits: BTreeMap<GroupName, Vec<Duration>>,
    /// The windows in which each group's reboots began, by their ends.
    windows: BTreeMap<GroupName, BTreeMap<Timestamp, UsedWindow>>,
    left: usize,
    /// The policies as the controller wrote them last.
    policies: Vec<Policy>,
    shapes: PlannedShapes,
    result: RolloutOutcome,
}

impl<'a> PlannedRollout<'a> {
    fn new(plan: &'a RolloutPlan) -> Self {
        let machines = build_nodes(plan);
        let numbers = machines
            .iter()
            .enumerate()
            .map(|(n, machine)| (machine.holder_id.clone(), n))
            .collect();
        let config = coordinator_config(plan);
        let mut rollout = Self {
            plan,
            groups: build_groups(&machines, &config),
            config,
            now: Duration::ZERO,
            left: machines.len(),
            shapes: PlannedShapes::new(&plan.policies, &machines),
            machines,
            numbers,
            slots: SlotLeases::default(),
            queue: EventQueue::default(),
            out: BTreeMap::new(),
            waits: BTreeMap::new(),
            windows: BTreeMap::new(),
            policies: plan.policies.clone(),
            result: empty_outcome(plan),
        };
        rollout.hold_nodes();
        rollout.schedule_triggers();
        rollout.plan_first_shape_advance();
        rollout
    }

    /// Gives all nodes a view of themselves, and schedules their triggers.
    fn schedule_triggers(&mut self) {
        let mut arrivals = self.plan.seed.stream_for_actor("arrivals");
        for number in 0..self.machines.len() {
            let now = self.current_time();
            self.machines[number].observe_own_node(now);
            let at = self.plan.arrival.mul_f64(arrivals.next_fraction());
            if self.is_to_reboot(number) {
                self.queue.schedule_event(at, RolloutEvent::Want(number));
            }
        }
        self.count_calls(
            "list and watch nodes",
            3 * u64::try_from(self.machines.len()).unwrap_or(u64::MAX),
        );
    }

    fn current_time(&self) -> Now {
        time_at(self.plan.start, self.now)
    }

    fn count_calls(&mut self, what: &'static str, calls: u64) {
        self.result.calls.add_calls(what, calls);
    }

    fn handle_event(&mut self, event: RolloutEvent) {
        match event {
            RolloutEvent::Want(number) => {
                let now = self.current_time();
                self.machines[number].trigger_reboot(now);
                self.decide_node(number);
            }
            RolloutEvent::Wake(number, generation) => {
                if self.machines[number].generation == generation {
                    self.decide_node(number);
                }
            }
            RolloutEvent::Done(number, action) => self.finish_action(number, &action),
            RolloutEvent::Fact(number, look, fact) => self.deliver_fact(number, &look, *fact),
            RolloutEvent::Report(number) => self.report_node(number),
            RolloutEvent::Down(number) => self.shut_down_node(number),
            RolloutEvent::Up(number) => {
                let now = self.current_time();
                self.machines[number].boot_up(now);
                self.track_out_of_service(number);
                self.count_calls("list and watch nodes", 3);
                self.decide_node(number);
            }
            RolloutEvent::NextInLineTimeout(group, slot, version) => {
                self.offer_to_all_waiters(&group, slot, &version);
            }
            RolloutEvent::AdvanceShapes => self.advance_shapes(),
            RolloutEvent::TakePolicies(changed) => self.take_policies(&changed),
        }
    }

    /// Lets a node decide, and begins the first action.
    fn decide_node(&mut self, number: usize) {
        let now = self.current_time();
        let machine = &mut self.machines[number];
        if machine.busy || machine.snapshot.is_none() {
            return;
        }
        machine.generation += 1;
        self.observe_leases(number, now);
        let machine = &mut self.machines[number];
        let Some(seen) = &machine.snapshot else {
            return;
        };
        let decision = reboot::decide(seen, &self.config, now);
        if let Some(seen) = &mut machine.snapshot {
            seen.run.record_decision(decision.cause.reason, now);
        }
        self.result.decisions += 1;
        self.update_observations(number, &decision.observe);
        let is_waiting = decision.cause.reason == RebootReason::LockHeldByOther;
        self.count_holder_checks(number, is_waiting);
        let machine = &mut self.machines[number];
        let news = machine.collect_report(decision.report, now);
        if let Some(action) = decision.actions.first() {
            machine.busy = true;
            self.queue.schedule_event(
                self.now + self.plan.api_latency,
                RolloutEvent::Done(number, Box::new(action.clone())),
            );
            return;
        }
        if news && !machine.report_scheduled {
            machine.report_scheduled = true;
            self.queue
                .schedule_event(self.now + REPORT_DELAY, RolloutEvent::Report(number));
        }
        if let Some(wake) = &decision.wake {
            let at = self.wake_at(number, wake);
            let generation = self.machines[number].generation;
            self.queue
                .schedule_event(at.max(self.now), RolloutEvent::Wake(number, generation));
        }
    }

    /// Shows a node what has changed in the Leases that it watches.
    fn observe_leases(&mut self, number: usize, now: Now) {
        let machine = &mut self.machines[number];
        let has_list = machine
            .snapshot
            .as_ref()
            .is_some_and(|seen| seen.lock.leases.is_some());
        let version = self.slots.group_version(&machine.group);
        let is_watched = machine.observations.iter().any(is_lock_observation);
        if !(has_list && is_watched) || machine.lease_version == Some(version) {
            return;
        }
        machine.lease_version = Some(version);
        let leases =
            self.slots
                .visible_leases(&machine.group, &machine.holder_id, machine.observing_since);
        machine.apply_fact(ObservedFact::Leases(leases), now);
    }

    /// Returns when a node wakes up. A real node that waits for its policy checks the clock every
    /// few minutes, because somebody may set it; a planned node needs not.
    fn wake_at(&self, number: usize, wake: &WakeTime) -> Duration {
        if wake.why != POLICY_WAIT_REASON {
            return wake.at;
        }
        let comes = self.machines[number].next_allowance(&self.config, self.current_time());
        comes.unwrap_or(wake.at)
    }

    /// Updates the set of nodes that are out of service.
    fn track_out_of_service(&mut self, number: usize) {
        let machine = &self.machines[number];
        let out = self.out.entry(machine.group.clone()).or_default();
        if machine.object.ready && !machine.object.unschedulable {
            out.remove(&number);
        } else {
            out.insert(number);
        }
        let most = u32::try_from(out.len()).unwrap_or(u32::MAX);
        if let Some(group) = self.groups.get_mut(&machine.group) {
            group.most_out = group.most_out.max(most);
        }
        let record = if machine.is_control_plane() {
            &mut self.result.most_control_plane_out
        } else {
            &mut self.result.most_out
        };
        *record = (*record).max(most);
    }

    fn into_outcome(mut self) -> RolloutOutcome {
        let mut all: Vec<Duration> = self.waits.values().flatten().copied().collect();
        self.result.median_wait = median_duration(&mut all);
        let held_up = self.blocking_reasons();
        for (name, mut group) in std::mem::take(&mut self.groups) {
            group.median_wait = median_duration(self.waits.entry(name.clone()).or_default());
            let windows = self.windows.remove(&name).unwrap_or_default();
            let count = u32::try_from(windows.len()).unwrap_or(u32::MAX);
            group.windows = group.windows.map(|_| count);
            if group.windows.is_some() {
                group.used_windows = windows.into_values().collect();
            }
            let seen = held_up.get(&name).cloned();
            group.held_up = group.held_up.or(seen);
            self.result.groups.push(group);
        }
        let nodes = u64::try_from(self.machines.len()).unwrap_or(u64::MAX);
        let renewals = nodes * (self.now.as_secs() / WATCH_LIFETIME.as_secs());
        self.count_calls("renew watches", renewals);
        self.result
    }

    /// For each group, why the first node that never began does not begin.
    fn blocking_reasons(&self) -> BTreeMap<GroupName, String> {
        let now = self.current_time();
        let mut held_up = BTreeMap::new();
        let waiting = self.machines.iter();
        for machine in waiting.filter(|machine| machine.reboot_record().is_some()) {
            if let RebootAllowance::No { message, .. } = machine.reboot_allowance(&self.config, now)
            {
                held_up.entry(machine.group.clone()).or_insert(message);
            }
        }
        held_up
    }
}

fn median_duration(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
