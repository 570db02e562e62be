//! A loop's heartbeat: lets `/healthz` notice that the loop is stuck.
//!
//! **For:** the loop reports that it works ([`LoopHeartbeat::mark_working`]) or until when it
//! sleeps ([`LoopHeartbeat::mark_sleeping`]); [`LoopHeartbeat::check_progress`] checks whether that
//! still holds.
//! **May touch:** tokio's monotonic clock, which tests can pause.
//! **Promises:** a loop that sleeps on purpose is never called stuck, however long it sleeps. A
//! loop that does not end its work, or does not wake at the time that it gave, always is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::mutex::lock_ignoring_poison;
use dogwatch_core::duration;
use tokio::time::Instant;

/// How long one piece of work may take, and how late a wake-up may be. Kubernetes calls end after
/// half a minute at the latest, and one pass makes a few of them.
pub const STUCK_AFTER: Duration = Duration::from_mins(5);

/// The heartbeat of one loop. Clones share it.
#[derive(Debug, Clone)]
pub struct LoopHeartbeat(Arc<Mutex<LoopActivity>>);

#[derive(Debug, Clone, Copy)]
enum LoopActivity {
    Working { on: &'static str, since: Instant },
    Sleeping { until: Option<Instant> },
}

/// Why the loop counts as stuck.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StuckLoop {
    /// The work does not end.
    #[error("the main loop hangs: it has been {on} for {}", duration::format_duration(*.since))]
    Working {
        /// Names the work.
        on: &'static str,
        /// Rounded down to whole seconds.
        since: Duration,
    },
    /// The loop did not wake in time.
    #[error("the main loop hangs: it should have continued {} ago", duration::format_duration(*.0))]
    Overslept(Duration),
}

impl Default for LoopHeartbeat {
    fn default() -> Self {
        Self::new()
    }
}

impl LoopHeartbeat {
    /// Counts as working from now: a loop that never starts is stuck as well.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(LoopActivity::Working {
            on: "starting",
            since: Instant::now(),
        })))
    }

    pub fn mark_working(&self, on: &'static str) {
        self.set_activity(LoopActivity::Working {
            on,
            since: Instant::now(),
        });
    }

    /// The loop sleeps until a change, and for `at_most` at the longest; `None` if it waits only
    /// for a change.
    pub fn mark_sleeping(&self, at_most: Option<Duration>) {
        // A sleep beyond the clock's range has no limit.
        let until = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        self.set_activity(LoopActivity::Sleeping { until });
    }

    pub fn check_progress(&self) -> Result<(), StuckLoop> {
        let beat = *lock_ignoring_poison(&self.0);
        let now = Instant::now();
        match beat {
            LoopActivity::Working { on, since } => {
                let since = whole_seconds(now - since);
                if since > STUCK_AFTER {
                    return Err(StuckLoop::Working { on, since });
                }
            }
            LoopActivity::Sleeping { until: Some(until) } => {
                let late = whole_seconds(now.saturating_duration_since(until));
                if late > STUCK_AFTER {
                    return Err(StuckLoop::Overslept(late));
                }
            }
            LoopActivity::Sleeping { until: None } => {}
        }
        Ok(())
    }

    fn set_activity(&self, beat: LoopActivity) {
        *lock_ignoring_poison(&self.0) = beat;
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
        let heart = LoopHeartbeat::new();
        heart.mark_working("writing the status");
        pass(STUCK_AFTER).await;
        assert_eq!(heart.check_progress(), Ok(()));
        pass(Duration::from_secs(1)).await;
        let stuck = heart.check_progress().unwrap_err().to_string();
        assert!(stuck.contains("writing the status for 5m1s"), "{stuck}");
        heart.mark_working("writing the status");
        assert_eq!(heart.check_progress(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_never_began_is_stuck() {
        let heart = LoopHeartbeat::new();
        pass(STUCK_AFTER + Duration::from_secs(1)).await;
        assert!(heart.check_progress().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stated_wait_is_fine_until_it_is_overslept() {
        let heart = LoopHeartbeat::new();
        let night = Duration::from_hours(8);
        heart.mark_sleeping(Some(night));
        pass(night + STUCK_AFTER).await;
        assert_eq!(heart.check_progress(), Ok(()));
        pass(Duration::from_secs(1)).await;
        assert!(matches!(
            heart.check_progress(),
            Err(StuckLoop::Overslept(_))
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_without_a_deadline_is_fine_for_ever() {
        let heart = LoopHeartbeat::new();
        for at_most in [None, Some(Duration::MAX)] {
            heart.mark_sleeping(at_most);
            pass(Duration::from_hours(1000)).await;
            assert_eq!(heart.check_progress(), Ok(()));
        }
    }
}
