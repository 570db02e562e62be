//! What of a request's way is seen now, and is written down.

use std::time::Duration;

use super::super::record::Step;
use super::flow::Flow;
use super::{Attempt, ProofNote, StrategyType};
use crate::power::{OffProof, PowerNow, Source};

/// How long an answer about what is left on the Node holds, and how often it is asked for.
pub(super) const LEFTOVERS_EVERY: Duration = Duration::from_secs(2);
const LEFTOVERS_HOLD: Duration = Duration::from_secs(5);

impl Flow<'_> {
    /// Written once: whom this is about. Another host, or another Node, later is refused.
    pub(super) fn take_up(&mut self) {
        self.status.observed_generation = Some(self.request.generation);
        if self.status.started_at.is_none() {
            self.status.started_at = Some(self.wall());
            self.stamp(Step::Requested);
        }
        if let (None, Ok(host)) = (&self.status.host, &self.case.host) {
            self.status.host = Some((host.name.clone(), host.uid.clone()));
        }
        if self.status.node.is_none() {
            self.status.node = self.case.node_name.as_ref().map(ToString::to_string);
        }
        self.take_up_node();
    }

    /// A Node, or a boot, that was not known yet, as long as the host is not off: what shows afterwards may
    /// be the one that came back.
    fn take_up_node(&mut self) {
        let attempt = self.status.attempt;
        if self.ctx.power() == PowerNow::Off || attempt.is_some_and(|it| it.off_at.is_some()) {
            return;
        }
        let Some(node) = self.target().cloned() else {
            return;
        };
        if self.status.boot_id.is_none() {
            self.status.boot_id = node.boot_id.as_ref().map(ToString::to_string);
        }
        self.status.node_uid.get_or_insert(node.uid.clone());
    }

    /// The steps of the attempt that are seen done.
    pub(super) fn observe(&mut self) {
        let is_keyed = self.case.is_keyed();
        let Some(mut attempt) = self.status.attempt.or_else(|| self.found()) else {
            return;
        };
        if is_keyed && attempt.key_at.is_none() {
            // A person's key comes when it comes: what it begins is not cut short by the wait for it.
            if self.ctx.now.since(attempt.started_at) >= self.strategy.timeout / 2 {
                attempt.started_at = self.wall();
            }
            attempt.key_at = Some(self.see(Step::KeyAdded));
        }
        if is_keyed
            && attempt.off_at.is_none()
            && let Some(proof) = self.ctx.proof()
        {
            self.status.proof = Some(self.note(proof));
            attempt.off_at = Some(self.see(Step::OffProved));
        }
        if is_keyed && attempt.released_at.is_none() && self.is_released() {
            attempt.released_at = Some(self.see(Step::Released));
        }
        if !is_keyed && attempt.key_at.is_some() && attempt.key_removed_at.is_none() {
            attempt.key_removed_at = Some(self.see(Step::KeyRemoved));
        }
        if attempt.key_removed_at.is_some() && self.is_newly_on() {
            self.see(Step::PoweredOn);
        }
        self.status.attempt = Some(attempt);
    }

    /// Our key is there and the status says nothing of it: it was lost, and the host remembers.
    fn found(&self) -> Option<Attempt> {
        let record = self.case.record.as_ref();
        self.case.is_keyed().then(|| Attempt {
            number: record.map_or(1, |record| record.attempt.max(1)),
            started_at: self.wall(),
            key_at: None,
            off_at: None,
            released_at: None,
            key_removed_at: None,
        })
    }

    /// When: now.
    fn see(&mut self, step: Step) -> jiff::Timestamp {
        self.stamp(step);
        self.wall()
    }

    fn note(&self, proof: &OffProof) -> ProofNote {
        let (source, by, reason) = match proof.source() {
            Source::OurCommand { .. } => ("OurCommand", None, None),
            Source::TheirController => ("TheirController", None, None),
            Source::Person { by, reason, .. } => ("Person", Some(by.clone()), Some(reason.clone())),
        };
        ProofNote {
            source: source.to_owned(),
            confirmed_at: self.wall(),
            by,
            reason,
        }
    }

    /// The table's "Node exists" is 0 while the host is off: its Node is gone, or nothing is left on it.
    fn is_released(&self) -> bool {
        self.ctx.power() == PowerNow::Off && !self.is_there()
    }

    /// The table's "Node exists": for a request that taints, its workloads are not released yet.
    pub(super) fn is_there(&self) -> bool {
        let Some(node) = self.target() else {
            return false;
        };
        match self.strategy.kind {
            StrategyType::DeleteNode => true,
            StrategyType::OutOfServiceTaint => !(node.out_of_service && self.is_empty()),
        }
    }

    /// Nothing is left on the Node, by an answer that is not old.
    fn is_empty(&self) -> bool {
        self.ctx.known.leftovers.as_ref().is_some_and(|left| {
            let holds = left.taken + LEFTOVERS_HOLD > self.ctx.now.mono;
            holds && left.pods.is_empty() && left.attachments.is_empty()
        })
    }

    fn is_newly_on(&self) -> bool {
        let mut newest = self.status.timeline.iter().rev();
        let said = newest.find(|it| matches!(it.step, Step::KeyRemoved | Step::PoweredOn));
        let is_said = said.is_none_or(|it| it.step == Step::PoweredOn);
        !is_said && self.ctx.power() == PowerNow::On
    }
}
