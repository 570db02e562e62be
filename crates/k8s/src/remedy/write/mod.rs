//! The writes of a remediation, each as one call.

mod condition;
mod error;
mod host;
mod machine;
mod node;
mod release;
mod request;

pub use error::WriteError;
pub use release::Released;

pub(super) use condition::Form;
pub(super) use error::Right;
pub(super) use node::NODE_SHUTDOWN;
