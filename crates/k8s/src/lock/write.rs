//! Writes to a slot: bid, leave, break.

use dogwatch_core::lock::{HolderId, LeaseSeen, LockRecord};
use dogwatch_core::name::RunId;
use kube::api::{Patch, PatchParams};

use super::{LockClient, lease};
use crate::error::{Error, Kind, ask};

/// How a bid ended.
#[derive(Debug)]
pub enum BidOutcome {
    /// It is ours; this is the version to count for and to release with.
    Won(Box<LeaseSeen>),
    /// Somebody else was first, or it changed since it was seen: look at the watch.
    Lost {
        /// The API server's words; they name the manager in the way.
        why: String,
    },
    /// It may or may not be ours: look at the watch, and settle it by another bid if that shows
    /// nothing. The same bid again does no harm.
    Unknown(Error),
    /// The API server will not have it (rights, policy, validation). Nothing was written.
    Refused(Error),
}

/// Why a holder leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// It is done with it, or gave up; these are called.
    Done {
        /// First one first.
        next: Vec<HolderId>,
    },
    /// Too many of the group were out: everybody backs off, nobody is called.
    OverBudget,
}

/// How a release or a break ended.
#[derive(Debug)]
pub enum ReleaseOutcome {
    /// It is free.
    Freed(Box<LeaseSeen>),
    /// It changed since it was seen, or is gone: look at the watch.
    Changed {
        /// The API server's words.
        why: String,
    },
    /// It may or may not be free: look at the watch, and do it again if it still shows the same.
    Unknown(Error),
    /// The API server will not have it. Nothing was written.
    Refused(Error),
}

impl LockClient {
    /// Asks for a free Lease; or writes a new run's record into one that we hold already.
    ///
    /// Never forced: a second holder is answered 409 by the API server itself.
    pub async fn bid(&self, lease: &LeaseSeen, record: &LockRecord) -> BidOutcome {
        if !lease.leftover {
            return self.apply(lease, record).await;
        }
        match self.free(lease, &[], lease.given_back).await {
            ReleaseOutcome::Freed(free) => self.apply(&free, record).await,
            ReleaseOutcome::Changed { why } => BidOutcome::Lost { why },
            ReleaseOutcome::Unknown(error) => BidOutcome::Unknown(error),
            ReleaseOutcome::Refused(error) => BidOutcome::Refused(error),
        }
    }

    /// Takes only our own run off the record; `remaining` rely on the lock still.
    pub async fn remove_run(&self, lease: &LeaseSeen, remaining: Vec<RunId>) -> BidOutcome {
        match &lease.record {
            Some(record) => {
                let record = LockRecord {
                    runs: remaining,
                    ..record.clone()
                };
                self.bid(lease, &record).await
            }
            None => BidOutcome::Lost {
                why: "its record cannot be read".into(),
            },
        }
    }

    /// Frees our own Lease, and calls the next: one patch, on the condition that it is as seen.
    pub async fn release(&self, lease: &LeaseSeen, leaving: &Leaving) -> ReleaseOutcome {
        match leaving {
            Leaving::Done { next } => self.free(lease, next, 0).await,
            Leaving::OverBudget => {
                self.free(lease, &[], lease.given_back.saturating_add(1))
                    .await
            }
        }
    }

    /// Frees somebody else's Lease, on evidence that core found sufficient for this very version.
    pub async fn break_lock(&self, lease: &LeaseSeen) -> ReleaseOutcome {
        self.free(lease, &[], 0).await
    }

    async fn apply(&self, lease: &LeaseSeen, record: &LockRecord) -> BidOutcome {
        let body = lease::apply_body(lease, &self.holder, record);
        let params = PatchParams::apply(self.holder.as_str());
        match ask(self
            .leases
            .patch(&lease.name, &params, &Patch::Apply(&body)))
        .await
        {
            Ok(written) => match lease::written(lease, &written) {
                Ok(seen) => BidOutcome::Won(Box::new(seen)),
                Err(error) => BidOutcome::Unknown(error),
            },
            Err(error) => match ending(error) {
                Ending::Changed { why } => BidOutcome::Lost { why },
                Ending::Unknown(error) => BidOutcome::Unknown(error),
                Ending::Refused(error) => BidOutcome::Refused(error),
            },
        }
    }

    async fn free(&self, lease: &LeaseSeen, next: &[HolderId], given_back: u32) -> ReleaseOutcome {
        let body = lease::free_body(lease.into(), next, given_back);
        match ask(self
            .leases
            .patch(&lease.name, &self.plain(), &Patch::Merge(&body)))
        .await
        {
            Ok(written) => match lease::written(lease, &written) {
                Ok(seen) => ReleaseOutcome::Freed(Box::new(seen)),
                Err(error) => ReleaseOutcome::Unknown(error),
            },
            Err(error) => match ending(error) {
                Ending::Changed { why } => ReleaseOutcome::Changed { why },
                Ending::Unknown(error) => ReleaseOutcome::Unknown(error),
                Ending::Refused(error) => ReleaseOutcome::Refused(error),
            },
        }
    }

    fn plain(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.holder.to_string()),
            ..PatchParams::default()
        }
    }
}

/// How a conditional write that was not answered with success ended.
enum Ending {
    Changed { why: String },
    Unknown(Error),
    Refused(Error),
}

fn ending(error: Error) -> Ending {
    match error.kind() {
        Kind::Conflict | Kind::NotFound | Kind::AlreadyExists | Kind::Gone => Ending::Changed {
            why: error.in_words(),
        },
        Kind::Forbidden | Kind::Refused => Ending::Refused(error),
        Kind::Throttled { .. } | Kind::Transient => Ending::Unknown(error),
    }
}
