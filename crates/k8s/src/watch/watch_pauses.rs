//! Pauses between the tries of a watch.

use std::time::Duration;

use dogwatch_core::backoff::RetryBackoff;

use super::WATCH_RETRY_PAUSES;

/// Pauses between tries. The pause comes before the next try and not after the last, so that a
/// failure is reported at once.
pub(super) struct WatchPauses<J> {
    pub(super) backoff: RetryBackoff,
    pub(super) jitter: J,
    pub(super) due: Option<Duration>,
}

impl<J: FnMut() -> f64> WatchPauses<J> {
    pub(super) async fn wait_pause(&mut self) {
        if let Some(due) = self.due.take() {
            tokio::time::sleep(due).await;
        }
    }

    pub(super) fn reset(&mut self) {
        self.backoff.reset();
    }

    /// At least as long as the server asked for.
    pub(super) fn lengthen_pause(&mut self, at_least: Option<Duration>) {
        let half = self.backoff.next_pause(WATCH_RETRY_PAUSES) / 2;
        let pause = half + half.mul_f64((self.jitter)().clamp(0.0, 1.0));
        self.due = Some(pause.max(at_least.unwrap_or_default()));
    }

    /// As [`Self::lengthen_pause`], but without a pause the first time: a version can become too
    /// old without a failure.
    pub(super) fn lengthen_after_first(&mut self) {
        if self.backoff.has_failed() {
            self.lengthen_pause(None);
        } else {
            self.backoff.next_pause(WATCH_RETRY_PAUSES);
        }
    }
}
