//! The process' time: one origin for everything that waits.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time, and sleeps by the same origin. Cheap to clone.
///
/// The monotonic part is tokio's, so that paused time pauses it; the wall-clock part is whatever it
/// was made with, so that a test can skew it.
#[derive(Clone)]
pub struct Clock {
    origin: Instant,
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self::with_wall(Timestamp::now)
    }

    /// Tokio's monotonic clock beside this wall clock.
    pub fn with_wall(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            origin: Instant::now(),
            wall: Arc::new(wall),
        }
    }

    /// What time it is, twice.
    pub fn now(&self) -> Now {
        Now {
            wall: (self.wall)(),
            mono: self.origin.elapsed(),
        }
    }

    /// Sleeps until this monotonic moment.
    pub async fn sleep_until(&self, mono: Duration) {
        tokio::time::sleep_until(self.origin + mono).await;
    }
}
