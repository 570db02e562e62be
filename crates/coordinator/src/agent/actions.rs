//! Performs actions: each is one call, and each answer is applied at once.

use dogwatch_core::lock::{LockRecord, ObservedLease};
use dogwatch_core::policy;
use dogwatch_core::reboot::{
    self, NodePatch, ObservedNode, OwnNodeState, RebootAction, RebootCommandState, RebootPhase,
    RebootRecord, RecordChange,
};
use dogwatch_k8s::lock::{BidOutcome, ReleaseOutcome};
use dogwatch_k8s::{ApiErrorKind, Error, node};
use tracing::{info, warn};

use super::facts::{self, ObservedFact};
use super::host_ops::{RebootEnd, RebootNotStarted};
use super::{CoordinatorAgent, CoordinatorExit};

/// Key of failed actions in `observation_errors`.
pub(super) const ACTING_ERROR_KEY: &str = "acting";

pub(super) enum ActionOutcome {
    /// The snapshot changed: decide again.
    Changed,
    /// The action failed: decide again after a pause.
    Failed,
    /// The API server refuses the action: report it, and try again after a pause.
    Refused,
    Exit(CoordinatorExit),
}

impl CoordinatorAgent {
    pub(super) async fn perform_action(&mut self, action: &RebootAction) -> ActionOutcome {
        match action {
            RebootAction::PatchNode(patch) => self.patch_node(patch).await,
            RebootAction::Bid { lease, record } => self.bid_for_lease(lease, record).await,
            RebootAction::Release { lease, over_budget } => {
                self.release_lock(lease, *over_budget).await
            }
            RebootAction::Break { lease, evidence } => self.break_lock(lease, evidence).await,
            RebootAction::Reboot { attempt } => self.start_reboot_command(*attempt).await,
            RebootAction::Stop { by } => {
                ActionOutcome::Exit(CoordinatorExit::Superseded { by: by.clone() })
            }
        }
    }

    async fn patch_node(&mut self, patch: &NodePatch) -> ActionOutcome {
        let OwnNodeState::There(seen) = self.seen.node.clone() else {
            return ActionOutcome::Failed;
        };
        self.seen.run.record_patch_sending(seen.record.get(), patch);
        match node::patch_node(&self.node_client, &seen, patch).await {
            Ok(answer) => {
                self.seen.run.record_patch_answer(patch, self.clock.now());
                self.record_phase_change(seen.record.get(), patch);
                let outcome = self.observe_node(&answer);
                if let OwnNodeState::There(after) = &self.seen.node {
                    self.decision_sink.on_node_written(&seen, after);
                }
                outcome
            }
            Err(error) if error.kind() == ApiErrorKind::Conflict => {
                self.reread_node(&seen, &error).await
            }
            Err(error) => self.handle_api_error("patch the Node", &error),
        }
    }

    /// Reports a finished reboot. Events written about one attempt are written again for the next:
    /// it may fail in the same way a day later.
    fn record_phase_change(&mut self, before: Option<&RebootRecord>, patch: &NodePatch) {
        let phase = |record: &RebootRecord| (record.phase, record.since);
        match &patch.record {
            RecordChange::Remove => {
                self.events.forget_events();
                if let (Some(_), Some(last)) = (before, &patch.last) {
                    self.decision_sink.on_reboot_finished(last);
                }
            }
            RecordChange::Set(record) => {
                let begins = before.map(phase) != Some(phase(record));
                if begins && record.phase == RebootPhase::Draining {
                    self.events.forget_events();
                }
            }
        }
    }

    /// The Node has changed since it was read: decide on the newest version. If what is known of it
    /// has not changed, the conflict has another cause (a webhook), and an immediate retry would loop
    /// for ever.
    async fn reread_node(&mut self, seen: &ObservedNode, conflict: &Error) -> ActionOutcome {
        let answer = node::get_node(&self.client, &self.name).await;
        let outcome = self.observe_node_read(answer);
        let is_same = matches!(
            &self.seen.node,
            OwnNodeState::There(after) if after.resource_version == seen.resource_version
        );
        if is_same && matches!(outcome, ActionOutcome::Changed) {
            return self.handle_api_error("patch the Node", conflict);
        }
        outcome
    }

    fn observe_node_read(&mut self, answer: Result<Option<node::Node>, Error>) -> ActionOutcome {
        match answer {
            Ok(Some(answer)) => self.observe_fresh_node(&answer),
            Ok(None) => self.observe_fact(ObservedFact::Node(OwnNodeState::Gone)),
            Err(error) => self.handle_api_error("read the Node", &error),
        }
    }

    /// The answer to a write of ours.
    pub(super) fn observe_node(&mut self, answer: &node::Node) -> ActionOutcome {
        self.observe_answer(answer, ObservedFact::Node)
    }

    /// The API server reads a single object by quorum, and nothing is written meanwhile: an older
    /// version than the known one is that of a restored store.
    fn observe_fresh_node(&mut self, answer: &node::Node) -> ActionOutcome {
        self.observe_answer(answer, ObservedFact::FreshNode)
    }

    fn observe_answer(
        &mut self,
        answer: &node::Node,
        fact: fn(OwnNodeState) -> ObservedFact,
    ) -> ActionOutcome {
        match node::observed_node(answer) {
            Ok(seen) => self.observe_fact(fact(OwnNodeState::There(Box::new(seen)))),
            Err(error) => {
                warn!(%error, "the API server's answer is not a valid Node");
                ActionOutcome::Failed
            }
        }
    }

    fn observe_fact(&mut self, fact: ObservedFact) -> ActionOutcome {
        facts::apply_fact(&mut self.seen, fact, self.clock.now());
        ActionOutcome::Changed
    }

    async fn bid_for_lease(&mut self, lease: &ObservedLease, record: &LockRecord) -> ActionOutcome {
        let unsettled = self.seen.lock.unsettled_bid.replace(lease.name.clone());
        match self.locks.bid_for_lease(lease, record).await {
            BidOutcome::Won(won) => {
                info!(lease = won.name, "holds the reboot lock");
                self.seen.lock.unsettled_bid = None;
                self.decision_sink.on_lease_written(lease, &won);
                self.observe_lease(*won)
            }
            BidOutcome::Lost { why } => {
                self.seen.lock.unsettled_bid = None;
                self.reread_leases(lease, &why).await
            }
            BidOutcome::Refused(error) => {
                // This bid was not written; an earlier one still may be.
                self.seen.lock.unsettled_bid = unsettled;
                self.handle_api_error("take the lock", &error)
            }
            BidOutcome::Unknown(error) => self.handle_api_error("take the lock", &error),
        }
    }

    /// Another node was faster. The watch will show it, but a list is certain. If it shows the same
    /// Lease, the write has another cause to fail: somebody has taken over the field (`kubectl
    /// annotate`), a webhook, or a restored etcd. An immediate retry would loop for ever.
    pub(super) async fn reread_leases(
        &mut self,
        lease: &ObservedLease,
        why: &str,
    ) -> ActionOutcome {
        let outcome = self.relist_leases().await;
        let leases = self.seen.lock.leases.iter().flatten();
        let mut same = leases.filter(|after| after.name == lease.name);
        let is_same = same.any(|after| after.resource_version == lease.resource_version);
        if !is_same || !matches!(outcome, ActionOutcome::Changed) {
            return outcome;
        }
        warn!(lease = lease.name, why, "failed to write the Lease");
        self.record_refusal(format!("cannot write Lease {}: {why}", lease.name))
    }

    pub(super) async fn relist_leases(&mut self) -> ActionOutcome {
        match self.locks.list_slots(&self.lock_group()).await {
            Ok(leases) => self.observe_fact(ObservedFact::Leases(leases)),
            Err(error) => self.handle_api_error("list the group's Leases", &error),
        }
    }

    async fn break_lock(&mut self, lease: &ObservedLease, evidence: &str) -> ActionOutcome {
        let outcome = self.locks.break_lock(lease).await;
        if let ReleaseOutcome::Freed(free) = &outcome {
            warn!(
                lease = lease.name,
                evidence, "broke a lock whose holder no longer exists"
            );
            self.decision_sink.on_lease_written(lease, free);
        }
        if let ReleaseOutcome::Refused(error) = &outcome
            && error.kind() == ApiErrorKind::Forbidden
        {
            // A policy allows this to the controller only; a pause would only miss our turn.
            let error = error.error_chain();
            info!(
                lease = lease.name,
                error, "leaves a lock whose holder no longer exists to the controller"
            );
            self.seen.run.break_forbidden = true;
            return ActionOutcome::Changed;
        }
        let what = "break a lock whose holder no longer exists";
        self.observe_release_outcome(lease, outcome, what).await
    }

    pub(super) fn observe_lease(&mut self, lease: ObservedLease) -> ActionOutcome {
        let now = self.clock.now();
        facts::observe_lease(&mut self.seen, lease, now);
        ActionOutcome::Changed
    }

    async fn start_reboot_command(&mut self, attempt: u32) -> ActionOutcome {
        self.flush_before_reboot().await;
        // A watch whose connection died silently still shows lock and record as ours; fresh reads
        // do not. A newer run that took over relies on this check: it waits no longer than a permit
        // is valid.
        let answer = node::get_node(&self.client, &self.name).await;
        let reads = [
            self.observe_node_read(answer),
            self.relist_leases().await,
            self.reread_halted_policies().await,
        ];
        for done in reads {
            if matches!(done, ActionOutcome::Failed | ActionOutcome::Refused) {
                return ActionOutcome::Failed;
            }
        }
        if !self.is_reboot_still_permitted(attempt) {
            return ActionOutcome::Changed;
        }
        let started = RebootCommandState::Started {
            attempt,
            ended: None,
        };
        self.decision_sink.on_command_starting(&self.seen, attempt);
        let before = std::mem::replace(&mut self.seen.run.command, started);
        let within = reboot::permit_time_left(&self.seen, self.clock.now());
        match self.host_ops.start_reboot(within).await {
            Ok(end) => {
                info!(attempt, "the reboot command was started");
                self.follow_reboot_command(attempt, end);
            }
            Err(RebootNotStarted::TooLate(why)) => {
                warn!(
                    attempt,
                    why, "the reboot command was not started in time; checks again"
                );
                self.seen.run.command = before;
            }
            Err(RebootNotStarted::Failed(why)) => {
                self.seen.run.command = RebootCommandState::FailedToStart { attempt, why };
            }
        }
        ActionOutcome::Changed
    }

    /// Under a policy with a rollout, which may have been halted a moment ago, reads the policies.
    async fn reread_halted_policies(&mut self) -> ActionOutcome {
        let OwnNodeState::There(node) = &self.seen.node else {
            return ActionOutcome::Changed;
        };
        let known = self.seen.policies.known_policies();
        let ruling = policy::ruling_policy(known, &node.labels);
        if !ruling.is_some_and(|policy| policy.rollout.may_halt()) {
            return ActionOutcome::Changed;
        }
        let policies = &self.observer_context.policies;
        match policies.list_policies(&self.client).await {
            Ok(policies) => self.observe_fact(ObservedFact::Policies(policies)),
            Err(error) => self.handle_api_error("read the RebootPolicies", &error),
        }
    }

    /// The report before the reboot took time, so the permit of 10 s may have expired.
    fn is_reboot_still_permitted(&self, attempt: u32) -> bool {
        let decision = self.decide();
        decision.actions.contains(&RebootAction::Reboot { attempt })
    }

    fn follow_reboot_command(
        &self,
        attempt: u32,
        end: futures::future::BoxFuture<'static, RebootEnd>,
    ) {
        let facts = self.facts.clone();
        tokio::spawn(async move {
            let fact = match end.await {
                RebootEnd::Ran(end) => ObservedFact::CommandEnded(attempt, end),
                RebootEnd::NeverBegun(why) => ObservedFact::CommandNeverBegun(attempt, why),
            };
            // Fails only when the process ends.
            let _ = facts.send(fact);
        });
    }

    pub(super) fn handle_api_error(&mut self, what: &'static str, error: &Error) -> ActionOutcome {
        self.decision_sink.on_api_error(error);
        let words = error.error_chain();
        warn!(error = words, "failed to {what}");
        match error.kind() {
            ApiErrorKind::Forbidden | ApiErrorKind::Refused => {
                self.record_refusal(format!("cannot {what}: {words}"))
            }
            ApiErrorKind::NotFound
            | ApiErrorKind::AlreadyExists
            | ApiErrorKind::Conflict
            | ApiErrorKind::Gone
            | ApiErrorKind::Throttled { .. }
            | ApiErrorKind::Transient => ActionOutcome::Failed,
        }
    }

    /// Reports on the Node why nothing goes on, until an action succeeds.
    fn record_refusal(&mut self, trouble: String) -> ActionOutcome {
        self.seen
            .observation_errors
            .insert(ACTING_ERROR_KEY, trouble);
        ActionOutcome::Refused
    }
}
