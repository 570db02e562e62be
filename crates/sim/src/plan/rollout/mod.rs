//! The rollout itself: events in order of time, each node deciding for itself.

mod acts;
mod looks;
mod setup;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_coordinator::agent::facts::Fact;
use dogwatch_core::Now;
use dogwatch_core::decision::Wake;
use dogwatch_core::lock::HolderId;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::Allowance;
use dogwatch_core::reboot::{self, Action, Config, Look};
use jiff::Timestamp;

use self::setup::{config, empty, groups, machines, time};
use super::machine::Machine;
use super::queue::Queue;
use super::slots::Slots;
use super::{GroupOutcome, Outcome, Plan};

/// How long the loop gathers news before it tells them.
const SAY_AFTER: Duration = Duration::from_millis(30);
/// From the reboot command until the host is down.
const SHUTDOWN: Duration = Duration::from_secs(2);
/// When everybody who waits looks at a Lease that nobody who was called has taken.
const UNCALLED: Duration = Duration::from_secs(1);
/// What a decision says it wakes up for that waits for a pause to end or a window to open.
const AWAITS_LEAVE: &str = "the policy to allow it";
/// A watch is renewed so often.
const WATCH_LIFETIME: Duration = Duration::from_secs(290);

enum Event {
    Want(usize),
    Wake(usize, u64),
    Done(usize, Box<Action>),
    Fact(usize, Look, Box<Fact>),
    Say(usize),
    Down(usize),
    Up(usize),
    Uncalled(GroupName, u32, String),
}

/// Plays the rollout to its end.
pub fn run(plan: &Plan) -> Outcome {
    run_watched(plan, &mut |_, _| {})
}

/// Plays the rollout to its end; `watch` is told how many nodes are done at which time, each time
/// that one more is.
pub fn run_watched(plan: &Plan, watch: &mut dyn FnMut(u32, Duration)) -> Outcome {
    let mut rollout = Rollout::new(plan);
    let mut done = 0;
    while let Some((at, event)) = rollout.queue.take() {
        rollout.now = at;
        rollout.happens(event);
        if rollout.result.rebooted > done {
            done = rollout.result.rebooted;
            watch(done, at);
        }
        if rollout.left == 0 {
            break;
        }
    }
    rollout.outcome()
}

struct Rollout<'a> {
    plan: &'a Plan,
    config: Config,
    now: Duration,
    machines: Vec<Machine>,
    numbers: BTreeMap<HolderId, usize>,
    slots: Slots,
    queue: Queue<Event>,
    out: BTreeMap<GroupName, BTreeSet<usize>>,
    groups: BTreeMap<GroupName, GroupOutcome>,
    waits: BTreeMap<GroupName, Vec<Duration>>,
    /// The windows in which each group began something, by their ends.
    windows: BTreeMap<GroupName, BTreeSet<Timestamp>>,
    left: usize,
    result: Outcome,
}

impl<'a> Rollout<'a> {
    fn new(plan: &'a Plan) -> Self {
        let machines = machines(plan);
        let numbers = machines
            .iter()
            .enumerate()
            .map(|(n, machine)| (machine.me.clone(), n))
            .collect();
        let config = config(plan);
        let mut rollout = Self {
            plan,
            groups: groups(&machines, &config),
            config,
            now: Duration::ZERO,
            left: machines.len(),
            machines,
            numbers,
            slots: Slots::default(),
            queue: Queue::default(),
            out: BTreeMap::new(),
            waits: BTreeMap::new(),
            windows: BTreeMap::new(),
            result: empty(plan),
        };
        rollout.arrive();
        rollout
    }

    /// All nodes see themselves, and come to want a reboot one after the other.
    fn arrive(&mut self) {
        let mut arrivals = self.plan.seed.stream("arrivals");
        for number in 0..self.machines.len() {
            let now = self.time();
            self.machines[number].sees_itself(now);
            let at = self.plan.arrival.mul_f64(arrivals.fraction());
            self.queue.put(at, Event::Want(number));
        }
        self.count(
            "list and watch nodes",
            3 * u64::try_from(self.machines.len()).unwrap_or(u64::MAX),
        );
    }

    fn time(&self) -> Now {
        time(self.plan.start, self.now)
    }

    fn count(&mut self, what: &'static str, calls: u64) {
        self.result.calls.add(what, calls);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Want(number) => {
                let now = self.time();
                self.machines[number].want(now);
                self.turn(number);
            }
            Event::Wake(number, generation) => {
                if self.machines[number].generation == generation {
                    self.turn(number);
                }
            }
            Event::Done(number, action) => self.done(number, &action),
            Event::Fact(number, look, fact) => self.learn(number, &look, *fact),
            Event::Say(number) => self.say(number),
            Event::Down(number) => self.down(number),
            Event::Up(number) => {
                let now = self.time();
                self.machines[number].up(now);
                self.track(number);
                self.count("list and watch nodes", 3);
                self.turn(number);
            }
            Event::Uncalled(group, slot, version) => self.uncalled(&group, slot, &version),
        }
    }

    /// A node decides, and begins the first thing that there is to do.
    fn turn(&mut self, number: usize) {
        let now = self.time();
        let group = self.machines[number].group.clone();
        let machine = &mut self.machines[number];
        if machine.busy || machine.seen.is_none() {
            return;
        }
        machine.generation += 1;
        if machine
            .looks
            .iter()
            .any(|look| matches!(look, Look::Locks { .. }))
            && machine
                .seen
                .as_ref()
                .is_some_and(|seen| seen.lock.leases.is_some())
        {
            let view = self.slots.view(&group, &machine.me, machine.looks_since);
            machine.take(Fact::Leases(view), now);
        }
        let Some(seen) = &machine.seen else { return };
        let decision = reboot::decide(seen, &self.config, now);
        if let Some(seen) = &mut machine.seen {
            seen.run.decided(decision.because.reason, now);
        }
        self.result.decisions += 1;
        self.look(number, &decision.looks);
        let machine = &mut self.machines[number];
        let news = machine.gather(&decision, now);
        if let Some(action) = decision.actions.first() {
            machine.busy = true;
            self.queue.put(
                self.now + self.plan.api_latency,
                Event::Done(number, Box::new(action.clone())),
            );
            return;
        }
        if news && !machine.say_scheduled {
            machine.say_scheduled = true;
            self.queue.put(self.now + SAY_AFTER, Event::Say(number));
        }
        if let Some(wake) = &decision.wake {
            let at = self.wake_at(number, wake);
            let generation = self.machines[number].generation;
            self.queue
                .put(at.max(self.now), Event::Wake(number, generation));
        }
    }

    /// Who waits for leave looks at the clock every few minutes, for it may be set; not here.
    fn wake_at(&self, number: usize, wake: &Wake) -> Duration {
        if wake.why != AWAITS_LEAVE {
            return wake.at;
        }
        let comes = self.machines[number].leave_comes(&self.config, self.time());
        comes.unwrap_or(wake.at)
    }

    /// Keeps the set of those that are out of service.
    fn track(&mut self, number: usize) {
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

    fn outcome(mut self) -> Outcome {
        let mut all: Vec<Duration> = self.waits.values().flatten().copied().collect();
        self.result.median_wait = median(&mut all);
        let held_up = self.held_up();
        for (name, mut group) in std::mem::take(&mut self.groups) {
            group.median_wait = median(self.waits.entry(name.clone()).or_default());
            let windows = self.windows.get(&name).map_or(0, BTreeSet::len);
            let windows = u32::try_from(windows).unwrap_or(u32::MAX);
            group.windows = group.windows.map(|_| windows);
            group.held_up = held_up.get(&name).cloned();
            self.result.groups.push(group);
        }
        let nodes = u64::try_from(self.machines.len()).unwrap_or(u64::MAX);
        let renewals = nodes * (self.now.as_secs() / WATCH_LIFETIME.as_secs());
        self.count("renew watches", renewals);
        self.result
    }

    /// Why the first of each group that never got there does not begin.
    fn held_up(&self) -> BTreeMap<GroupName, String> {
        let now = self.time();
        let mut held_up = BTreeMap::new();
        let waiting = self.machines.iter();
        for machine in waiting.filter(|machine| machine.record().is_some()) {
            if let Allowance::No { message, .. } = machine.leave(&self.config, now) {
                held_up.entry(machine.group.clone()).or_insert(message);
            }
        }
        held_up
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
