//! Every word that Dogwatch puts on a Kubernetes object, or reads from one.
//!
//! **For:** one place for names that are public contracts, so that code, docs and tests cannot
//! disagree about them.
//! **May touch:** nothing.
//! **Promises:** a name here changes only with an entry in the changelog.

pub mod annotation;
pub mod bare_metal_host;
pub mod condition;
mod definition;
pub mod event;
pub mod kind;
pub mod label;
pub mod lease;
pub mod power_remediation;
pub mod power_remediation_template;
pub mod reboot_policy;
pub mod reboot_schedule;
#[cfg(test)]
mod schema_check;
mod schema_words;

/// The namespace Dogwatch's own objects live in, unless a flag says otherwise.
pub const DEFAULT_NAMESPACE: &str = "dogwatch";

/// What Dogwatch calls itself as a reporter of Events and as a field manager of Nodes.
pub const COORDINATOR: &str = "dogwatch-coordinator";

/// What the controller calls itself as a field manager of Nodes and of its own Leases.
pub const CONTROLLER: &str = "dogwatch-controller";

/// The Deployment and ServiceAccount of the lock over HTTP, where it is a program of its own.
pub const LOCK_API: &str = "dogwatch-lock";
