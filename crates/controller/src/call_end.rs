//! How a call to the API server ended, for the loop.

use dogwatch_k8s::{ApiErrorKind, Error};
use dogwatch_runtime::reconcile::CallEnd;

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
