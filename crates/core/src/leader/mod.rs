//! Leader election: one holder of one Lease, judged by each process' own monotonic clock.
//!
//! **For:** the controller, whose healer and status loop run in one replica at a time.
//! **May touch:** nothing; the [`LeaderElector`] takes observations and returns writes.
//! **Promises:** two processes never both lead, whatever their wall clocks say and however late
//! messages arrive, as long as no clock runs a fifth faster or slower than it should
//! ([`RENEW_DEADLINE`]). A leader that is gone is followed within [`LEASE_DURATION`] and a second.
//!
//! Works like client-go's `leaderelection` (a record that does not change for the length of the
//! Lease, by the observer's own clock, belongs to nobody), with four differences. A leader's time
//! counts from when the renewal was **sent**, not from its answer. Every write carries UID and
//! resourceVersion. A Lease that is missing, or free but not released by its holder, proves
//! nothing: a process waits as long as for a held one. And a record counts as ours only if this
//! process wrote it, not if it has our name.
//!
//! Serves S1, S6. Source: specification §3.3.

mod elector;
mod types;

pub use elector::LeaderElector;
pub use types::{ElectionStep, LeaderLease, LeaderLeaseWrite, LeaderTerm, ObservedLeaderLease};

use std::time::Duration;

/// How long a record must stay unchanged, by the observer's own clock, before another process takes
/// over. Source: specification §3.3.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How long a leader acts after it **sent** the last confirmed renewal.
///
/// The renewal cannot be on the Lease before it was sent. Another process observes it later, and
/// bids [`LEASE_DURATION`] after that. So nobody else leads within 15 s, by that process' clock,
/// after the leader began to count its 10 s: this holds as long as neither clock runs half as fast
/// again as the other. The rest is for requests that are under way at the end.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// How often a leader renews: three tries within [`RENEW_DEADLINE`].
pub const RENEW_INTERVAL: Duration = Duration::from_secs(3);

pub const CALL_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The deadline of one call; a later answer is of no use.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(3);

/// Waiters that observed the same record spread their bids over this time.
pub const BID_SPREAD: Duration = Duration::from_millis(500);

const _: () = assert!(RENEW_DEADLINE.as_secs() * 3 <= LEASE_DURATION.as_secs() * 2);
const _: () = assert!(RENEW_INTERVAL.as_secs() * 3 < RENEW_DEADLINE.as_secs());

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
