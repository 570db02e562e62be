//! The loop's heartbeat: how `/healthz` notices that it is stuck.
//!
//! **For:** the loop says what it does ([`Heart::working`]) or until when it sleeps
//! ([`Heart::sleeping`]); anybody asks whether that still holds ([`Heart::check`]).
//! **May touch:** the monotonic clock of tokio, which tests can stop.
//! **Promises:** a loop that rests on purpose is never called stuck, however long; one that
//! neither came back from its work nor woke at the time it named itself always is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dogwatch_core::duration;
use tokio::time::Instant;

/// How long one piece of work may take, and how late a wake-up may be. Kubernetes calls end after
/// half a minute at the latest, and one pass makes a few of them.
pub const STUCK_AFTER: Duration = Duration::from_mins(5);

/// The heart of one loop. Clones are the same heart.
#[derive(Debug, Clone)]
pub struct Heart(Arc<Mutex<Beat>>);

#[derive(Debug, Clone, Copy)]
enum Beat {
    Working { on: &'static str, since: Instant },
    Sleeping { until: Option<Instant> },
}

/// Why the loop counts as stuck.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// It does not come back.
    #[error("the loop is stuck: it has been at {on} for {}", duration::format(*.since))]
    Working {
        /// What it does.
        on: &'static str,
        /// For how long, in whole seconds.
        since: Duration,
    },
    /// It does not wake up.
    #[error("the loop is stuck: it should have woken {} ago", duration::format(*.0))]
    Overslept(Duration),
}

impl Default for Heart {
    fn default() -> Self {
        Self::new()
    }
}

impl Heart {
    /// A heart that begins to beat now: a loop that never starts is stuck as well.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Beat::Working {
            on: "starting",
            since: Instant::now(),
        })))
    }

    /// The loop is at this now.
    pub fn working(&self, on: &'static str) {
        self.beat(Beat::Working {
            on,
            since: Instant::now(),
        });
    }

    /// The loop sleeps until a change, and at the latest for so long; without a limit if it has
    /// nothing to wait for.
    pub fn sleeping(&self, at_most: Option<Duration>) {
        // A sleep past the end of the clock is one without a limit.
        let until = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        self.beat(Beat::Sleeping { until });
    }

    /// Whether the loop is where it said it would be.
    pub fn check(&self) -> Result<(), Stuck> {
        let beat = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match beat {
            Beat::Working { on, since } => {
                let since = whole_seconds(now - since);
                if since > STUCK_AFTER {
                    return Err(Stuck::Working { on, since });
                }
            }
            Beat::Sleeping { until: Some(until) } => {
                let late = whole_seconds(now.saturating_duration_since(until));
                if late > STUCK_AFTER {
                    return Err(Stuck::Overslept(late));
                }
            }
            Beat::Sleeping { until: None } => {}
        }
        Ok(())
    }

    fn beat(&self, beat: Beat) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = beat;
    }
}

fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(duration: Duration) {
        tokio::time::advance(duration).await;
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_does_not_come_back_is_stuck() {
        let heart = Heart::new();
        heart.working("writing the status");
        pass(STUCK_AFTER).await;
        assert_eq!(heart.check(), Ok(()));
        pass(Duration::from_secs(1)).await;
        let stuck = heart.check().unwrap_err().to_string();
        assert!(stuck.contains("writing the status for 5m1s"), "{stuck}");
        heart.working("writing the status");
        assert_eq!(heart.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_never_began_is_stuck() {
        let heart = Heart::new();
        pass(STUCK_AFTER + Duration::from_secs(1)).await;
        assert!(heart.check().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stated_wait_is_fine_until_it_is_overslept() {
        let heart = Heart::new();
        let night = Duration::from_hours(8);
        heart.sleeping(Some(night));
        pass(night + STUCK_AFTER).await;
        assert_eq!(heart.check(), Ok(()));
        pass(Duration::from_secs(1)).await;
        assert!(matches!(heart.check(), Err(Stuck::Overslept(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_without_a_deadline_is_fine_for_ever() {
        let heart = Heart::new();
        for at_most in [None, Some(Duration::MAX)] {
            heart.sleeping(at_most);
            pass(Duration::from_hours(1000)).await;
            assert_eq!(heart.check(), Ok(()));
        }
    }
}
