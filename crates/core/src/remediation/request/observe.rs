//! Records the steps of a request that this pass observes.

use std::time::Duration;

use super::super::record::RemediationStep;
use super::flow::RequestFlow;
use super::{ProofNote, RemediationAttempt, StrategyType};
use crate::power::{CurrentPower, PowerOffProof, ProofSource};

/// How often Dogwatch reads what is left on the Node.
pub(super) const LEFTOVERS_READ_INTERVAL: Duration = Duration::from_secs(2);
const LEFTOVERS_MAX_AGE: Duration = Duration::from_secs(5);

impl RequestFlow<'_> {
    /// Records the request's host and Node once. Another host or Node is refused later.
    pub(super) fn take_up_request(&mut self) {
        self.status.observed_generation = Some(self.request.generation);
        if self.status.started_at.is_none() {
            self.status.started_at = Some(self.wall_time());
            self.record_step(RemediationStep::Requested);
        }
        if let (None, Ok(host)) = (&self.status.host, &self.case.host) {
            self.status.host = Some((host.name.clone(), host.uid.clone()));
        }
        if self.status.node.is_none() {
            self.status.node = self.case.node_name.as_ref().map(ToString::to_string);
        }
        self.take_up_node();
    }

    /// Records a Node or boot id that was not known yet, while the host is not off: a Node that
    /// appears later may be the one that came back.
    fn take_up_node(&mut self) {
        let attempt = self.status.attempt;
        if self.ctx.effective_power() == CurrentPower::Off
            || attempt.is_some_and(|it| it.off_at.is_some())
        {
            return;
        }
        let Some(node) = self.target_node().cloned() else {
            return;
        };
        if self.status.boot_id.is_none() {
            self.status.boot_id = node.boot_id.as_ref().map(ToString::to_string);
        }
        self.status.node_uid.get_or_insert(node.uid.clone());
    }

    /// Records the steps of the attempt that are seen to be done.
    pub(super) fn observe_steps(&mut self) {
        let is_keyed = self.case.is_keyed();
        let Some(mut attempt) = self.status.attempt.or_else(|| self.recover_attempt()) else {
            return;
        };
        if is_keyed && attempt.key_at.is_none() {
            // A person may add the key late: the wait for it does not shorten the attempt that it
            // begins.
            if self.ctx.now.elapsed_since(attempt.started_at) >= self.strategy.timeout / 2 {
                attempt.started_at = self.wall_time();
            }
            attempt.key_at = Some(self.record_step_now(RemediationStep::KeyAdded));
        }
        if is_keyed
            && attempt.off_at.is_none()
            && let Some(proof) = self.ctx.off_proof()
        {
            self.status.proof = Some(self.proof_note(proof));
            attempt.off_at = Some(self.record_step_now(RemediationStep::OffProved));
            // A Node that an earlier attempt tainted is not released again, and its machine may have booted
            // since. The other Nodes are read right before their release.
            if self.status.tainted_at.is_some() {
                let node = self.target_node().cloned();
                self.record_boot(node.as_deref());
            }
        }
        if is_keyed && attempt.released_at.is_none() && self.is_released() {
            attempt.released_at = Some(self.record_step_now(RemediationStep::Released));
        }
        if !is_keyed && attempt.key_at.is_some() && attempt.key_removed_at.is_none() {
            attempt.key_removed_at = Some(self.record_step_now(RemediationStep::KeyRemoved));
        }
        if attempt.key_removed_at.is_some() && self.is_newly_on() {
            self.record_step_now(RemediationStep::PoweredOn);
        }
        self.status.attempt = Some(attempt);
    }

    /// Rebuilds an attempt from the host's record, if our key is on the host and the status has no
    /// attempt.
    fn recover_attempt(&self) -> Option<RemediationAttempt> {
        let record = self.case.record.as_ref();
        self.case.is_keyed().then(|| RemediationAttempt {
            number: record.map_or(1, |record| record.attempt.max(1)),
            started_at: self.wall_time(),
            key_at: None,
            off_at: None,
            released_at: None,
            key_removed_at: None,
        })
    }

    fn record_step_now(&mut self, step: RemediationStep) -> jiff::Timestamp {
        self.record_step(step);
        self.wall_time()
    }

    fn proof_note(&self, proof: &PowerOffProof) -> ProofNote {
        let source = proof.source();
        let (by, reason) = match source {
            ProofSource::OurCommand { .. } | ProofSource::Metal3Controller => (None, None),
            ProofSource::Person { by, reason, .. } => (Some(by.clone()), Some(reason.clone())),
        };
        ProofNote {
            source: source.as_str().to_owned(),
            confirmed_at: self.wall_time(),
            by,
            reason,
        }
    }

    /// Whether the host is off and its Node is deleted, or nothing is left on the Node: the table's
    /// "Node exists" is 0.
    fn is_released(&self) -> bool {
        self.ctx.effective_power() == CurrentPower::Off && !self.is_node_unreleased()
    }

    /// The table's "Node exists". For a request that taints: the workloads are not released yet.
    pub(super) fn is_node_unreleased(&self) -> bool {
        let Some(node) = self.target_node() else {
            // A Node that cannot be looked for is not known to be gone.
            return self.case.cluster.problem.is_some();
        };
        match self.strategy.kind {
            StrategyType::DeleteNode => true,
            StrategyType::OutOfServiceTaint => !(node.out_of_service && self.has_no_leftovers()),
        }
    }

    /// Whether a recent answer says that nothing is left on the Node.
    fn has_no_leftovers(&self) -> bool {
        self.ctx.memory.leftovers.as_ref().is_some_and(|left| {
            let holds = left.asked_at + LEFTOVERS_MAX_AGE > self.ctx.now.mono;
            holds && left.pods.is_empty() && left.attachments.is_empty()
        })
    }

    fn is_newly_on(&self) -> bool {
        let mut newest = self.status.timeline.iter().rev();
        let said = newest.find(|it| {
            matches!(
                it.step,
                RemediationStep::KeyRemoved | RemediationStep::PoweredOn
            )
        });
        let is_said = said.is_none_or(|it| it.step == RemediationStep::PoweredOn);
        !is_said && self.ctx.effective_power() == CurrentPower::On
    }
}
