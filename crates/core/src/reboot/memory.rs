//! What a process remembers of its own writes.
//!
//! The moments that safety depends on: an adoption is remembered **before** it is sent (its answer
//! may be lost, and then the record looks like our own), a permit to run the command is given only
//! by the **answer** to the patch that wrote it, and a patch without an answer is one that may still
//! arrive for as long as the Node stands at the version that it was sent for.

use std::time::Duration;

use jiff::Timestamp;

use super::action::{NodePatch, RecordChange};
use super::reason;
use super::record::{Phase, Record};
use super::seen::{CommandSeen, Permit, PhaseSeen, RunSeen};
use crate::Now;

/// What the policy says to all nodes that it governs at once, and takes back at once.
const REFUSALS: [&str; 5] = [
    reason::PAUSED,
    reason::OUTSIDE_WINDOW,
    reason::WINDOW_TOO_SHORT,
    reason::POLICY_INVALID,
    reason::POLICIES_UNREADABLE,
];

/// What holds a reboot back by the calendar or by a person's word, and is nothing to mend.
const SCHEDULED: [&str; 4] = [
    reason::PAUSED,
    reason::OUTSIDE_WINDOW,
    reason::WINDOW_TOO_SHORT,
    reason::TOO_SOON,
];

/// Whether a node that waits for this reason waits for a window, the end of a pause, or `minInterval`.
pub fn is_scheduled(reason: &str) -> bool {
    SCHEDULED.contains(&reason)
}

/// How long a wait was held back by the policy's windows, pause or `minInterval`: that time is no wait for
/// a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldBack {
    since: Option<Duration>,
    before: Duration,
}

impl HeldBack {
    /// A wait that had lasted so long when it was seen first: nobody knows how much of it was held back.
    pub fn unseen(before: Duration) -> Self {
        Self {
            since: None,
            before,
        }
    }

    /// This was decided, for this reason.
    pub fn decided(&mut self, reason: &str, now: Now) {
        match (is_scheduled(reason), self.since) {
            (true, None) => self.since = Some(now.mono),
            (false, Some(since)) => {
                self.before += now.mono.saturating_sub(since);
                self.since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Since when the node waits for its turn, moved on by what was held back; `None` while it is held back.
    pub fn waits_since(&self, since: Timestamp) -> Option<Timestamp> {
        let moved = since.checked_add(self.before).unwrap_or(since);
        self.since.is_none().then_some(moved)
    }
}

impl RunSeen {
    /// This patch is about to be sent while the Node shows `standing`.
    pub fn sending(&mut self, standing: Option<&Record>, patch: &NodePatch) {
        self.unanswered = Some(patch.resource_version.clone());
        let RecordChange::Set(record) = &patch.record else {
            return;
        };
        let foreign = standing.is_some_and(|standing| standing.run != self.id);
        if foreign && record.phase == Phase::Rebooting {
            self.adopted_attempt = Some(record.attempts);
        }
    }

    /// This patch was answered with success, at `now`.
    pub fn answered(&mut self, patch: &NodePatch, now: Now) {
        self.unanswered = None;
        let RecordChange::Set(record) = &patch.record else {
            return;
        };
        // A phase that another one has followed goes on; only a new one is timed from its answer.
        let goes_on = record.began.values().any(|began| *began > record.since);
        let before = if goes_on {
            now.since(record.since)
        } else {
            Duration::ZERO
        };
        self.phase_began(record, before, now);
        if record.phase == Phase::Rebooting && self.adopted_attempt != Some(record.attempts) {
            self.permit = Some(Permit {
                attempt: record.attempts,
                answered: now.mono,
            });
        }
    }

    /// The Node was seen with this record, at `now`.
    pub fn saw(&mut self, record: Option<&Record>, now: Now) {
        self.owned = match record {
            Some(record) if record.run == self.id => self.owned.or(Some(now.mono)),
            Some(_) => self.owned,
            None => None,
        };
        match record {
            // Whoever takes a reboot over cannot know what the clocks did since its command: it waits the
            // whole timeout by its own, or a clock that was put forward would bring the next attempt early.
            Some(record) if record.phase == Phase::Rebooting => {
                self.phase_began(record, Duration::ZERO, now);
            }
            Some(record) => self.phase_began(record, now.since(record.since), now),
            None => self.phase = None,
        }
        if record.is_none_or(|record| record.phase != Phase::Rebooting) {
            self.adopted_attempt = None;
            self.permit = None;
            // The attempts of the next reboot are counted from one again.
            self.command = CommandSeen::None;
        }
    }

    /// This was decided, for this reason.
    pub fn decided(&mut self, reason: &str, now: Now) {
        let refused = REFUSALS.contains(&reason);
        if refused {
            self.leave_since = None;
        } else if self.refused {
            self.leave_since = Some(now.mono);
        }
        self.refused = refused;
        self.held_back.decided(reason, now);
    }

    fn phase_began(&mut self, record: &Record, before: Duration, now: Now) {
        if self.phase.is_none_or(|phase| phase.since != record.since) {
            self.phase = Some(PhaseSeen {
                since: record.since,
                before,
                seen: now.mono,
            });
            self.held_back = HeldBack::unseen(before);
        }
    }
}
