//! What a process remembers of its own writes.
//!
//! The two moments that safety depends on: an adoption is remembered **before** it is sent (its
//! answer may be lost, and then the record looks like our own), a permit to run the command is
//! given only by the **answer** to the patch that wrote it.

use super::action::{NodePatch, RecordChange};
use super::record::{Phase, Record};
use super::seen::{Permit, RunSeen};
use crate::Now;

impl RunSeen {
    /// This patch is about to be sent while the Node shows `standing`.
    pub fn sending(&mut self, standing: Option<&Record>, patch: &NodePatch) {
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
        let RecordChange::Set(record) = &patch.record else {
            return;
        };
        if record.phase == Phase::Rebooting && self.adopted_attempt != Some(record.attempts) {
            self.permit = Some(Permit { attempt: record.attempts, answered: now.mono });
        }
    }

    /// The Node was seen with this record.
    pub fn saw(&mut self, record: Option<&Record>) {
        self.owned = match record {
            Some(record) => self.owned || record.run == self.id,
            None => false,
        };
        if record.is_none_or(|record| record.phase != Phase::Rebooting) {
            self.adopted_attempt = None;
            self.permit = None;
        }
    }
}
