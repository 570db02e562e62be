//! What a process remembers of its own writes.
//!
//! Safety depends on three moments. An adoption is remembered **before** it is sent, because its
//! answer may be lost and the record then looks like our own. A permit to run the command is given
//! only by the **answer** to the patch that wrote it. A patch without an answer may still arrive
//! for as long as the Node has the resourceVersion for which it was sent.

use std::time::Duration;

use jiff::Timestamp;

use super::RebootReason;
use super::action::{NodePatch, RecordChange};
use super::record::{RebootPhase, RebootRecord};
use super::snapshot::{ObservedPhase, RebootCommandState, RebootPermit, RunMemory};
use crate::Now;

/// How long the policy's windows, pause or `minInterval` have held a wait back. That time does not
/// count as waiting in line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldBackTime {
    since: Option<Duration>,
    before: Duration,
}

impl HeldBackTime {
    /// For a wait that had lasted `before` when it was first seen: how much of that was held back
    /// is unknown.
    pub fn from_prior_wait(before: Duration) -> Self {
        Self {
            since: None,
            before,
        }
    }

    pub fn record_decision(&mut self, reason: RebootReason, now: Now) {
        match (reason.held_back_by().is_scheduled(), self.since) {
            (true, None) => self.since = Some(now.mono),
            (false, Some(since)) => {
                self.before += now.mono.saturating_sub(since);
                self.since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Since when the node has waited in line: `since`, moved forward by the time held back. `None`
    /// while it is held back.
    pub fn waiting_since(&self, since: Timestamp) -> Option<Timestamp> {
        let moved = since.checked_add(self.before).unwrap_or(since);
        self.since.is_none().then_some(moved)
    }
}

impl RunMemory {
    /// Call before the patch is sent; `standing` is the record that the Node shows then.
    pub fn record_patch_sending(&mut self, standing: Option<&RebootRecord>, patch: &NodePatch) {
        self.unanswered_patch_version = Some(patch.resource_version.clone());
        let RecordChange::Set(record) = &patch.record else {
            return;
        };
        let foreign = standing.is_some_and(|standing| standing.run != self.id);
        if foreign && record.phase == RebootPhase::Rebooting {
            self.adopted_attempt = Some(record.attempts);
        }
    }

    /// Call when the patch was answered with success, at `now`.
    pub fn record_patch_answer(&mut self, patch: &NodePatch, now: Now) {
        self.unanswered_patch_version = None;
        let RecordChange::Set(record) = &patch.record else {
            return;
        };
        // A phase that was left and is continued keeps its time; only a new phase is timed from
        // this answer.
        let goes_on = record.began.values().any(|began| *began > record.since);
        let before = if goes_on {
            now.elapsed_since(record.since)
        } else {
            Duration::ZERO
        };
        self.record_phase_start(record, before, now);
        self.record_usable(record, Duration::ZERO, now);
        if record.phase == RebootPhase::Rebooting && self.adopted_attempt != Some(record.attempts) {
            self.permit = Some(RebootPermit {
                attempt: record.attempts,
                answered: now.mono,
            });
        }
    }

    /// Takes the record that the Node shows at `now`.
    pub fn observe_record(&mut self, record: Option<&RebootRecord>, now: Now) {
        self.owned_since = match record {
            Some(record) if record.run == self.id => self.owned_since.or(Some(now.mono)),
            Some(_) => self.owned_since,
            None => None,
        };
        match record {
            // A process that takes a reboot over cannot know how the clocks were set since the
            // command: it waits the whole timeout by its own clock. Otherwise a clock that was set
            // forward would bring the next attempt early.
            Some(record) if record.phase == RebootPhase::Rebooting => {
                self.record_phase_start(record, Duration::ZERO, now);
            }
            Some(record) => self.record_phase_start(record, now.elapsed_since(record.since), now),
            None => self.phase = None,
        }
        match record.and_then(|record| Some((record, record.usable?))) {
            Some((record, since)) => self.record_usable(record, now.elapsed_since(since), now),
            None => self.usable = None,
        }
        if record.is_none_or(|record| record.phase != RebootPhase::Rebooting) {
            self.adopted_attempt = None;
            self.permit = None;
            // The attempts of the next reboot are counted from one again.
            self.command = RebootCommandState::None;
        }
    }

    pub fn record_decision(&mut self, reason: RebootReason, now: Now) {
        let refused = reason.held_back_by().is_policy_refusal();
        if refused {
            self.permission_since = None;
        } else if self.refused {
            self.permission_since = Some(now.mono);
        }
        self.refused = refused;
        self.held_back.record_decision(reason, now);
    }

    fn record_phase_start(&mut self, record: &RebootRecord, before: Duration, now: Now) {
        if self.phase.is_none_or(|phase| phase.since != record.since) {
            self.phase = Some(ObservedPhase {
                since: record.since,
                before,
                seen: now.mono,
            });
            self.held_back = HeldBackTime::from_prior_wait(before);
        }
    }

    fn record_usable(&mut self, record: &RebootRecord, before: Duration, now: Now) {
        let new = record.usable.map(|since| ObservedPhase {
            since,
            before,
            seen: now.mono,
        });
        if new.map(|new| new.since) != self.usable.map(|known| known.since) {
            self.usable = new;
        }
    }
}
