//! Saying what is decided: conditions, Events, log, metrics.

use std::time::Duration;

use dogwatch_core::condition;
use dogwatch_core::reboot::{Decision, NodeFact};
use dogwatch_k8s::node;
use tracing::{info, warn};

use super::Agent;

/// A reboot does not wait longer than this for its own announcement.
const ANNOUNCE_WITHIN: Duration = Duration::from_secs(3);

impl Agent {
    /// Logs a change of mind, shows it, and keeps what is to be said.
    pub(super) fn announce(&mut self, decision: &Decision) {
        if self.said.as_ref().is_none_or(|said| said.reason != decision.because.reason) {
            info!(reason = decision.because.reason, message = decision.because.message, "decided");
        }
        self.said = Some(decision.because.clone());
        for event in &decision.report.events {
            if !self.unsaid.contains(event) {
                self.unsaid.push(event.clone());
            }
        }
        self.show(decision);
    }

    /// Writes conditions that differ and Events that were not said. Failing is no reason to stop:
    /// what was not written differs the next time, too.
    pub(super) async fn report(&mut self, decision: &Decision) -> Result<(), dogwatch_k8s::Error> {
        let NodeFact::There(seen) = self.seen.node.clone() else {
            return Ok(());
        };
        let now = self.clock.now();
        for event in std::mem::take(&mut self.unsaid) {
            if let Err(error) = self.events.say(&event, &seen.uid, now).await {
                self.unsaid.push(event);
                return Err(error);
            }
        }
        let writes = condition::to_write(&seen.conditions, &decision.report.conditions, now);
        if writes.is_empty() {
            return Ok(());
        }
        let answer = node::patch_conditions(&self.client, &seen, &writes, now).await?;
        self.take_node(&answer);
        Ok(())
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
