//! The deadline of one driver call, for all its requests.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{BmcFault, FaultClass};

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

    pub(super) fn time_left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Waits for the future until the deadline. The deadline is checked first: if this process was
    /// stopped for a while, a command that waited for its connection is not sent when the process
    /// goes on, because another process may be the leader by then.
    ///
    /// # Errors
    /// [`FaultClass::TimedOut`], for a request that had not begun.
    pub(super) async fn bound_by_deadline<T>(
        self,
        wait: impl Future<Output = T>,
    ) -> Result<T, BmcFault> {
        let mut wait = pin!(wait);
        let in_time = poll_fn(|cx| {
            if self.time_left().is_zero() {
                return Poll::Ready(Err(Self::exceeded_fault()));
            }
            wait.as_mut().poll(cx).map(Ok)
        });
        let waited = timeout_at(self.at, in_time).await;
        waited.unwrap_or_else(|_| Err(Self::exceeded_fault()))
    }

    /// The fault of a request that had not begun by the deadline.
    pub(super) fn exceeded_fault() -> BmcFault {
        BmcFault::without_effect(FaultClass::TimedOut, "no answer before the deadline")
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
            let answer = deadline.bound_by_deadline(command).await;
            assert_eq!(
                (has_begun.get(), answer.is_ok()),
                (begins, begins),
                "{stopped_for} ms"
            );
        }
    }
}
