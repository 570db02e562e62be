//! How a call to the API server ended, for the loop.

use std::fmt;

use dogwatch_core::decision::DecisionEvent;
use dogwatch_k8s::{ApiErrorKind, Error};
use dogwatch_runtime::reconcile::CallEnd;
use tracing::warn;

/// A precondition that fails, or an object that is gone, is no error: the key is decided anew.
pub(crate) fn call_end_of<T>(answer: Result<T, Error>) -> CallEnd<T> {
    match answer {
        Ok(answer) => CallEnd::Done(answer),
        Err(error) => match error.kind() {
            ApiErrorKind::Conflict | ApiErrorKind::NotFound => CallEnd::Changed,
            ApiErrorKind::AlreadyExists
            | ApiErrorKind::Gone
            | ApiErrorKind::Forbidden
            | ApiErrorKind::Throttled { .. }
            | ApiErrorKind::Refused
            | ApiErrorKind::Transient => CallEnd::Failed(error.error_chain()),
        },
    }
}

/// How the write of an Event about `object` ended. An error that a retry would not help is logged
/// and is an end: conditions and status say the same.
pub(crate) fn event_end_of(
    answer: Result<(), Error>,
    object: &dyn fmt::Display,
    event: &DecisionEvent,
) -> CallEnd<()> {
    match answer {
        Err(error) if error.kind() != ApiErrorKind::Transient => {
            let error = error.error_chain();
            warn!(%object, event = event.reason, error, "failed to write an Event");
            CallEnd::Done(())
        }
        answer => call_end_of(answer),
    }
}
