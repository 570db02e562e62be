//! The lines of a node's explanation about the lock: holders and queue.

use super::chain::{MAX_NAMED_ITEMS, NodeExplainer};
use super::explanation::ExplanationTopic;
use super::fleet::{LeaseRow, QueuedHolder, condition_message, leading_condition};
use super::human_format::{format_ordinal, format_since, join_first_names};
use crate::reboot::{ObservedNode, RebootPhase};

impl NodeExplainer<'_> {
    /// The node's own Lease or, while it waits, all Leases of its group.
    pub(super) fn add_lock(&mut self) {
        self.add_lock_api();
        if let Some(row) = self.view.fleet.lease_held_by(&self.node.name) {
            let text = match &row.lease.record {
                Some(record) => format!(
                    "holds {} {}, at most {} of group {} at once",
                    row.lease.name,
                    format_since(record.since, self.now),
                    record.max,
                    row.group
                ),
                None => format!("holds {}; its record cannot be read", row.lease.name),
            };
            self.add_line(ExplanationTopic::Lock, text);
            return;
        }
        match self.record_phase() {
            Some(RebootPhase::Waiting) => self.add_slots(),
            Some(
                RebootPhase::Draining
                | RebootPhase::Holding
                | RebootPhase::Rebooting
                | RebootPhase::Returning,
            ) => {
                self.add_line(
                    ExplanationTopic::Lock,
                    "holds no lock, although its phase needs one",
                );
            }
            None => {}
        }
    }

    /// What a caller of the lock API holds or waits for on behalf of this node.
    fn add_lock_api(&mut self) {
        if let Some(host) = self.view.fleet.waiting_host_for(&self.node.name) {
            let text = format!(
                "{} requested the lock over HTTP {} and has no answer yet: {}: {}",
                host.holder,
                format_since(host.since, self.now),
                host.reason,
                host.message
            );
            self.add_line(ExplanationTopic::Lock, text);
        }
        if let Some(row) = self.view.fleet.lease_locked_through_api(&self.node.name) {
            let lease = &row.lease;
            let holder = lease.holder.as_ref().map(ToString::to_string);
            let record = lease.record.as_ref();
            let held = record.map(|record| format!(" {}", format_since(record.since, self.now)));
            let text = format!(
                "{} holds {}{} through the lock API; an unlock call releases it",
                holder.unwrap_or_default(),
                lease.name,
                held.unwrap_or_default()
            );
            self.add_line(ExplanationTopic::Lock, text);
        }
        if self.node.api_lock {
            self.add_line(
                ExplanationTopic::Lock,
                "the lock API has taken this node out of service; the node's coordinator waits until it is unlocked",
            );
        }
    }

    fn add_slots(&mut self) {
        let group = self.view.fleet.group_of_node(self.node);
        let slots = self.view.fleet.slots_of_group(&group);
        if slots.is_empty() {
            let text = format!("group {group} has no Lease yet");
            self.add_line(ExplanationTopic::Lock, text);
        }
        for row in slots.iter().take(MAX_NAMED_ITEMS) {
            let text = self.describe_slot(row);
            self.add_line(ExplanationTopic::Lock, text);
        }
        if slots.len() > MAX_NAMED_ITEMS {
            self.add_line(
                ExplanationTopic::Lock,
                format!("and {} more slots", slots.len() - MAX_NAMED_ITEMS),
            );
        }
    }

    fn describe_slot(&self, row: &LeaseRow) -> String {
        let lease = &row.lease;
        let Some(holder) = &lease.holder else {
            return match lease.yield_count {
                0 => format!("{} is free", lease.name),
                times => format!(
                    "{} is free; the last {times} holders found too many nodes unavailable and \
                     released it, so each waits for a pause before its next bid",
                    lease.name
                ),
            };
        };
        let held = lease.record.as_ref().map(|record| {
            format!(
                " {} (at most {} at once)",
                format_since(record.since, self.now),
                record.max
            )
        });
        let text = format!(
            "{} is held by {holder}{}",
            lease.name,
            held.unwrap_or_default()
        );
        match self.view.fleet.holder_node(lease) {
            Some(Ok(node)) => format!("{text}; {}", describe_holder_work(node)),
            Some(Err(name)) => {
                format!("{text}; Node {name} does not exist: the next waiting node frees the lock")
            }
            None => format!("{text}, which is not a Node"),
        }
    }

    pub(super) fn add_order(&mut self) {
        if self.record_phase() != Some(RebootPhase::Waiting) {
            return;
        }
        let queue = self
            .view
            .fleet
            .group_queue(&self.view.fleet.group_of_node(self.node));
        let is_it =
            |queued: &QueuedHolder<'_>| queued.node.is_some_and(|node| node.name == self.node.name);
        let Some(index) = queue.iter().position(is_it) else {
            return;
        };
        let before: Vec<String> = queue[..index]
            .iter()
            .map(QueuedHolder::display_name)
            .collect();
        let mut text = format!("{} of {} that wait", format_ordinal(index + 1), queue.len());
        if !before.is_empty() {
            text.push_str("; before it: ");
            text.push_str(&join_first_names(&before, MAX_NAMED_ITEMS));
        }
        self.add_line(ExplanationTopic::Order, text);
    }
}

/// The holder's phase and leading condition.
fn describe_holder_work(node: &ObservedNode) -> String {
    let ready = if node.ready { "" } else { ", not Ready" };
    match (node.record.get(), leading_condition(node)) {
        (Some(record), Some(says)) => format!(
            "{} is {}{ready}: {}: {}",
            node.name,
            record.phase.as_str(),
            says.reason,
            condition_message(says)
        ),
        (Some(record), None) => format!("{} is {}{ready}", node.name, record.phase.as_str()),
        (None, _) => format!("{} has no reboot under way{ready}", node.name),
    }
}
