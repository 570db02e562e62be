//! The deadline of one call of the driver, however many requests it takes.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
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

    /// Waits for this, and no longer. The deadline goes first: where this process was stopped for a while, a
    /// command that waited for its connection does not leave when it goes on, for another process may lead by
    /// then.
    ///
    /// # Errors
    /// [`Class::TimedOut`], for what had not begun.
    pub(super) async fn bound<T>(self, wait: impl Future<Output = T>) -> Result<T, Fault> {
        let mut wait = pin!(wait);
        let in_time = poll_fn(|cx| {
            if self.left().is_zero() {
                return Poll::Ready(Err(Self::passed()));
            }
            wait.as_mut().poll(cx).map(Ok)
        });
        let waited = timeout_at(self.at, in_time).await;
        waited.unwrap_or_else(|_| Err(Self::passed()))
    }

    /// What is said once it has passed, of something that had not begun.
    pub(super) fn passed() -> Fault {
        Fault::harmless(Class::TimedOut, "no answer within our deadline")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_could_begin_only_after_the_deadline_does_not() {
        for (stopped_for, begins) in [(9_999, true), (10_000, false), (60_000, false)] {
            let deadline = Deadline::after(Duration::from_secs(10));
            let has_begun = std::cell::Cell::new(false);
            let command = async {
                // The whole process stands still.
                tokio::time::advance(Duration::from_millis(stopped_for)).await;
                has_begun.set(true);
            };
            let answer = deadline.bound(command).await;
            assert_eq!(
                (has_begun.get(), answer.is_ok()),
                (begins, begins),
                "{stopped_for} ms"
            );
        }
    }
}
