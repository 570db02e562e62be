//! One process of the remediator: the objects as its watches show them, and what it has read for
//! each remediation.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::remediation::{
    ConcurrentRemediations, FreshReads, HeartbeatHistory, NodeHeartbeat, Remediation,
    RemediationConfig, RemediationDecision, RemediationMemory, RemediationObserve,
    RemediationSubject, decide, discover_remediations,
};
use jiff::Timestamp;

use super::objects::ClusterObjects;
use super::power::PowerViews;
use super::state::PowerStage;

/// Longer than fresh reads may be old, and than a silent kubelet may skip a renewal.
pub const TICK: Duration = Duration::from_secs(30);
/// Older than this nothing is told apart.
pub const OLDEST: Duration = TICK.saturating_mul(2);

/// The one moment of every state: a tick makes all that is remembered older instead.
pub fn state_time() -> Now {
    Now {
        wall: state_wall(),
        mono: Duration::from_hours(100),
    }
}

/// Longer ago than every pause: a tick ends each of them.
pub fn long_ago() -> Duration {
    state_time().mono - Duration::from_hours(1)
}

pub fn state_wall() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time of this century")
}

#[derive(Debug, Clone, PartialEq)]
pub struct RemediatorView {
    pub seen: ClusterObjects,
    pub memories: BTreeMap<RemediationSubject, RemediationMemory>,
}

#[derive(Debug)]
pub struct DecidedRemediation {
    pub remediation: Remediation,
    pub decision: RemediationDecision,
}

impl RemediatorView {
    pub fn new(seen: ClusterObjects) -> Self {
        let memories = BTreeMap::new();
        Self { seen, memories }
    }

    /// One pass over all remediations, as the live loop makes it
    /// (`crates/controller/src/remediation/remediator.rs`).
    pub fn decide_all(&self, views: &PowerViews, stage: PowerStage) -> Vec<DecidedRemediation> {
        let found = discover_remediations(&self.seen.snapshot());
        let mut concurrent = ConcurrentRemediations::from_remediations(&found, |_| true);
        let config = RemediationConfig::default();
        let mut decided = Vec::new();
        for remediation in found {
            let known = self.memories.get(&remediation.subject);
            let memory = RemediationMemory {
                power: Some(views.observed(stage)),
                ..known.cloned().unwrap_or_default()
            };
            let decision = decide(&remediation, &memory, &concurrent, &config, state_time());
            concurrent.admit_decided(&remediation, &decision, true);
            decided.push(DecidedRemediation {
                remediation,
                decision,
            });
        }
        decided
    }

    pub fn answer(
        &mut self,
        remediation: &Remediation,
        look: &RemediationObserve,
        fresh: &FreshReads,
    ) {
        let memory = self
            .memories
            .entry(remediation.subject.clone())
            .or_default();
        let (mono, beat) = (state_time().mono, fresh.heartbeat.clone());
        memory.record_heartbeat(mono, mono, beat);
        match look {
            RemediationObserve::Heartbeat { .. } | RemediationObserve::Leftovers { .. } => {}
            RemediationObserve::Fresh { .. } => memory.fresh = Some(fresh.clone()),
        }
    }

    /// Drops what is remembered of remediations that are over, and records the decisions about the
    /// others, as the live loop does.
    pub fn record_decisions(&mut self, views: &PowerViews, stage: PowerStage) {
        let decided = self.decide_all(views, stage);
        let lasts = |subject: &RemediationSubject| {
            let mut subjects = decided.iter().map(|it| &it.remediation.subject);
            subjects.any(|it| it == subject)
        };
        self.memories.retain(|subject, _| lasts(subject));
        for DecidedRemediation {
            remediation,
            decision,
        } in decided
        {
            let memory = self.memories.entry(remediation.subject.clone());
            let memory = memory.or_default();
            memory.record_decision(&remediation, &decision, state_time().mono);
            // It is for the Warning about slow progress alone.
            memory.reason_since = None;
        }
    }
}

/// Fresh reads are too old after a tick. `beats`: the kubelet renewed its Lease meanwhile.
pub fn age_memory(memory: &mut RemediationMemory, beats: bool) {
    memory.fresh = None;
    memory.host_without_key_since = memory.host_without_key_since.map(|_| long_ago());
    let Some(history) = &memory.heartbeats else {
        return;
    };
    let oldest = state_time().mono - OLDEST;
    let older = |at: Duration| at.saturating_sub(TICK).max(oldest);
    let newest = history.newest_heartbeat();
    let mut kept = newest.clone();
    if beats {
        kept.renewed = Some(earlier_beat());
        kept.posted = kept.renewed;
    }
    let first = older(history.first_asked_at());
    let mut aged = match history.last_moved_at().map(older) {
        Some(moved) => {
            let before = NodeHeartbeat {
                renewed: None,
                ..kept.clone()
            };
            HeartbeatHistory::new(first, first, before).record_heartbeat(moved, moved, kept.clone())
        }
        None => HeartbeatHistory::new(first, first, kept.clone()),
    };
    let last = older(history.last_asked_at());
    aged = aged.record_heartbeat(last, last, kept);
    memory.heartbeats = Some(aged);
}

/// The renewal that the API server shows now; every earlier one is as good as any other.
pub fn newest_beat() -> Timestamp {
    state_wall()
}

fn earlier_beat() -> Timestamp {
    state_wall() - TICK
}
