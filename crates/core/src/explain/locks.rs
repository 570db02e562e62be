//! The lock's links of the chain: who holds, who waits, in which order.

use super::chain::{Chain, NAMED};
use super::explanation::Topic;
use super::fleet::{LeaseRow, Queued, message_of, said};
use super::words::{ordinal, since, some};
use crate::reboot::{NodeSeen, Phase};

impl Chain<'_> {
    /// Its own Lease; or, while it waits, everybody's.
    pub(super) fn lock(&mut self) {
        self.through_api();
        if let Some(row) = self.view.fleet.held_by(&self.node.name) {
            let text = match &row.lease.record {
                Some(record) => format!(
                    "holds {} {}, at most {} of group {} at once",
                    row.lease.name,
                    since(record.since, self.now),
                    record.max,
                    row.group
                ),
                None => format!("holds {}; its record cannot be read", row.lease.name),
            };
            self.add(Topic::Lock, text);
            return;
        }
        match self.record_phase() {
            Some(Phase::Waiting) => self.slots(),
            Some(Phase::Draining | Phase::Rebooting | Phase::Returning) => {
                self.add(Topic::Lock, "holds none, although its phase needs one");
            }
            None => {}
        }
    }

    /// What a caller of the lock API has of this node, or waits for.
    fn through_api(&mut self) {
        if let Some(host) = self.view.fleet.asks_for(&self.node.name) {
            let text = format!(
                "{} asked for the lock over HTTP {} and was not answered yet: {}: {}",
                host.holder,
                since(host.since, self.now),
                host.reason,
                host.message
            );
            self.add(Topic::Lock, text);
        }
        if let Some(row) = self.view.fleet.locked_by_api(&self.node.name) {
            let lease = &row.lease;
            let holder = lease.holder.as_ref().map(ToString::to_string);
            let record = lease.record.as_ref();
            let held = record.map(|record| format!(" {}", since(record.since, self.now)));
            let text = format!(
                "{} holds {}{} through the lock API; its unlock gives it up",
                holder.unwrap_or_default(),
                lease.name,
                held.unwrap_or_default()
            );
            self.add(Topic::Lock, text);
        }
        if self.node.api_lock {
            self.add(
                Topic::Lock,
                "the lock API has taken this node out of service; its own coordinator waits for that",
            );
        }
    }

    fn slots(&mut self) {
        let group = self.view.fleet.group(self.node);
        let slots = self.view.fleet.slots(&group);
        if slots.is_empty() {
            let text = format!("group {group} has no Lease yet");
            self.add(Topic::Lock, text);
        }
        for row in slots.iter().take(NAMED) {
            let text = self.slot(row);
            self.add(Topic::Lock, text);
        }
        if slots.len() > NAMED {
            self.add(
                Topic::Lock,
                format!("and {} more slots", slots.len() - NAMED),
            );
        }
    }

    fn slot(&self, row: &LeaseRow) -> String {
        let lease = &row.lease;
        let Some(holder) = &lease.holder else {
            return match lease.given_back {
                0 => format!("{} is free", lease.name),
                times => format!(
                    "{} is free; the last {times} to win it found too many nodes out and gave it back, so all bid again after a pause",
                    lease.name
                ),
            };
        };
        let held = lease.record.as_ref().map(|record| {
            format!(
                " {} (at most {} at once)",
                since(record.since, self.now),
                record.max
            )
        });
        let text = format!(
            "{} is held by {holder}{}",
            lease.name,
            held.unwrap_or_default()
        );
        match self.view.fleet.holder(lease) {
            Some(Ok(node)) => format!("{text}; {}", doing(node)),
            Some(Err(name)) => {
                format!("{text}; Node {name} does not exist: whoever waits clears it")
            }
            None => format!("{text}, which is no node"),
        }
    }

    pub(super) fn order(&mut self) {
        if self.record_phase() != Some(Phase::Waiting) {
            return;
        }
        let queue = self.view.fleet.queue(&self.view.fleet.group(self.node));
        let is_it =
            |queued: &Queued<'_>| queued.node.is_some_and(|node| node.name == self.node.name);
        let Some(index) = queue.iter().position(is_it) else {
            return;
        };
        let before: Vec<String> = queue[..index].iter().map(Queued::name).collect();
        let mut text = format!("{} of {} that wait", ordinal(index + 1), queue.len());
        if !before.is_empty() {
            text.push_str("; before it: ");
            text.push_str(&some(&before, NAMED));
        }
        self.add(Topic::Order, text);
    }
}

/// What a holder is busy with, in its own words.
fn doing(node: &NodeSeen) -> String {
    let ready = if node.ready { "" } else { ", not Ready" };
    match (node.record.get(), said(node)) {
        (Some(record), Some(says)) => format!(
            "{} is {}{ready}: {}: {}",
            node.name,
            record.phase.as_str(),
            says.reason,
            message_of(says)
        ),
        (Some(record), None) => format!("{} is {}{ready}", node.name, record.phase.as_str()),
        (None, _) => format!("{} has no reboot under way{ready}", node.name),
    }
}
