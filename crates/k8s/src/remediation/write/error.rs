//! Errors of a remediation's writes.

use crate::error::{ApiErrorKind, Error};

/// Why a write was not done, or cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum RemediationWriteError {
    /// Nothing was written; read the object again.
    #[error(transparent)]
    Changed(ChangedObject),
    /// The write would overwrite somebody else's value. Nothing was sent.
    #[error("somebody else has written {0}")]
    Foreign(String),
    /// The permit to release has expired. Nothing was sent.
    #[error("the proof that host {0} is off is too old to act on")]
    Expired(String),
    /// The Node is marked as deleted, and goes when others remove their finalizers.
    #[error("node {node} is being deleted, but finalizers {} keep it: their owners must remove them", .finalizers.join(", "))]
    Kept {
        node: String,
        finalizers: Vec<String>,
    },
    /// The write succeeded, but the answer lacks this: the CustomResourceDefinition drops it, or an
    /// admission webhook changed it.
    #[error(
        "the API server dropped what was written to {0}: install the newest CustomResourceDefinition"
    )]
    Dropped(String),
    #[error("the controller may not {right}: deploy/remediation gives it that right")]
    Forbidden {
        right: String,
        #[source]
        error: Error,
    },
    /// A refusal, or no answer: the write may have been done.
    #[error(transparent)]
    Api(#[from] Error),
}

/// An object that has changed since it was read, or is gone.
#[derive(Debug, thiserror::Error)]
#[error("{about} has changed since it was read")]
pub struct ChangedObject {
    pub about: String,
    /// The API server's answer: an admission webhook, too, may answer as if there were a conflict.
    #[source]
    pub answer: Option<Error>,
}

impl RemediationWriteError {
    /// Found by a read, not by an answer to the write.
    pub(in crate::remediation) fn object_changed(about: impl Into<String>) -> Self {
        RemediationWriteError::Changed(ChangedObject {
            about: about.into(),
            answer: None,
        })
    }

    /// The error and its causes in one line, for conditions and Events.
    pub fn error_chain(&self) -> String {
        crate::error::error_chain(self)
    }
}

/// A right in the form of a role's rule.
#[derive(Debug, Clone, Copy)]
pub(in crate::remediation) struct RequiredRight {
    pub(in crate::remediation) verb: &'static str,
    pub(in crate::remediation) resource: &'static str,
}

impl RequiredRight {
    pub(in crate::remediation) const fn new(verb: &'static str, resource: &'static str) -> Self {
        Self { verb, resource }
    }

    /// `about`: the object that was written.
    pub(in crate::remediation) fn classify_error(
        self,
        about: &str,
        error: Error,
    ) -> RemediationWriteError {
        match error.kind() {
            ApiErrorKind::Conflict | ApiErrorKind::NotFound => {
                RemediationWriteError::Changed(ChangedObject {
                    about: about.to_owned(),
                    answer: Some(error),
                })
            }
            ApiErrorKind::Forbidden if self.is_missing(&error) => {
                RemediationWriteError::Forbidden {
                    right: format!("{} {}", self.verb, self.resource),
                    error,
                }
            }
            ApiErrorKind::AlreadyExists
            | ApiErrorKind::Gone
            | ApiErrorKind::Forbidden
            | ApiErrorKind::Throttled { .. }
            | ApiErrorKind::Refused
            | ApiErrorKind::Transient => RemediationWriteError::Api(error),
        }
    }

    /// Admission plugins answer 403 as well; only authorization's message contains `cannot VERB
    /// resource`.
    fn is_missing(self, error: &Error) -> bool {
        let cannot = format!("cannot {} resource", self.verb);
        matches!(error, Error::Answer(status) if status.code == 403 && status.message.contains(&cannot))
    }
}
