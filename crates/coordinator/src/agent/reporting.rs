//! Reports decisions: conditions, Events, log, metrics.

use std::time::Duration;

use dogwatch_core::condition;
use dogwatch_core::reboot::{ObservedNode, OwnNodeState, RebootDecision};
use dogwatch_k8s::node;
use tracing::{info, warn};

use super::CoordinatorAgent;

/// Limit for the report before a reboot: the reboot does not wait longer.
const REBOOT_REPORT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long changes are collected before they are reported.
const REPORT_DELAY: Duration = Duration::from_millis(30);

impl CoordinatorAgent {
    /// Logs a changed reason, publishes the decision, and collects its Events.
    pub(super) fn queue_report(&mut self, decision: &RebootDecision) {
        if self
            .last_cause
            .as_ref()
            .is_none_or(|said| said.reason != decision.cause.reason)
        {
            info!(
                reason = decision.cause.reason.as_str(),
                message = decision.cause.message,
                "decided"
            );
        }
        self.last_cause = Some(decision.cause.clone());
        for event in &decision.report.events {
            if !self.pending_events.contains(event) {
                self.pending_events.push(event.clone());
            }
        }
        self.pending_events = self.events.list_unwritten(&self.pending_events);
        self.publish_decision(decision);
    }

    /// Whether a report is due: there is something to report, and [`REPORT_DELAY`] has passed since
    /// the first change. So states that last milliseconds are not reported, and the lock is
    /// requested before the report is written.
    pub(super) fn is_report_due(&mut self, decision: &RebootDecision) -> bool {
        let now = self.clock.now();
        let OwnNodeState::There(seen) = &self.seen.node else {
            return false;
        };
        let writes =
            condition::conditions_to_write(&seen.conditions, &decision.report.conditions, now);
        if writes.is_empty() && self.pending_events.is_empty() {
            // Progress messages and the heartbeat have their own next write time; nothing else
            // would wake the loop for them.
            let wanted = &decision.report.conditions;
            self.report_at = condition::next_condition_write(&seen.conditions, wanted, now);
            return false;
        }
        let soon = now.mono + REPORT_DELAY;
        let at = self.report_at.map_or(soon, |at| at.min(soon));
        self.report_at = Some(at);
        at <= now.mono
    }

    /// Writes conditions that differ and Events that were not written. After a failure the loop
    /// continues: what was not written differs the next time too.
    pub(super) async fn write_report(
        &mut self,
        decision: &RebootDecision,
    ) -> Result<(), dogwatch_k8s::Error> {
        self.report_at = None;
        let OwnNodeState::There(seen) = self.seen.node.clone() else {
            return Ok(());
        };
        let now = self.clock.now();
        // Events have their own rights, so a refused Event does not keep the conditions from being
        // written.
        let events = self.write_events(&seen).await;
        let writes =
            condition::conditions_to_write(&seen.conditions, &decision.report.conditions, now);
        if !writes.is_empty() {
            let answer = node::patch_conditions(&self.node_client, &seen, &writes, now).await?;
            self.observe_node(&answer);
        }
        events
    }

    async fn write_events(&mut self, node: &ObservedNode) -> Result<(), dogwatch_k8s::Error> {
        let episode = event_episode(node);
        while let Some(event) = self.pending_events.first().cloned() {
            let now = self.clock.now();
            self.events
                .write_event(&event, &node.uid, &episode, now)
                .await?;
            self.pending_events.remove(0);
        }
        Ok(())
    }

    /// A refused action is refused again until a person repairs the cause. Reported before the next
    /// try, because the loop reports only when no actions are left.
    pub(super) async fn report_refusal(&mut self) {
        let decision = self.decide();
        self.queue_report(&decision);
        if let Err(error) = self.write_report(&decision).await {
            warn!(
                error = error.error_chain(),
                "failed to write conditions or Events"
            );
        }
    }

    /// The last report before the host goes down.
    pub(super) async fn flush_before_reboot(&mut self) {
        let decision = self.decide();
        match tokio::time::timeout(REBOOT_REPORT_TIMEOUT, self.write_report(&decision)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(
                error = error.error_chain(),
                "failed to write the Event about the reboot"
            ),
            Err(_) => warn!("failed to write the Event about the reboot in time"),
        }
    }
}

/// Distinguishes the same text at another time: when the phase began, or when the last reboot
/// ended.
fn event_episode(node: &ObservedNode) -> String {
    let record = node.record.get().map(|record| record.since);
    let last = node.last_reboot.get().map(|last| last.finished);
    record
        .or(last)
        .map_or_else(String::new, |since| since.to_string())
}
