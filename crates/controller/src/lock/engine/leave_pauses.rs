//! How fast the steps of a leave follow each other.

use dogwatch_core::backoff::RetryBackoff;
use dogwatch_core::lock::HolderId;
use tracing::warn;

use super::lock_state::LOCK_RETRY_PAUSES;

/// More steps mean that somebody else changes the same Leases, such as another unlock of the host
/// or a request of it, or that something refuses the writes with 409.
const USUAL_STEPS: u32 = 8;

#[derive(Default)]
pub(super) struct LeavePauses {
    steps: u32,
    backoff: RetryBackoff,
}

impl LeavePauses {
    /// Whether a step was made: the leaving party had something to remove.
    pub(super) fn has_made_steps(&self) -> bool {
        self.steps > 0
    }

    /// `lost`: why the step was not written.
    pub(super) async fn pause_after_step(&mut self, holder: &HolderId, lost: Option<String>) {
        self.steps = self.steps.saturating_add(1);
        if self.steps <= USUAL_STEPS {
            return;
        }
        if let Some(error) = lost {
            warn!(error, %holder, "a lock is not released yet; retrying");
        }
        self.pause_after_error().await;
    }

    pub(super) async fn pause_after_error(&mut self) {
        tokio::time::sleep(self.backoff.next_pause(LOCK_RETRY_PAUSES)).await;
    }
}
