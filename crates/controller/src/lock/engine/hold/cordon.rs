//! The cordon of a host's Node.

use dogwatch_core::lock::api_lock::{CordonInFlight, NodeWrite, PolicyDenial};
use dogwatch_core::reboot::RebootReason;
use dogwatch_k8s::lock::api_lock;
use dogwatch_k8s::{ApiErrorKind, Error};

use super::super::lock_state::LOCK_RETRY_PAUSES;
use super::super::request::PendingLockRequest;
use super::{HoldAttempt, HoldContinuation, HoldOutcome};

/// A cordon that was answered with 409 or 404.
pub(super) struct LostCordon {
    /// The Node's version for which it was sent.
    resource_version: String,
    error: Error,
}

impl PendingLockRequest {
    /// Sends the cordon, unless the policy forbids it by now.
    pub(super) async fn cordon_node(
        &mut self,
        hold: &mut HoldAttempt,
        write: &NodeWrite,
        needs_allowance: bool,
    ) -> Result<HoldContinuation, Error> {
        let node = hold.target.node.as_ref().expect("only a Node is cordoned");
        if needs_allowance {
            let policies = self.read_fresh_policies().await?;
            let target = self.shared.target_under_policies(&hold.target, &policies);
            let allowance = target.allowance_now(&policies, self.shared.now().wall);
            if let Some(not) = PolicyDenial::of_allowance(allowance) {
                return Ok(HoldContinuation::End(HoldOutcome::NotAllowed(not)));
            }
        }
        let sent = CordonInFlight::Version(write.resource_version.clone());
        let before = std::mem::replace(&mut self.cleanup.leftovers.suspect, sent);
        match api_lock::patch_api_node(&self.shared.setup.client, node, write).await {
            Ok(()) => self.cleanup.leftovers.suspect = CordonInFlight::No,
            Err(error)
                if matches!(
                    error.kind(),
                    ApiErrorKind::Conflict | ApiErrorKind::NotFound
                ) =>
            {
                // This cordon was not written; an earlier one for the same version still may be.
                self.cleanup.leftovers.suspect = before;
                hold.lost_cordon = Some(LostCordon {
                    resource_version: write.resource_version.clone(),
                    error,
                });
            }
            Err(error) => return Err(error),
        }
        Ok(HoldContinuation::Look)
    }

    /// A cordon lost against another write of the Node, which was read since, is sent again at once.
    /// If the Node is still the same, a webhook or the like has answered, and would do so again and
    /// again.
    pub(super) async fn pause_after_refused_cordon(
        &self,
        hold: &mut HoldAttempt,
    ) -> Option<HoldOutcome> {
        let lost = hold.lost_cordon.take()?;
        let node = hold.target.node.as_ref();
        if node.is_none_or(|node| node.seen.resource_version != lost.resource_version) {
            hold.refused_cordons.reset();
            return None;
        }
        if !self.wait.may_wait() {
            return Some(HoldOutcome::Trouble(lost.error));
        }
        let text = format!("the node cannot be cordoned: {}", lost.error.error_chain());
        self.report_waiting_reason(RebootReason::CannotLook, &text);
        tracing::warn!(error = lost.error.error_chain(), holder = %self.cleanup.leftovers.holder, "failed to cordon a node; retrying");
        tokio::time::sleep(hold.refused_cordons.next_pause(LOCK_RETRY_PAUSES)).await;
        None
    }
}
