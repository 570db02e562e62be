//! The leader's Lease as it is observed, and the writes to it.

use std::time::Duration;

use jiff::Timestamp;

use crate::Now;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderLease {
    /// `metadata.uid`: a Lease of the same name with another UID is another Lease.
    pub uid: String,
    /// The precondition of every write.
    pub resource_version: String,
    pub holder: Option<String>,
    /// `renewTime`, by the writer's clock. Only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// `leaseTransitions`: how often the Lease changed hands.
    pub transitions: u32,
    /// Its last holder stopped acting and then released it. Written as client-go does: no holder,
    /// and a length of one second.
    pub released: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ObservedLeaderLease {
    #[default]
    NotYet,
    Missing,
    There(LeaderLease),
}

/// The API server refuses each write unless the Lease is still as it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaderLeaseWrite {
    /// Creates the Lease, with no holder.
    Create,
    Take {
        lease: LeaderLease,
        /// The new `renewTime` and `acquireTime`.
        renewed: Timestamp,
    },
    Renew {
        lease: LeaderLease,
        /// The new `renewTime`, later than any before: nobody would notice a write that changes
        /// nothing.
        renewed: Timestamp,
    },
    Release {
        lease: LeaderLease,
    },
}

impl LeaderLeaseWrite {
    /// The Lease that the write was decided on.
    pub fn decided_on(&self) -> Option<&LeaderLease> {
        match self {
            LeaderLeaseWrite::Create => None,
            LeaderLeaseWrite::Take { lease, .. }
            | LeaderLeaseWrite::Renew { lease, .. }
            | LeaderLeaseWrite::Release { lease } => Some(lease),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElectionStep {
    Write(LeaderLeaseWrite),
    Read,
    /// Do nothing before this monotonic moment, unless a change is observed.
    Wait {
        until: Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderTerm {
    /// Counts this process' terms from 1.
    pub number: u64,
    /// When the term ends unless it is renewed, by **both** clocks: the monotonic clock stops while
    /// a machine is suspended, the wall clock does not.
    pub until: Now,
}

impl LeaderTerm {
    pub fn is_valid_at(&self, now: Now) -> bool {
        now.mono < self.until.mono && now.wall < self.until.wall
    }
}
