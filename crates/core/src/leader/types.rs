//! What is seen of the leader's Lease, and what is written to it.

use std::time::Duration;

use jiff::Timestamp;

use crate::Now;

/// The Lease as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderLease {
    /// Its UID: another Lease of the same name is another Lease.
    pub uid: String,
    /// What every write carries.
    pub resource_version: String,
    /// Who leads, or led.
    pub holder: Option<String>,
    /// `renewTime`: its writer's clock. Only a change of it means anything.
    pub renewed: Option<Timestamp>,
    /// `leaseTransitions`: how often it changed hands.
    pub transitions: u32,
    /// Its last holder gave it back, having stopped to act before. Written as client-go does: no
    /// holder, and a length of one second.
    pub released: bool,
}

/// What is known of the Lease.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sight {
    /// It was not looked at yet.
    #[default]
    NotYet,
    /// There is none.
    Missing,
    /// It is there.
    There(LeaderLease),
}

/// What to write. Each is refused by the API server unless the Lease is as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Make it, with no holder.
    Create,
    /// Take it.
    Take {
        /// As it was seen.
        lease: LeaderLease,
        /// The new `renewTime` and `acquireTime`.
        renewed: Timestamp,
    },
    /// Go on holding it.
    Renew {
        /// As it was seen.
        lease: LeaderLease,
        /// The new `renewTime`, later than any before: a write that changes nothing would not be
        /// seen by anybody.
        renewed: Timestamp,
    },
    /// Give it back.
    Release {
        /// As it was seen.
        lease: LeaderLease,
    },
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Send this.
    Write(Write),
    /// Read the Lease.
    Read,
    /// Nothing before this monotonic moment, unless something is seen.
    Wait {
        /// When.
        until: Duration,
    },
}

/// One time of leading, without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Which: this process' first, second, …
    pub number: u64,
    /// When it ends unless it is renewed, by **both** clocks: the monotonic one stands still while
    /// a machine is suspended, the other one does not.
    pub until: Now,
}

impl Term {
    /// Whether it lasts at `now`.
    pub fn lasts(&self, now: Now) -> bool {
        now.mono < self.until.mono && now.wall < self.until.wall
    }
}
