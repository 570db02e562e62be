//! The deadline of one call of the driver, however many requests it takes.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{Class, Fault};

/// When the call ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
}

impl Deadline {
    pub(super) fn after(within: Duration) -> Self {
        Self {
            at: Instant::now() + within,
        }
    }

    pub(super) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Waits for this, and no longer.
    ///
    /// # Errors
    /// [`Class::TimedOut`], for what had not begun.
    pub(super) async fn bound<T>(self, wait: impl Future<Output = T>) -> Result<T, Fault> {
        let waited = timeout_at(self.at, wait).await;
        waited.map_err(|_| Self::passed())
    }

    /// What is said once it has passed, of something that had not begun.
    pub(super) fn passed() -> Fault {
        Fault::harmless(Class::TimedOut, "no answer within our deadline")
    }
}
