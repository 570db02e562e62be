//! Who leads: one holder of one Lease, told by everybody's own monotonic clock.
//!
//! **For:** the controller, whose healer and status loop act in one process at a time.
//! **May touch:** nothing; the [`Elector`] is told what was seen and says what to write.
//! **Promises:** two processes never both lead, whatever their wall clocks say and however late
//! messages arrive, as long as no clock runs a fifth faster or slower than it should
//! ([`ACT_WITHIN`]); a leader that is gone is followed within [`LEASE`] and a second.
//!
//! As client-go's `leaderelection` (a record that does not change for the length of the Lease, by
//! the observer's own clock, is nobody's), with four differences. A leader's time counts from when
//! the renewal was **sent**, not from its answer. Every write carries UID and resourceVersion. A
//! Lease that is missing, or free but not released by its holder, proves nothing, so it is waited
//! out like a held one. And a record is ours only if this process wrote it, not if it has our name.
//!
//! Serves S1, S6. Source: specification §3.3.

mod elector;
mod types;

pub use elector::Elector;
pub use types::{LeaderLease, Sight, Step, Term, Write};

use std::time::Duration;

/// How long a record must stay the same, seen by one's own clock, before another takes over.
/// Source: specification §3.3.
pub const LEASE: Duration = Duration::from_secs(15);

/// How long a leader acts after it **sent** the renewal that was confirmed last.
///
/// The renewal stood on the Lease at the earliest when it was sent; another one first saw it then
/// or later, and bids [`LEASE`] after that. So nobody else leads before 15 s, by its clock, after
/// the leader began to count 10 s by its own: both are right as long as one clock does not run half
/// as fast again as the other. What is left is for requests that are under way at the end.
pub const ACT_WITHIN: Duration = Duration::from_secs(10);

/// How often a leader renews: three tries before its time is over.
pub const RENEW_EVERY: Duration = Duration::from_secs(3);

/// How long after a call that failed the next one is made.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long a call may take; the answer to a later one is of no use.
pub const CALL_WITHIN: Duration = Duration::from_secs(3);

/// Waiters that saw the same record bid within this span, not all at once.
pub const SPREAD: Duration = Duration::from_millis(500);

const _: () = assert!(ACT_WITHIN.as_secs() * 3 <= LEASE.as_secs() * 2);
const _: () = assert!(RENEW_EVERY.as_secs() * 3 < ACT_WITHIN.as_secs());

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
