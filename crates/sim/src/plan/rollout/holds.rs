//! Nodes that are held out of service for the whole rollout, as `dogwatch hold` does it.

use std::time::Duration;

use dogwatch_core::lock::LockRecord;

use super::PlannedRollout;

impl PlannedRollout<'_> {
    /// Gives each held node a lock of its group, and cordons it. Nodes of a group that has no lock
    /// left never begin.
    pub(super) fn hold_nodes(&mut self) {
        for number in 0..self.machines.len() {
            if self.plan.holds.contains(&self.machines[number].object.name) {
                self.hold_node(number);
            }
        }
        for group in self.groups.values_mut() {
            if group.held > 0 && group.held >= group.budget {
                let (held, budget) = (group.held, group.budget);
                let text = format!("{held} nodes are held, and at most {budget} may be out");
                group.held_up = Some(text);
            }
        }
        let never = |number: &usize| !self.is_to_reboot(*number);
        self.left -= (0..self.machines.len()).filter(never).count();
    }

    /// Whether the node is to reboot at all in this rollout.
    pub(super) fn is_to_reboot(&self, number: usize) -> bool {
        let machine = &self.machines[number];
        let group = self.groups.get(&machine.group);
        let is_full = group.is_some_and(|group| group.held_up.is_some());
        !is_full && !self.plan.holds.contains(&machine.object.name)
    }

    fn hold_node(&mut self, number: usize) {
        let machine = &mut self.machines[number];
        let Some(group) = self.groups.get_mut(&machine.group) else {
            return;
        };
        group.held += 1;
        self.slots.ensure_slots(&machine.group, group.budget);
        let me = machine.holder_id.clone();
        let seen = self
            .slots
            .visible_leases(&machine.group, &me, Duration::ZERO);
        let Some(free) = seen.into_iter().find(|lease| lease.holder.is_none()) else {
            return;
        };
        let record = LockRecord {
            node: Some(machine.object.name.clone()),
            node_uid: Some(machine.object.uid.clone()),
            boot_id: machine.object.boot_id.clone(),
            group: machine.group.clone(),
            max: group.budget,
            since: self.plan.start,
            runs: Vec::new(),
        };
        self.slots.place_bid(&free, &me, &record, Duration::ZERO);
        machine.object.unschedulable = true;
        self.track_out_of_service(number);
    }
}
