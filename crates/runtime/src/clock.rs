//! The process' clock: one origin for everything that waits.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time, and sleeps by the same origin. Cheap to clone.
///
/// The monotonic part is tokio's, so that paused time pauses it. The wall-clock part is given at
/// creation, so that a test can skew it.
#[derive(Clone)]
pub struct ProcessClock {
    origin: Instant,
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl ProcessClock {
    pub fn system_clock() -> Self {
        Self::with_wall_clock(Timestamp::now)
    }

    /// Tokio's monotonic clock beside this wall clock.
    pub fn with_wall_clock(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            origin: Instant::now(),
            wall: Arc::new(wall),
        }
    }

    /// Both clocks, read together.
    pub fn now(&self) -> Now {
        Now {
            wall: (self.wall)(),
            mono: self.origin.elapsed(),
        }
    }

    /// Sleeps until this monotonic moment. A moment beyond the clock's range never comes.
    pub async fn sleep_until(&self, mono: Duration) {
        match self.origin.checked_add(mono) {
            Some(moment) => tokio::time::sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    /// Like [`Self::sleep_until`]; `None` never wakes.
    pub async fn wake_at(&self, mono: Option<Duration>) {
        self.sleep_until(mono.unwrap_or(Duration::MAX)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_moment_comes_unless_it_is_none_or_past_the_end_of_the_clock() {
        let clock = ProcessClock::system_clock();
        let year = Duration::from_hours(24 * 365);
        clock.wake_at(Some(year)).await;
        assert!(clock.now().mono >= year);
        for never in [None, Some(Duration::MAX)] {
            let waited = tokio::time::timeout(year, clock.wake_at(never)).await;
            assert!(waited.is_err(), "{never:?}");
        }
    }
}
