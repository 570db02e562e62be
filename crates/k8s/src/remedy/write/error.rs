//! Why a write cannot be relied on.

use crate::error::{Error, Kind};

/// Why a write was not done, or cannot be taken for done.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It is not as it was seen any more, or gone: nothing was written. Look anew.
    #[error("{0} has changed since it was seen")]
    Changed(String),
    /// What would be written over is somebody else's: nothing was sent.
    #[error("{0} was written by somebody else")]
    Foreign(String),
    /// The permission to release does not last any more: nothing was sent.
    #[error("the proof that host {0} is off is too old to act on")]
    Expired(String),
    /// The Node is deleted as far as we can: it goes when others take their finalizers from it.
    #[error("node {node} is being deleted, and kept by its finalizers {}: their owners have to remove them", .finalizers.join(", "))]
    Kept {
        /// Its name.
        node: String,
        /// Theirs.
        finalizers: Vec<String>,
    },
    /// It was answered well, and the answer lacks this: the CustomResourceDefinition drops it, or an
    /// admission webhook changed it.
    #[error(
        "{0} was written and does not stand: is the newest CustomResourceDefinition installed?"
    )]
    Dropped(String),
    /// A right is missing.
    #[error("the controller may not {right}: deploy/remediation gives it that right")]
    Forbidden {
        /// Verb and resource.
        right: String,
        /// The answer.
        #[source]
        error: Error,
    },
    /// A refusal, or no answer: it may have been written.
    #[error(transparent)]
    Api(#[from] Error),
}

impl WriteError {
    /// The error and its causes in one line, for conditions and Events.
    pub fn in_words(&self) -> String {
        crate::error::in_words(self)
    }
}

/// What is asked: as a role has it.
#[derive(Debug, Clone, Copy)]
pub(in crate::remedy) struct Right {
    pub(in crate::remedy) verb: &'static str,
    pub(in crate::remedy) resource: &'static str,
}

impl Right {
    pub(in crate::remedy) const fn new(verb: &'static str, resource: &'static str) -> Self {
        Self { verb, resource }
    }

    /// What this answer means. `about` is what was written.
    pub(in crate::remedy) fn refused(self, about: &str, error: Error) -> WriteError {
        match error.kind() {
            Kind::Conflict | Kind::NotFound => WriteError::Changed(about.to_owned()),
            Kind::Forbidden if self.is_missing(&error) => WriteError::Forbidden {
                right: format!("{} {}", self.verb, self.resource),
                error,
            },
            Kind::AlreadyExists
            | Kind::Gone
            | Kind::Forbidden
            | Kind::Throttled { .. }
            | Kind::Refused
            | Kind::Transient => WriteError::Api(error),
        }
    }

    /// Admission plugins answer 403 as well; authorization says who cannot do what.
    fn is_missing(self, error: &Error) -> bool {
        let cannot = format!("cannot {} resource", self.verb);
        matches!(error, Error::Answer(status) if status.code == 403 && status.message.contains(&cannot))
    }
}
