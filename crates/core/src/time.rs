//! Time, as decisions use it: passed in, never read.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How often a node that waits for a time of day reads the wall clock, which may be set meanwhile:
/// rarely, because thousands of nodes may wait.
pub(crate) const NODE_CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(5);
/// The same for a schedule: only the leader waits, and a schedule is precise to the minute.
pub(crate) const SCHEDULE_CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The current time by both clocks.
///
/// `wall` is what other machines and people read; it may jump and be wrong. `mono` counts from a
/// fixed moment of this process and never jumps; every wait that a clock change must not affect
/// uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time. Written on the cluster, compared only with times this node wrote itself.
    pub wall: Timestamp,
    /// Monotonic time since the process (or the simulation) began.
    pub mono: Duration,
}

impl Now {
    /// The monotonic moment at which the wall clock will show `wall`, if it runs evenly. A past
    /// moment gives `mono`.
    pub fn mono_time_of(self, wall: Timestamp) -> Duration {
        let ahead = wall.duration_since(self.wall);
        self.mono + Duration::try_from(ahead).unwrap_or(Duration::ZERO)
    }

    /// When to look again while something waits for `wall`: then, or after `check`, because the
    /// wall clock may be set meanwhile.
    pub fn recheck_time_of(self, wall: Timestamp, check: Duration) -> Duration {
        self.mono_time_of(wall).min(self.mono + check)
    }

    /// How long ago `wall` was; zero if it lies ahead (a clock was set back).
    pub fn elapsed_since(self, wall: Timestamp) -> Duration {
        Duration::try_from(self.wall.duration_since(wall)).unwrap_or(Duration::ZERO)
    }

    /// The wall-clock time `ahead` from now, at most [`Timestamp::MAX`].
    pub fn wall_after(self, ahead: Duration) -> Timestamp {
        let ahead = SignedDuration::try_from(ahead).unwrap_or(SignedDuration::MAX);
        self.wall.checked_add(ahead).unwrap_or(Timestamp::MAX)
    }
}

/// The precision in which times are written on the cluster: RFC 3339 with microseconds.
pub(crate) fn truncate_to_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
