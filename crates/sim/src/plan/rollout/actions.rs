//! Performs the actions of planned nodes, with their results.

use std::time::Duration;

use dogwatch_coordinator::agent::facts;
use dogwatch_core::Now;
use dogwatch_core::lock::{BidPause, LockRecord, ObservedLease};
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::{self, ClusterPolicies, RebootAllowance};
use dogwatch_core::reboot::{
    NodePatch, RebootAction, RebootCommandState, RebootPhase, RecordChange,
};

use super::{PlannedRollout, RolloutEvent, SHUTDOWN_TIME};
use crate::plan::UsedWindow;
use crate::plan::planned_node::PlannedNode;
use crate::plan::slot_leases::{ReleaseKind, WaiterPlace, offer_delay};
use dogwatch_core::lock::LockWaiter;

impl PlannedRollout<'_> {
    pub(super) fn finish_action(&mut self, number: usize, action: &RebootAction) {
        if self.machines[number].snapshot.is_none() {
            return;
        }
        self.machines[number].busy = false;
        match action {
            RebootAction::PatchNode(patch) => self.apply_node_patch(number, patch),
            RebootAction::Bid { lease, record } => self.place_bid(number, lease, record),
            RebootAction::Release { over_budget, .. } => self.release_lock(number, *over_budget),
            RebootAction::Reboot { attempt } => self.start_reboot(number, *attempt),
            RebootAction::Break { .. } | RebootAction::Stop { .. } => {
                unreachable!("no Node is deleted and no second run started in a planned rollout")
            }
        }
        self.decide_node(number);
    }

    pub(super) fn apply_node_patch(&mut self, number: usize, patch: &NodePatch) {
        self.count_calls("patch nodes", 1);
        let now = self.current_time();
        let machine = &mut self.machines[number];
        if !machine.patch_node(patch, now) {
            machine.observe_own_node(now);
            return;
        }
        let waits = machine
            .reboot_record()
            .filter(|record| record.phase == RebootPhase::Waiting && machine.object.waiting_label);
        if let Some(since) = waits.map(|record| record.since) {
            let place = waiter_place(machine, since);
            let group = machine.group.clone();
            self.slots.add_waiter(&group, place);
        }
        if machine
            .reboot_record()
            .is_some_and(|record| record.phase == RebootPhase::Draining)
        {
            self.record_window(number, now);
        }
        if matches!(patch.record, RecordChange::Remove) {
            self.record_finished(number);
        }
        self.track_out_of_service(number);
        self.plan_shape_advance_of(number);
    }

    pub(super) fn place_bid(&mut self, number: usize, lease: &ObservedLease, record: &LockRecord) {
        self.count_calls("bid for leases", 1);
        let now = self.current_time();
        let me = self.machines[number].holder_id.clone();
        let takeover = self.slots.is_holder(&me);
        match self.slots.place_bid(lease, &me, record, self.now) {
            Some(won) => {
                if takeover {
                    self.offer_room(&record.group, &won);
                } else {
                    self.record_lock_won(number);
                }
                if let Some(seen) = &mut self.machines[number].snapshot {
                    facts::observe_lease(seen, won, now);
                }
            }
            None => self.count_calls("list leases", 1),
        }
    }

    /// Records the window in which the reboot began.
    fn record_window(&mut self, number: usize, now: Now) {
        let machine = &self.machines[number];
        let policies = ClusterPolicies::Known(self.policies.clone());
        let rule = machine.policy_rule(&self.config);
        let leave = policy::may_reboot_continue(&policies, rule.policy, now.wall);
        if let RebootAllowance::Yes { until: Some(end) } = leave {
            let windows = self.windows.entry(rule.group).or_default();
            let window = windows.entry(end);
            let window = window.or_insert_with(|| UsedWindow::starting_with(now.wall, end));
            window.count_begin(now.wall);
        }
    }

    pub(super) fn record_lock_won(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        machine.won_at = Some(self.now);
        let Some(record) = machine.object.record.get() else {
            return;
        };
        let place = waiter_place(machine, record.since);
        let group = machine.group.clone();
        let since = record.since;
        self.slots.remove_waiter(&group, &place);
        let passed_over = self.slots.first_waiter(&group).and_then(|first| {
            self.machines[self.numbers[first]]
                .reboot_record()
                .map(|record| record.since)
        });
        if let Some(earlier) = passed_over.filter(|earlier| *earlier < since) {
            let by = Duration::try_from(since.duration_since(earlier)).unwrap_or(Duration::ZERO);
            self.result.worst_inversion = self.result.worst_inversion.max(by);
        }
        self.result.handovers += 1;
    }

    pub(super) fn release_lock(&mut self, number: usize, over_budget: bool) {
        self.count_calls("release leases", 2);
        let now = self.current_time();
        let me = self.machines[number].holder_id.clone();
        let group = self.machines[number].group.clone();
        let zone = self.machines[number].zone_of_node();
        let leaving = if over_budget {
            ReleaseKind::OverBudget
        } else {
            ReleaseKind::Done { zone }
        };
        let Some(free) = self.slots.release_lease(&me, &leaving, self.now) else {
            return;
        };
        self.offer_room(&group, &free);
        let machine = &self.machines[number];
        let record = machine.reboot_record();
        if let Some(record) = record.filter(|record| record.phase == RebootPhase::Waiting) {
            // It gave the lock back, and waits again.
            self.slots
                .add_waiter(&group, waiter_place(machine, record.since));
        }
        if over_budget {
            let pause = BidPause::after_yield(free.yield_count, 0.5, self.now);
            if let Some(seen) = &mut self.machines[number].snapshot {
                seen.run.bid_pause = Some(pause);
            }
        }
        if let Some(seen) = &mut self.machines[number].snapshot {
            facts::observe_lease(seen, free, now);
        }
    }

    /// Wakes the waiters that this Lease names, and all waiters later: its holder has released it or
    /// raised its maximum.
    fn offer_room(&mut self, group: &GroupName, lease: &ObservedLease) {
        for called in &lease.next_waiters {
            let called = self.numbers[called];
            let generation = self.machines[called].generation;
            self.queue.schedule_event(
                self.now + self.plan.api_latency,
                RolloutEvent::Wake(called, generation),
            );
        }
        let offer = RolloutEvent::NextInLineTimeout(
            group.clone(),
            lease.slot,
            lease.resource_version.clone(),
        );
        self.queue
            .schedule_event(self.now + offer_delay(lease.yield_count), offer);
    }

    /// Lets all waiters look at the group's free Leases, some time after the holder of this one made
    /// room. In a full group they look when a holder makes room again.
    pub(super) fn offer_to_all_waiters(&mut self, group: &GroupName, slot: u32, version: &str) {
        if !self.slots.has_place_for_all(group, self.now) {
            return;
        }
        // While the policy does not allow a reboot, no waiter bids; when it does, they all wake up
        // by themselves.
        let leave = self.slots.first_waiter(group).is_some_and(|waiter| {
            let machine = &self.machines[self.numbers[waiter]];
            let leave = machine.reboot_allowance(&self.config, self.current_time());
            matches!(leave, RebootAllowance::Yes { .. })
        });
        if !leave {
            return;
        }
        for waiter in self.slots.list_waiters(group) {
            self.decide_node(self.numbers[&waiter]);
        }
        let still_free = self.slots.yields_while_free(group, slot, version);
        if let (Some(yield_count), Some(_)) = (still_free, self.slots.first_waiter(group)) {
            self.queue.schedule_event(
                self.now + offer_delay(yield_count),
                RolloutEvent::NextInLineTimeout(group.clone(), slot, version.to_owned()),
            );
        }
    }

    pub(super) fn start_reboot(&mut self, number: usize, attempt: u32) {
        let now = self.current_time();
        self.publish_report(number, now);
        let machine = &mut self.machines[number];
        if let Some(seen) = &mut machine.snapshot {
            seen.run.command = RebootCommandState::Started {
                attempt,
                ended: None,
            };
        }
        let time = machine.spread_duration(self.plan.reboot_time);
        self.queue.schedule_event(
            self.now + SHUTDOWN_TIME.min(time),
            RolloutEvent::Down(number),
        );
        self.queue
            .schedule_event(self.now + time, RolloutEvent::Up(number));
    }

    pub(super) fn shut_down_node(&mut self, number: usize) {
        self.machines[number].shut_down();
        self.track_out_of_service(number);
    }

    pub(super) fn report_node(&mut self, number: usize) {
        self.machines[number].report_scheduled = false;
        if self.machines[number].busy || self.machines[number].snapshot.is_none() {
            return;
        }
        let now = self.current_time();
        self.publish_report(number, now);
    }

    pub(super) fn publish_report(&mut self, number: usize, now: Now) {
        let machine = &mut self.machines[number];
        if machine.snapshot.is_none() {
            return;
        }
        let (events, conditions) = machine.publish_report(now);
        self.count_calls("create events", events);
        self.count_calls("patch node conditions", conditions);
    }

    pub(super) fn record_finished(&mut self, number: usize) {
        let machine = &self.machines[number];
        let (Some(wanted), Some(won)) = (machine.triggered_at, machine.won_at) else {
            return;
        };
        let name = machine.object.name.as_str();
        let waited = won.saturating_sub(wanted);
        self.result.longest_wait.keep_longer(name, waited);
        self.result
            .longest_out
            .keep_longer(name, self.now.saturating_sub(won));
        self.waits
            .entry(machine.group.clone())
            .or_default()
            .push(waited);
        if let Some(group) = self.groups.get_mut(&machine.group) {
            group.rebooted += 1;
            group.took = self.now;
            group.longest_wait.keep_longer(name, waited);
        }
        self.result.rebooted += 1;
        self.result.took = self.now;
        self.left -= 1;
    }
}

fn waiter_place(machine: &PlannedNode, since: jiff::Timestamp) -> WaiterPlace {
    WaiterPlace(LockWaiter {
        control_plane: machine.is_control_plane(),
        since: Some(since),
        holder: machine.holder_id.clone(),
        zone: machine.zone_of_node(),
    })
}
