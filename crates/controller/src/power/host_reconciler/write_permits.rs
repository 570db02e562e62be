//! Decides when a write of a host may be sent: see [`super::super::write_limiter`].

use dogwatch_core::power::StatusWrite;
use futures::FutureExt as _;

use super::super::write_limiter::{WritePermit, is_urgent_write};
use super::HostReconciler;
use super::jobs::HostJobResult;

/// Where a write's permit comes from.
pub(super) enum WritePermitSource {
    /// The permit of a reporting write.
    Acquired(WritePermit),
    /// The job waits for an urgent permit.
    Urgent,
    /// The job waits among hosts whose last write failed.
    AfterFailure,
}

/// The permit for a reporting write.
#[derive(Default)]
pub(super) enum ReportingPermitState {
    /// No reporting write is wanted.
    #[default]
    Nothing,
    Awaited,
    /// Released if the write is no longer wanted.
    Acquired(WritePermit),
}

impl HostReconciler {
    /// Whether work waits for this write.
    pub(super) fn is_urgent_status_write(&self, write: &StatusWrite) -> bool {
        is_urgent_write(&self.entry.lock_state().seen.host.status, &write.status)
    }

    /// `None`: a reporting write, which is decided anew once it has its permit. A process that is
    /// stopping decides nothing anew, so its writes are urgent.
    pub(super) fn choose_permit_source(&mut self, presses: bool) -> Option<WritePermitSource> {
        if self.writes.has_failed() {
            return Some(WritePermitSource::AfterFailure);
        }
        if presses || self.is_finishing {
            return Some(WritePermitSource::Urgent);
        }
        match std::mem::take(&mut self.reporting_permit) {
            ReportingPermitState::Acquired(turn) => Some(WritePermitSource::Acquired(turn)),
            ReportingPermitState::Nothing => self
                .request_reporting_permit()
                .map(WritePermitSource::Acquired),
            ReportingPermitState::Awaited => {
                self.reporting_permit = ReportingPermitState::Awaited;
                None
            }
        }
    }

    /// Releases the permit if the reporting write is no longer wanted, or is done.
    pub(super) fn release_unused_permit(&mut self) {
        if matches!(self.reporting_permit, ReportingPermitState::Acquired(_)) {
            self.reporting_permit = ReportingPermitState::Nothing;
        }
    }

    fn request_reporting_permit(&mut self) -> Option<WritePermit> {
        let turns = self.services.write_limiter.clone();
        let mut turn = async move { turns.acquire_reporting().await }.boxed();
        // Usually a permit is free.
        if let Some(turn) = (&mut turn).now_or_never() {
            return Some(turn);
        }
        self.reporting_permit = ReportingPermitState::Awaited;
        self.jobs.push(turn.map(HostJobResult::Turn).boxed());
        None
    }
}
