//! How a call to the API server ended, for the loop.

use std::fmt;

use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::power::PowerReason;
use dogwatch_k8s::{ApiErrorKind, Error, StatusWriteError};
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

/// A status of which a field was dropped would be written again at once: it is an error.
pub(crate) fn status_end_of<T>(answer: Result<T, StatusWriteError>) -> CallEnd<T> {
    match answer {
        Ok(answer) => CallEnd::Done(answer),
        Err(StatusWriteError::Api(error)) => call_end_of(Err(error)),
        Err(error @ StatusWriteError::Pruned(_)) => CallEnd::Failed(error.to_string()),
    }
}

/// The Event about a status of which a field was dropped.
pub(crate) fn pruned_status_event<T>(
    answer: &Result<T, StatusWriteError>,
) -> Option<DecisionEvent> {
    match answer {
        Err(error @ StatusWriteError::Pruned(_)) => Some(DecisionEvent {
            severity: EventSeverity::Warning,
            reason: PowerReason::CRDDropsStatus.as_str(),
            message: error.to_string(),
        }),
        Ok(_) | Err(StatusWriteError::Api(_)) => None,
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
