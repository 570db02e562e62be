//! What a planned node does, and what comes of it.

use std::time::Duration;

use dogwatch_coordinator::agent::facts;
use dogwatch_core::Now;
use dogwatch_core::lock::{self, LeaseSeen, LockRecord};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::{self, Allowance, Policies};
use dogwatch_core::reboot::{self, Action, CommandSeen, NodePatch, Phase, RecordChange};

use super::{Event, Rollout, SHUTDOWN, UNCALLED};
use crate::plan::machine::Machine;
use crate::plan::slots::{Leaving, Place};

impl Rollout<'_> {
    pub(super) fn done(&mut self, number: usize, action: &Action) {
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

    pub(super) fn patched(&mut self, number: usize, patch: &NodePatch) {
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
            let place = place(machine, since);
            let group = machine.group.clone();
            self.slots.wait(&group, place);
        }
        if machine
            .record()
            .is_some_and(|record| record.phase == Phase::Draining)
        {
            self.began(number, now);
        }
        if matches!(patch.record, RecordChange::Remove) {
            self.finished(number);
        }
        self.track(number);
    }

    pub(super) fn bid(&mut self, number: usize, lease: &LeaseSeen, record: &LockRecord) {
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

    /// In which window.
    fn began(&mut self, number: usize, now: Now) {
        let machine = &self.machines[number];
        let policies = Policies::Known(self.plan.policies.clone());
        let rule = machine.rule(&self.config);
        let leave = policy::still_allowed(&policies, rule.policy, now.wall);
        if let Allowance::Yes { until: Some(end) } = leave {
            self.windows.entry(rule.group).or_default().insert(end);
        }
    }

    pub(super) fn won(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        machine.won_at = Some(self.now);
        let Some(record) = machine.object.record.get() else {
            return;
        };
        let place = place(machine, record.since);
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

    pub(super) fn release(&mut self, number: usize, over_budget: bool) {
        self.count("release leases", 2);
        let now = self.time();
        let me = self.machines[number].me.clone();
        let group = self.machines[number].group.clone();
        let zone = self.machines[number].zone();
        let leaving = if over_budget {
            Leaving::OverBudget
        } else {
            Leaving::Done { zone }
        };
        let Some(free) = self.slots.release(&me, &leaving, self.now) else {
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

    pub(super) fn uncalled(&mut self, group: &GroupName, slot: u32, version: &str) {
        let waiters = self.slots.waiters(group);
        // While the policy gives no leave nobody takes it; when it does they all come by themselves.
        let leave = waiters.first().is_some_and(|waiter| {
            let machine = &self.machines[self.numbers[waiter]];
            let leave = machine.leave(&self.config, self.time());
            matches!(leave, Allowance::Yes { .. })
        });
        if !leave || !self.slots.still_free(group, slot, version) {
            return;
        }
        for waiter in waiters {
            self.turn(self.numbers[&waiter]);
        }
        if !self.slots.waiters(group).is_empty() {
            self.queue.put(
                self.now + UNCALLED,
                Event::Uncalled(group.clone(), slot, version.to_owned()),
            );
        }
    }

    pub(super) fn reboot(&mut self, number: usize, attempt: u32) {
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

    pub(super) fn down(&mut self, number: usize) {
        self.machines[number].down();
        self.track(number);
    }

    pub(super) fn say(&mut self, number: usize) {
        self.machines[number].say_scheduled = false;
        if self.machines[number].busy || self.machines[number].seen.is_none() {
            return;
        }
        let now = self.time();
        self.say_all(number, now);
        self.turn(number);
    }

    pub(super) fn say_all(&mut self, number: usize, now: Now) {
        let machine = &mut self.machines[number];
        let Some(seen) = &machine.seen else { return };
        let decision = reboot::decide(seen, &self.config, now);
        let (events, conditions) = machine.say(&decision, now);
        self.count("create events", events);
        self.count("patch node conditions", conditions);
    }

    pub(super) fn finished(&mut self, number: usize) {
        let machine = &self.machines[number];
        let (Some(wanted), Some(won)) = (machine.wanted_at, machine.won_at) else {
            return;
        };
        let name = machine.object.name.as_str();
        let waited = won.saturating_sub(wanted);
        self.result.longest_wait.longer(name, waited);
        self.result
            .longest_out
            .longer(name, self.now.saturating_sub(won));
        self.waits
            .entry(machine.group.clone())
            .or_default()
            .push(waited);
        if let Some(group) = self.groups.get_mut(&machine.group) {
            group.rebooted += 1;
            group.took = self.now;
            group.longest_wait.longer(name, waited);
        }
        self.result.rebooted += 1;
        self.result.took = self.now;
        self.left -= 1;
    }
}

fn place(machine: &Machine, since: jiff::Timestamp) -> Place {
    Place {
        control_plane: machine.is_control_plane(),
        since,
        holder: machine.me.clone(),
        zone: machine.zone(),
    }
}
