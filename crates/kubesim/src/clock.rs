//! The cluster's time: everything in the embedded cluster reads the time through [`ClusterClock`].
//!
//! [`TokioClock`] follows tokio's timer, so `tokio::time::pause` pauses the whole cluster and
//! `advance` moves it. A skewed clock is the same clock with an offset.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

pub trait ClusterClock: Send + Sync {
    fn now(&self) -> Timestamp;
}

impl<T: ClusterClock + ?Sized> ClusterClock for Arc<T> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// A clock that starts at a given moment and then follows tokio's timer.
#[derive(Debug)]
pub struct TokioClock {
    epoch: Timestamp,
    start: tokio::time::Instant,
    skew_millis: AtomicI64,
}

impl TokioClock {
    /// A clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            epoch,
            start: tokio::time::Instant::now(),
            skew_millis: AtomicI64::new(0),
        }
    }

    /// Another clock with the same start that is ahead by `skew` (negative: behind).
    #[must_use]
    pub fn with_skew(&self, skew: SignedDuration) -> Self {
        let clock = Self {
            epoch: self.epoch,
            start: self.start,
            skew_millis: AtomicI64::new(0),
        };
        clock.set_skew(skew);
        clock
    }

    /// Sets the offset of the clock from the timer (negative: behind).
    pub fn set_skew(&self, skew: SignedDuration) {
        let millis = i64::try_from(skew.as_millis()).unwrap_or(i64::MAX);
        self.skew_millis.store(millis, Ordering::Relaxed);
    }
}

impl ClusterClock for TokioClock {
    fn now(&self) -> Timestamp {
        let skew = SignedDuration::from_millis(self.skew_millis.load(Ordering::Relaxed));
        let elapsed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch
            .checked_add(elapsed)
            .and_then(|time| time.checked_add(skew))
            .unwrap_or(Timestamp::MAX)
    }
}

/// A clock that stands still until the caller moves it.
#[derive(Debug)]
pub struct ManualClock(std::sync::Mutex<Timestamp>);

impl ManualClock {
    pub fn starting_at(now: Timestamp) -> Self {
        Self(std::sync::Mutex::new(now))
    }
}

impl ClusterClock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("no panic while the clock is moved")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_follows_paused_time_and_its_skew() {
        let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
        let ahead = clock.with_skew(SignedDuration::from_mins(5));
        tokio::time::advance(std::time::Duration::from_secs(90)).await;
        assert_eq!(clock.now().as_second(), 90);
        assert_eq!(ahead.now().as_second(), 390);
    }
}
