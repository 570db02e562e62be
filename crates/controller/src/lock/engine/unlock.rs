//! Releases a host's whole lock, whichever of its requests took it.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::lock::api_lock::LeavingParty;
use dogwatch_k8s::{ApiErrorKind, Error};
use tokio::sync::oneshot;

use super::cleanup_guard::CleanupGuard;
use super::leave::{self, LeaveProgress, LockLeaveReason};
use super::leave_pauses::LeavePauses;
use super::lock_state::LockState;
use super::request::wait_for_presence;
use crate::lock::service::{LockRequester, UnlockAnswer};

/// How long a client waits while the API server does not answer. The unlock itself goes on.
const UNLOCK_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn serve_unlock(shared: Arc<LockState>, client: LockRequester) -> UnlockAnswer {
    if let Err(why) = wait_for_presence(&shared).await {
        return UnlockAnswer::Unavailable { why };
    }
    let (answer, answered) = oneshot::channel();
    // A task of its own: the unlock must finish even if the client goes away.
    tokio::spawn(run_unlock(shared, client, answer));
    answered
        .await
        .unwrap_or_else(|_| UnlockAnswer::Unavailable {
            why: "this replica is stopping; try again".into(),
        })
}

async fn run_unlock(
    shared: Arc<LockState>,
    client: LockRequester,
    answer: oneshot::Sender<UnlockAnswer>,
) {
    let mut trace = CleanupGuard::new(&shared, client);
    let mut answer = Some(answer);
    let begun = shared.now().mono;
    let is_late = || shared.now().mono >= begun + UNLOCK_ANSWER_TIMEOUT || *shared.stop.borrow();
    let mut pauses = LeavePauses::default();
    loop {
        let error = match leave::perform_leave_step(
            &shared,
            &mut trace.leftovers,
            LeavingParty::Host,
            LockLeaveReason::Done,
        )
        .await
        {
            Ok(LeaveProgress::Done) => break,
            Ok(LeaveProgress::Again { lost }) => {
                if is_late()
                    && let Some(why) = &lost
                    && let Some(answer) = answer.take()
                {
                    let why = unknown_end_text(&trace, why);
                    // The client may be gone.
                    let _ = answer.send(UnlockAnswer::Unavailable { why });
                }
                let holder = &trace.leftovers.holder;
                pauses.pause_after_step(holder, lost).await;
                continue;
            }
            Err(error) => error,
        };
        tracing::warn!(error = error.error_chain(), holder = %trace.leftovers.holder, "failed to unlock; retrying");
        if (is_permanent_error(&error) || is_late())
            && let Some(answer) = answer.take()
        {
            // The client may be gone.
            let _ = answer.send(error_answer(&trace, &error));
        }
        if answer.is_none() && !pauses.has_made_steps() {
            break;
        }
        pauses.pause_after_error().await;
    }
    trace.mark_settled();
    if let Some(answer) = answer {
        let holder = &trace.leftovers.holder;
        let why = if pauses.has_made_steps() {
            format!("{holder} has released its lock")
        } else {
            format!("{holder} held no lock")
        };
        let _ = answer.send(UnlockAnswer::Free { why });
    }
}

/// Whether a retry will fail until somebody fixes the cause.
fn is_permanent_error(error: &Error) -> bool {
    match error.kind() {
        ApiErrorKind::Forbidden | ApiErrorKind::Refused => true,
        ApiErrorKind::NotFound
        | ApiErrorKind::AlreadyExists
        | ApiErrorKind::Conflict
        | ApiErrorKind::Gone
        | ApiErrorKind::Throttled { .. }
        | ApiErrorKind::Transient => false,
    }
}

fn error_answer(trace: &CleanupGuard, error: &Error) -> UnlockAnswer {
    let (holder, error_text) = (&trace.leftovers.holder, error.error_chain());
    if is_permanent_error(error) {
        let why =
            format!("the lock of {holder} could not be released and is still held: {error_text}");
        UnlockAnswer::Failed { why }
    } else {
        let why = unknown_end_text(trace, &error_text);
        UnlockAnswer::Unavailable { why }
    }
}

fn unknown_end_text(trace: &CleanupGuard, why: &str) -> String {
    let holder = &trace.leftovers.holder;
    format!("it is not known whether {holder} still holds a lock: {why}; try again")
}
