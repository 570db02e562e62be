//! The writes of a remediation, one call each.

mod condition;
mod error;
mod host;
mod machine;
mod node;
mod release;
mod request;

pub use error::{ChangedObject, RemediationWriteError};
pub use release::NodeReleaseOutcome;

pub(super) use condition::ConditionForm;
pub(super) use error::RequiredRight;
pub(super) use node::NODE_SHUTDOWN;
