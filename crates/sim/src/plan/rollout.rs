//! The rollout itself: events in order of time, each node deciding for itself.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_coordinator::agent::facts::{self, Fact};
use dogwatch_core::Now;
use dogwatch_core::drain::Progress;
use dogwatch_core::lock::{
    self, Count, HolderId, HolderNode, LeaseSeen, LockRecord, NodeRow, Reads,
};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::reboot::{
    self, Action, CommandSeen, Config, CountSeen, HolderSeen, Look, NodePatch, OnGateTimeout,
    OnTimeout, Phase, RecordChange,
};
use jiff::Timestamp;

use super::machine::Machine;
use super::queue::Queue;
use super::result::{Outcome, Stretch};
use super::slots::Slots;
use super::{Calls, Plan};

/// How long the loop gathers news before it tells them.
const SAY_AFTER: Duration = Duration::from_millis(30);
/// From the reboot command until the host is down.
const SHUTDOWN: Duration = Duration::from_secs(2);
/// When everybody who waits looks at a Lease that nobody who was called has taken.
const UNCALLED: Duration = Duration::from_secs(1);
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
    out: BTreeMap<GroupName, std::collections::BTreeSet<usize>>,
    waits: Vec<Duration>,
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
        let mut rollout = Self {
            plan,
            config: config(plan),
            now: Duration::ZERO,
            left: machines.len(),
            machines,
            numbers,
            slots: Slots::default(),
            queue: Queue::default(),
            out: BTreeMap::new(),
            waits: Vec::new(),
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
        time(self.now)
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
            let generation = self.machines[number].generation;
            self.queue
                .put(wake.at.max(self.now), Event::Wake(number, generation));
        }
    }

    /// Begins what is looked at anew, and ends what is not looked at any more.
    fn look(&mut self, number: usize, looks: &[Look]) {
        let machine = &mut self.machines[number];
        let begun: Vec<Look> = looks
            .iter()
            .filter(|look| !machine.looks.contains(look))
            .cloned()
            .collect();
        let had_locks = machine.looks.iter().any(is_locks);
        if had_locks && !looks.iter().any(is_locks) {
            let renewals =
                self.now.saturating_sub(machine.looks_since).as_secs() / WATCH_LIFETIME.as_secs();
            self.result.calls.add("renew watches", renewals);
        }
        machine.looks = looks.to_vec();
        if let Some(seen) = &mut machine.seen {
            facts::forget(seen, looks, false);
        }
        for look in begun {
            self.begin(number, look);
        }
    }

    fn begin(&mut self, number: usize, look: Look) {
        let latency = self.plan.api_latency;
        let (after, fact) = match &look {
            Look::Locks { group, slots } => {
                let made = self.slots.ensure(group, *slots);
                self.count("create leases", made);
                self.count("list and watch leases", 2);
                self.machines[number].looks_since = self.now;
                let me = self.machines[number].me.clone();
                (latency, Fact::Leases(self.slots.view(group, &me, self.now)))
            }
            Look::GroupSize { group } => {
                self.count("list nodes", 1);
                (latency, Fact::GroupSize(self.members(group)))
            }
            Look::Count { lease, .. } => {
                self.count("count the budget", 3);
                (3 * latency, self.counted(number, lease))
            }
            Look::Holder { lease } => {
                self.count("look at holders", 2);
                (2 * latency + Duration::from_secs(1), self.holder(lease))
            }
            Look::Drain { .. } => {
                let pods = u64::from(self.plan.pods_per_node);
                self.count("evict pods", pods);
                self.count("list and watch pods", 3);
                let time = self.machines[number].own(self.plan.drain_time);
                let gone = usize::try_from(pods).unwrap_or(usize::MAX);
                (
                    time,
                    Fact::Drain(Progress {
                        listed: true,
                        gone,
                        ..Progress::default()
                    }),
                )
            }
            Look::Attachments { .. } => {
                self.count("list and watch volumes", 2);
                (latency, Fact::Attachments(Vec::new()))
            }
            Look::Gates { .. } => {
                self.count("look at return gates", 2);
                (2 * latency, Fact::Gates(Vec::new()))
            }
        };
        self.queue
            .put(self.now + after, Event::Fact(number, look, Box::new(fact)));
    }

    fn members(&self, group: &GroupName) -> u32 {
        if *group == GroupName::control_plane() {
            self.plan.control_plane
        } else {
            self.plan.nodes
        }
    }

    /// Who else is out. Members that are in service change nothing, so only the others are named.
    fn counted(&self, number: usize, lease: &LeaseSeen) -> Fact {
        let machine = &self.machines[number];
        let out = self.out.get(&machine.group).into_iter().flatten();
        let nodes = out.map(|other| row(&self.machines[*other])).collect();
        let held = self.slots.held(&machine.group);
        let reads = Reads {
            lease: lease.name.clone(),
            nodes,
            held,
        };
        let members = self.members(&machine.group);
        let count = Count {
            members,
            ..lock::count(&reads, &machine.me)
        };
        Fact::Count(CountSeen {
            count,
            taken: self.now,
        })
    }

    fn holder(&self, lease: &LeaseSeen) -> Fact {
        let uid = lease
            .record
            .as_ref()
            .and_then(|record| record.node_uid.clone())
            .unwrap_or_default();
        let there = HolderNode::There { uid };
        Fact::Holder(HolderSeen {
            lease: lease.name.clone(),
            resource_version: lease.resource_version.clone(),
            reads: [there.clone(), there],
            taken: self.now,
        })
    }

    fn learn(&mut self, number: usize, look: &Look, fact: Fact) {
        if self.machines[number].looks.contains(look) {
            let now = self.time();
            self.machines[number].take(fact, now);
            self.turn(number);
        }
    }

    fn done(&mut self, number: usize, action: &Action) {
        if self.machines[number].seen.is_none() {
            return;
        }
        self.machines[number].busy = false;
        match action {
            Action::PatchNode(patch) => self.patched(number, patch),
            Action::Bid { lease, record } => self.bid(number, lease, record),
            Action::Release { over_budget, .. } => self.release(number, *over_budget),
            Action::Reboot { attempt } => self.reboot(number, *attempt),
            Action::Break { .. } | Action::Stop { .. } => {
                unreachable!("no Node is deleted and no second run started in a planned rollout")
            }
        }
        self.turn(number);
    }

    fn patched(&mut self, number: usize, patch: &NodePatch) {
        self.count("patch nodes", 1);
        let now = self.time();
        let machine = &mut self.machines[number];
        if !machine.patch(patch, now) {
            machine.sees_itself(now);
            return;
        }
        let waits = machine
            .record()
            .filter(|record| record.phase == Phase::Waiting && machine.object.waiting_label);
        if let Some(since) = waits.map(|record| record.since) {
            let place = (machine.object.control_plane, since, machine.me.clone());
            let group = machine.group.clone();
            self.slots.wait(&group, place);
        }
        if matches!(patch.record, RecordChange::Remove) {
            self.finished(number);
        }
        self.track(number);
    }

    fn bid(&mut self, number: usize, lease: &LeaseSeen, record: &LockRecord) {
        self.count("bid for leases", 1);
        let now = self.time();
        let me = self.machines[number].me.clone();
        let takeover = self.slots.holds(&me);
        match self.slots.bid(lease, &me, record) {
            Some(won) => {
                if !takeover {
                    self.won(number);
                }
                if let Some(seen) = &mut self.machines[number].seen {
                    facts::saw_lease(seen, won, now);
                }
            }
            None => self.count("list leases", 1),
        }
    }

    fn won(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        machine.won_at = Some(self.now);
        let Some(record) = machine.object.record.get() else {
            return;
        };
        let place = (
            machine.object.control_plane,
            record.since,
            machine.me.clone(),
        );
        let group = machine.group.clone();
        let since = record.since;
        self.slots.no_longer_waits(&group, &place);
        let passed_over = self.slots.waiters(&group).first().and_then(|first| {
            self.machines[self.numbers[first]]
                .record()
                .map(|record| record.since)
        });
        if let Some(earlier) = passed_over.filter(|earlier| *earlier < since) {
            let by = Duration::try_from(since.duration_since(earlier)).unwrap_or(Duration::ZERO);
            self.result.worst_inversion = self.result.worst_inversion.max(by);
        }
        self.result.handovers += 1;
    }

    fn release(&mut self, number: usize, over_budget: bool) {
        self.count("release leases", 2);
        let now = self.time();
        let me = self.machines[number].me.clone();
        let group = self.machines[number].group.clone();
        let Some(free) = self.slots.release(&me, over_budget, self.now) else {
            return;
        };
        for called in &free.hint {
            let called = self.numbers[called];
            let generation = self.machines[called].generation;
            self.queue.put(
                self.now + self.plan.api_latency,
                Event::Wake(called, generation),
            );
        }
        self.queue.put(
            self.now + UNCALLED,
            Event::Uncalled(group, free.slot, free.resource_version.clone()),
        );
        if over_budget {
            let pause = lock::give_back_pause(free.given_back, 0.5);
            if let Some(seen) = &mut self.machines[number].seen {
                seen.run.bid_after = Some(self.now + pause);
            }
        }
        if let Some(seen) = &mut self.machines[number].seen {
            facts::saw_lease(seen, free, now);
        }
    }

    fn uncalled(&mut self, group: &GroupName, slot: u32, version: &str) {
        if !self.slots.still_free(group, slot, version) {
            return;
        }
        for waiter in self.slots.waiters(group) {
            self.turn(self.numbers[&waiter]);
        }
        if !self.slots.waiters(group).is_empty() {
            self.queue.put(
                self.now + UNCALLED,
                Event::Uncalled(group.clone(), slot, version.to_owned()),
            );
        }
    }

    fn reboot(&mut self, number: usize, attempt: u32) {
        let now = self.time();
        self.say_all(number, now);
        let machine = &mut self.machines[number];
        if let Some(seen) = &mut machine.seen {
            seen.run.command = CommandSeen::Started {
                attempt,
                ended: None,
            };
        }
        let time = machine.own(self.plan.reboot_time);
        self.queue
            .put(self.now + SHUTDOWN.min(time), Event::Down(number));
        self.queue.put(self.now + time, Event::Up(number));
    }

    fn down(&mut self, number: usize) {
        self.machines[number].down();
        self.track(number);
    }

    fn say(&mut self, number: usize) {
        self.machines[number].say_scheduled = false;
        if self.machines[number].busy || self.machines[number].seen.is_none() {
            return;
        }
        let now = self.time();
        self.say_all(number, now);
        self.turn(number);
    }

    fn say_all(&mut self, number: usize, now: Now) {
        let machine = &mut self.machines[number];
        let Some(seen) = &machine.seen else { return };
        let decision = reboot::decide(seen, &self.config, now);
        let (events, conditions) = machine.say(&decision, now);
        self.count("create events", events);
        self.count("patch node conditions", conditions);
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
        let record = if machine.object.control_plane {
            &mut self.result.most_control_plane_out
        } else {
            &mut self.result.most_out
        };
        *record = (*record).max(most);
    }

    fn finished(&mut self, number: usize) {
        let machine = &self.machines[number];
        let (Some(wanted), Some(won)) = (machine.wanted_at, machine.won_at) else {
            return;
        };
        let name = machine.object.name.as_str();
        self.result
            .longest_wait
            .longer(name, won.saturating_sub(wanted));
        self.result
            .longest_out
            .longer(name, self.now.saturating_sub(won));
        self.waits.push(won.saturating_sub(wanted));
        self.result.rebooted += 1;
        self.result.took = self.now;
        self.left -= 1;
    }

    fn outcome(mut self) -> Outcome {
        self.waits.sort();
        self.result.median_wait = self
            .waits
            .get(self.waits.len() / 2)
            .copied()
            .unwrap_or_default();
        let nodes = u64::try_from(self.machines.len()).unwrap_or(u64::MAX);
        let renewals = nodes * (self.now.as_secs() / WATCH_LIFETIME.as_secs());
        self.count("renew watches", renewals);
        self.result
    }
}

fn is_locks(look: &Look) -> bool {
    matches!(look, Look::Locks { .. })
}

fn row(machine: &Machine) -> NodeRow {
    NodeRow {
        name: machine.object.name.clone(),
        ready: machine.object.ready,
        unschedulable: machine.object.unschedulable,
        ignored: false,
    }
}

fn time(now: Duration) -> Now {
    let seconds = jiff::SignedDuration::try_from(now).unwrap_or(jiff::SignedDuration::MAX);
    let wall = Timestamp::UNIX_EPOCH
        .checked_add(seconds)
        .unwrap_or(Timestamp::MAX);
    Now { wall, mono: now }
}

fn machines(plan: &Plan) -> Vec<Machine> {
    let machine = |kind: &str, number: u32, control_plane: bool| {
        let name =
            NodeName::new(format!("{kind}-{number:04}")).expect("letters, digits and a dash");
        let stream = plan.seed.stream(&format!("machine/{name}"));
        Machine::new(name, control_plane, stream, plan.spread_percent)
    };
    let workers = (1..=plan.nodes).map(|number| machine("node", number, false));
    let masters = (1..=plan.control_plane).map(|number| machine("control", number, true));
    workers.chain(masters).collect()
}

fn config(plan: &Plan) -> Config {
    Config {
        max_unavailable: plan.max_unavailable,
        drain_timeout: Duration::from_hours(1),
        on_drain_timeout: OnTimeout::Abort,
        volume_detach_timeout: Duration::from_mins(2),
        reboot_timeout: Duration::from_mins(30).max(plan.reboot_time * 2),
        reboot_attempts: 2,
        settle: plan.settle,
        gate_timeout: Duration::from_mins(15),
        on_gate_timeout: OnGateTimeout::Keep,
    }
}

fn empty(plan: &Plan) -> Outcome {
    let members = usize::try_from(plan.nodes).unwrap_or(usize::MAX);
    Outcome {
        took: Duration::ZERO,
        rebooted: 0,
        longest_wait: Stretch::default(),
        median_wait: Duration::ZERO,
        longest_out: Stretch::default(),
        most_out: 0,
        most_control_plane_out: 0,
        budget: u32::try_from(plan.max_unavailable.of(members)).unwrap_or(u32::MAX),
        handovers: 0,
        worst_inversion: Duration::ZERO,
        calls: Calls::default(),
        decisions: 0,
    }
}
