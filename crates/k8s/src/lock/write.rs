//! Writes to a slot: bid, leave, break.

use dogwatch_core::lock::{HolderId, LockRecord, ObservedLease};
use dogwatch_core::name::RunId;
use kube::api::{Patch, PatchParams};

use super::{LockClient, lease};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::readable_dates::ReadableApi as _;

#[derive(Debug)]
pub enum BidOutcome {
    /// The Lease is ours; the budget count and the release use this version.
    Won(Box<ObservedLease>),
    /// Another holder was first, or the Lease has changed since it was read: wait for the watch.
    Lost {
        /// The API server's text, which names the conflicting manager.
        why: String,
    },
    /// The Lease may be ours: wait for the watch, and if that shows nothing, settle it by another
    /// bid. Repeating the bid does no harm.
    Unknown(Error),
    /// The API server refuses the bid (rights, policy, validation). Nothing was written.
    Refused(Error),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaveReason {
    /// The holder has finished or given up.
    Done {
        /// Next in line, first one first.
        next: Vec<HolderId>,
    },
    /// Too many members of the group were unavailable: all bidders back off, and nobody is next in
    /// line.
    OverBudget,
}

#[derive(Debug)]
pub enum ReleaseOutcome {
    Freed(Box<ObservedLease>),
    /// The Lease has changed since it was read, or is gone: wait for the watch.
    Changed {
        /// The API server's text.
        why: String,
    },
    /// The Lease may be free: wait for the watch, and repeat the write if it still shows the same.
    Unknown(Error),
    /// The API server refuses the write. Nothing was written.
    Refused(Error),
}

impl LockClient {
    /// Bids for a free Lease, or writes a new run's record into a Lease that we hold.
    ///
    /// Never forced: the API server itself answers a second holder with 409.
    pub async fn bid_for_lease(&self, lease: &ObservedLease, record: &LockRecord) -> BidOutcome {
        if !lease.leftover {
            return self.apply_record(lease, record).await;
        }
        match self.free_lease(lease, &[], lease.yield_count).await {
            ReleaseOutcome::Freed(free) => self.apply_record(&free, record).await,
            ReleaseOutcome::Changed { why } => BidOutcome::Lost { why },
            ReleaseOutcome::Unknown(error) => BidOutcome::Unknown(error),
            ReleaseOutcome::Refused(error) => BidOutcome::Refused(error),
        }
    }

    /// Removes only our own run from the record; the `remaining` runs still need the lock.
    pub async fn remove_run(&self, lease: &ObservedLease, remaining: Vec<RunId>) -> BidOutcome {
        match &lease.record {
            Some(record) => {
                let record = LockRecord {
                    runs: remaining,
                    ..record.clone()
                };
                self.bid_for_lease(lease, &record).await
            }
            None => BidOutcome::Lost {
                why: "its record cannot be read".into(),
            },
        }
    }

    /// Frees our own Lease and names the next in line. One patch, with the Lease's UID and
    /// resourceVersion.
    pub async fn release_lease(
        &self,
        lease: &ObservedLease,
        leaving: &LeaveReason,
    ) -> ReleaseOutcome {
        match leaving {
            LeaveReason::Done { next } => self.free_lease(lease, next, 0).await,
            LeaveReason::OverBudget => {
                self.free_lease(lease, &[], lease.yield_count.saturating_add(1))
                    .await
            }
        }
    }

    /// Frees another holder's Lease, on evidence that core accepted for this version.
    pub async fn break_lock(&self, lease: &ObservedLease) -> ReleaseOutcome {
        self.free_lease(lease, &[], 0).await
    }

    async fn apply_record(&self, lease: &ObservedLease, record: &LockRecord) -> BidOutcome {
        let body = lease::apply_body(lease, &self.holder, record);
        let params = PatchParams::apply(self.holder.as_str());
        match with_timeout(
            self.leases
                .patch_readable(&lease.name, &params, &Patch::Apply(&body)),
        )
        .await
        {
            Ok(written) => match lease::lease_after_write(lease, &written) {
                Ok(seen) => BidOutcome::Won(Box::new(seen)),
                Err(error) => BidOutcome::Unknown(error),
            },
            Err(error) => match classify_write_error(error) {
                LeaseWriteFailure::Changed { why } => BidOutcome::Lost { why },
                LeaseWriteFailure::Unknown(error) => BidOutcome::Unknown(error),
                LeaseWriteFailure::Refused(error) => BidOutcome::Refused(error),
            },
        }
    }

    async fn free_lease(
        &self,
        lease: &ObservedLease,
        next: &[HolderId],
        given_back: u32,
    ) -> ReleaseOutcome {
        let body = lease::free_body(lease.into(), next, given_back);
        match with_timeout(self.leases.patch_readable(
            &lease.name,
            &self.patch_params(),
            &Patch::Merge(&body),
        ))
        .await
        {
            Ok(written) => match lease::lease_after_write(lease, &written) {
                Ok(seen) => ReleaseOutcome::Freed(Box::new(seen)),
                Err(error) => ReleaseOutcome::Unknown(error),
            },
            Err(error) => match classify_write_error(error) {
                LeaseWriteFailure::Changed { why } => ReleaseOutcome::Changed { why },
                LeaseWriteFailure::Unknown(error) => ReleaseOutcome::Unknown(error),
                LeaseWriteFailure::Refused(error) => ReleaseOutcome::Refused(error),
            },
        }
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.holder.to_string()),
            ..PatchParams::default()
        }
    }
}

/// How a conditional write failed.
enum LeaseWriteFailure {
    Changed { why: String },
    Unknown(Error),
    Refused(Error),
}

fn classify_write_error(error: Error) -> LeaseWriteFailure {
    match error.kind() {
        ApiErrorKind::Conflict
        | ApiErrorKind::NotFound
        | ApiErrorKind::AlreadyExists
        | ApiErrorKind::Gone => LeaseWriteFailure::Changed {
            why: error.error_chain(),
        },
        ApiErrorKind::Forbidden | ApiErrorKind::Refused => LeaseWriteFailure::Refused(error),
        ApiErrorKind::Throttled { .. } | ApiErrorKind::Transient => {
            LeaseWriteFailure::Unknown(error)
        }
    }
}
