//! The inputs of one decision, and the questions that several of its steps ask.

use std::time::Duration;

use super::RemediationReason;
use super::action::RemediationObserve;
use super::concurrency::ConcurrentRemediations;
use super::config::RemediationConfig;
use super::host_link::RemediationProblem;
use super::record::{RemediationRecord, RemediationStep, StepStamp};
use super::snapshot::{FreshReads, ObservedPower, RemediationMemory};
use super::truth_table::TruthTableInputs;
use super::types::{Remediation, RemediationDecision};
use crate::Now;
use crate::decision::{EventSeverity, decision_with_cause};
use crate::power::{
    CurrentPower, HostRebootAnnotation, HostSnapshot, PowerOffProof, is_annotation_obeyed,
    reboot_annotations,
};

/// The arguments of [`super::decide`].
#[derive(Clone, Copy)]
pub(super) struct RemediationContext<'a> {
    pub(super) case: &'a Remediation,
    pub(super) memory: &'a RemediationMemory,
    pub(super) concurrent: &'a ConcurrentRemediations,
    pub(super) config: &'a RemediationConfig,
    pub(super) now: Now,
}

impl<'a> RemediationContext<'a> {
    pub(super) fn table_inputs(&self) -> TruthTableInputs {
        TruthTableInputs {
            node: self.case.node.is_some(),
            needs_remediation: self.case.needs_remediation,
            power: self.effective_power(),
            key: self.case.is_keyed(),
        }
    }

    /// Whether the power controller obeys our key that is on this host: it ignores one on a host that is
    /// not provisioned.
    pub(super) fn is_key_obeyed(&self, host: &HostSnapshot) -> bool {
        let key = self.key_request(host);
        key.is_some_and(|key| is_annotation_obeyed(host, &key))
    }

    /// The host's power. Where it cannot be read, a proof for our key, which then is a person's
    /// confirmation, counts as off.
    pub(super) fn effective_power(&self) -> CurrentPower {
        match self.observed_power() {
            CurrentPower::Unknown if self.off_proof().is_some() => CurrentPower::Off,
            now @ (CurrentPower::On | CurrentPower::Off | CurrentPower::Unknown) => now,
        }
    }

    fn observed_power(&self) -> CurrentPower {
        let power = self.memory.power.as_ref();
        power.map_or(CurrentPower::Unknown, |power| power.now)
    }

    /// The power controller's message about the host.
    pub(super) fn describe_power(&self) -> String {
        let because = self
            .memory
            .power
            .as_ref()
            .and_then(|power| power.because.as_ref());
        let unread = || "its power has not been read yet".to_owned();
        because.cloned().unwrap_or_else(unread)
    }

    /// What a person can do about a power that cannot be read.
    pub(super) fn confirm_off_hint(&self) -> String {
        let host = self.case.host.as_ref().ok();
        host.map_or_else(String::new, |host| {
            format!(
                "; after you have made sure that the host is off, confirm it: dogwatch confirm-off {}",
                host.name
            )
        })
    }

    /// When the first of the latest unbroken series of "off" readings was requested.
    pub(super) fn off_since(&self) -> Option<Duration> {
        let power: &ObservedPower = self.memory.power.as_ref()?;
        power.off_since
    }

    /// The proof that the host is off, later than our key on the watched host.
    pub(super) fn off_proof(&self) -> Option<&'a PowerOffProof> {
        let proof = self.memory.power.as_ref()?.proof.as_ref()?;
        let host = self.case.host.as_ref().ok()?;
        self.proves_off(proof, host).then_some(proof)
    }

    /// Whether the proof is for this host and later than our key on it.
    pub(super) fn proves_off(&self, proof: &PowerOffProof, host: &HostSnapshot) -> bool {
        let is_same = *proof.host() == host.name && proof.uid() == host.uid;
        is_same
            && self
                .key_request(host)
                .is_some_and(|key| proof.covers_annotation(&key))
    }

    /// Our key on this host, in the form that the power controller uses.
    fn key_request(&self, host: &HostSnapshot) -> Option<HostRebootAnnotation> {
        let name = self.case.key.annotation_name();
        let is_ours = self.case.key.is_on_host(host);
        let mut requests = reboot_annotations(host).into_iter();
        requests.find(|request| is_ours && request.name == name)
    }

    /// Fresh reads that are young enough to rest a write on.
    pub(super) fn recent_reads(&self) -> Option<&'a FreshReads> {
        let fresh = self.memory.fresh.as_ref()?;
        (self.now.mono < Self::reads_valid_until(fresh)).then_some(fresh)
    }

    /// When reads become too old to rest a write on.
    pub(super) fn reads_valid_until(fresh: &FreshReads) -> Duration {
        fresh.asked_at + RemediationConfig::RELEASE_WITHIN
    }

    /// Requests reads that are young enough to rest a write on.
    pub(super) fn observe_fresh(&self) -> RemediationObserve {
        let newer_than = self
            .now
            .mono
            .saturating_sub(RemediationConfig::RELEASE_WITHIN);
        let newer_than = match &self.memory.fresh {
            // Reads that were just found too old or outdated must not be accepted again.
            Some(fresh) => newer_than.max(fresh.asked_at + Duration::from_nanos(1)),
            None => newer_than,
        };
        RemediationObserve::Fresh { newer_than }
    }

    pub(super) fn stamp_step(&self, step: RemediationStep) -> StepStamp {
        let at = crate::time::truncate_to_micros(self.now.wall);
        StepStamp { step, at }
    }

    /// Wall-clock time of a monotonic moment in the past.
    pub(super) fn wall_time_at(&self, mono: Duration) -> jiff::Timestamp {
        let ago = self.now.mono.saturating_sub(mono);
        let ago = jiff::SignedDuration::try_from(ago).unwrap_or(jiff::SignedDuration::MAX);
        let at = self.now.wall.checked_sub(ago).unwrap_or(self.now.wall);
        crate::time::truncate_to_micros(at)
    }

    /// Wall-clock time of a monotonic moment in the future, in whole seconds: two reads of the two
    /// clocks differ by less, so the message stays the same.
    pub(super) fn format_clock_at(&self, mono: Duration) -> String {
        let at = self.now.wall_after(mono.saturating_sub(self.now.mono));
        let half = jiff::SignedDuration::from_millis(500);
        let at = at.checked_add(half).unwrap_or(at);
        at.strftime("%H:%M:%SZ").to_string()
    }

    /// The host's record of this remediation, unless it has ended.
    pub(super) fn open_record(&self) -> Option<&'a RemediationRecord> {
        let record = self.case.record.as_ref();
        record.filter(|record| record.ended_at().is_none())
    }

    /// Reports at once, as a Warning, why the remediation cannot go on.
    pub(super) fn refuse_with_warning(
        (reason, message): (RemediationReason, String),
    ) -> RemediationDecision {
        decision_with_cause(reason, message).with_event(EventSeverity::Warning)
    }

    /// Waits for the cluster of the Node. That it has not been read yet is no cause for a Warning.
    pub(super) fn wait_for_cluster(problem: RemediationProblem) -> RemediationDecision {
        match problem {
            (RemediationReason::TakenUp, text) => {
                decision_with_cause(RemediationReason::TakenUp, text)
            }
            problem => Self::refuse_with_warning(problem),
        }
    }

    /// Why nothing may be begun or released.
    pub(super) fn problem_decision(&self) -> Option<RemediationDecision> {
        let trouble = self.case.problem.as_ref();
        let trouble = trouble.or(self.case.cluster.problem.as_ref())?.clone();
        Some(Self::refuse_with_warning(trouble))
    }

    /// Since when this process has seen this reason without interruption; now if the reason is new.
    pub(super) fn reason_since(&self, reason: RemediationReason) -> Duration {
        let since = self.memory.reason_since.filter(|(same, _)| *same == reason);
        since.map_or(self.now.mono, |(_, since)| since)
    }

    /// Requests heartbeats: from the key on, and again once the host was read off.
    pub(super) fn observe_heartbeat(&self, decision: RemediationDecision) -> RemediationDecision {
        let Some(node) = &self.case.node else {
            return decision;
        };
        let off_since = self.off_since().unwrap_or_default();
        let newer_than = match &self.memory.heartbeats {
            None => off_since,
            Some(beats) if beats.newest_heartbeat().node_uid.as_ref() != Some(&node.uid) => {
                off_since.max(beats.last_asked_at() + Duration::from_nanos(1))
            }
            Some(beats) if beats.last_asked_at() < off_since => off_since,
            Some(_) => return decision,
        };
        let node = node.name.clone();
        decision.with_observe(RemediationObserve::Heartbeat { node, newer_than })
    }

    /// Nothing is to be done now, for the given reason.
    pub(super) fn not_needed(text: impl Into<String>) -> RemediationDecision {
        decision_with_cause(RemediationReason::NotNeeded, text)
    }
}
