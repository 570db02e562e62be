//! Saying what is decided: conditions, Events, log, metrics.

use std::time::Duration;

use dogwatch_core::condition;
use dogwatch_core::reboot::{Decision, NodeFact, NodeSeen};
use dogwatch_k8s::node;
use tracing::{info, warn};

use super::Agent;

/// A reboot does not wait longer than this for its own announcement.
const ANNOUNCE_WITHIN: Duration = Duration::from_secs(3);

/// How long news is gathered before it is told.
const SAY_AFTER: Duration = Duration::from_millis(30);

impl Agent {
    /// Logs a change of mind, shows it, and keeps what is to be said.
    pub(super) fn announce(&mut self, decision: &Decision) {
        if self
            .said
            .as_ref()
            .is_none_or(|said| said.reason != decision.because.reason)
        {
            info!(
                reason = decision.because.reason,
                message = decision.because.message,
                "decided"
            );
        }
        self.said = Some(decision.because.clone());
        for event in &decision.report.events {
            if !self.unsaid.contains(event) {
                self.unsaid.push(event.clone());
            }
        }
        self.unsaid = self.events.unsaid(&self.unsaid);
        self.show(decision);
    }

    /// Whether there is something to say, and the moment has come: a little after the first of it,
    /// so that what passes within milliseconds is not said, and the lock is asked for before the
    /// news of it is told.
    pub(super) fn time_to_say(&mut self, decision: &Decision) -> bool {
        let now = self.clock.now();
        let NodeFact::There(seen) = &self.seen.node else {
            return false;
        };
        let writes = condition::to_write(&seen.conditions, &decision.report.conditions, now);
        if writes.is_empty() && self.unsaid.is_empty() {
            // Progress in its turn, and a sign of life: nothing else may wake us for it.
            let wanted = &decision.report.conditions;
            self.say_at = condition::next_write(&seen.conditions, wanted, now);
            return false;
        }
        let soon = now.mono + SAY_AFTER;
        let at = self.say_at.map_or(soon, |at| at.min(soon));
        self.say_at = Some(at);
        at <= now.mono
    }

    /// Writes conditions that differ and Events that were not said. Failing is no reason to stop:
    /// what was not written differs the next time, too.
    pub(super) async fn report(&mut self, decision: &Decision) -> Result<(), dogwatch_k8s::Error> {
        self.say_at = None;
        let NodeFact::There(seen) = self.seen.node.clone() else {
            return Ok(());
        };
        let now = self.clock.now();
        // Events live elsewhere and have rights of their own: the conditions do not wait for them.
        let events = self.say_events(&seen).await;
        let writes = condition::to_write(&seen.conditions, &decision.report.conditions, now);
        if !writes.is_empty() {
            let answer = node::patch_conditions(&self.node_client, &seen, &writes, now).await?;
            self.take_node(&answer);
        }
        events
    }

    async fn say_events(&mut self, node: &NodeSeen) -> Result<(), dogwatch_k8s::Error> {
        let episode = episode(node);
        while let Some(event) = self.unsaid.first().cloned() {
            let now = self.clock.now();
            self.events.say(&event, &node.uid, &episode, now).await?;
            self.unsaid.remove(0);
        }
        Ok(())
    }

    /// What was refused is refused again until a person mends it: said before the next try, for
    /// while there is something to do nothing else is said.
    pub(super) async fn report_refusal(&mut self) {
        let decision = self.decide();
        self.announce(&decision);
        if let Err(error) = self.report(&decision).await {
            warn!(error = error.in_words(), "failed to report");
        }
    }

    /// The last chance to say anything before the host goes down.
    pub(super) async fn flush_before_reboot(&mut self) {
        let decision = self.decide();
        match tokio::time::timeout(ANNOUNCE_WITHIN, self.report(&decision)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(error = error.in_words(), "could not announce the reboot"),
            Err(_) => warn!("could not announce the reboot in time"),
        }
    }
}

/// What tells the same words of another time apart: when the phase began, or the last reboot ended.
fn episode(node: &NodeSeen) -> String {
    let record = node.record.get().map(|record| record.since);
    let last = node.last.get().map(|last| last.finished);
    record
        .or(last)
        .map_or_else(String::new, |since| since.to_string())
}
