//! All names that Dogwatch writes on Kubernetes objects or reads from them, and its CRDs.
//!
//! **For:** one place for names that are public contracts, so that code, docs and tests cannot
//! disagree about them.
//! **May touch:** nothing.
//! **Promises:** a name here changes only with an entry in the changelog.

#![warn(missing_docs)]

pub mod annotation;
pub mod bare_metal_host;
pub mod condition;
pub mod event;
pub mod kind;
pub mod label;
pub mod lease;
mod manifest;
pub mod name;
pub mod node_reboot;
pub mod power_remediation;
pub mod power_remediation_template;
pub mod reboot_policy;
pub mod reboot_schedule;
#[cfg(test)]
mod schema;
pub mod selector;

/// The namespace of Dogwatch's own objects, unless a flag sets another.
pub const DEFAULT_NAMESPACE: &str = "dogwatch";

/// The coordinator's name as a reporter of Events and as a field manager of Nodes.
pub const COORDINATOR: &str = "dogwatch-coordinator";

/// The controller's name as a field manager of Nodes and of its own Leases.
pub const CONTROLLER: &str = "dogwatch-controller";

/// The Deployment and ServiceAccount of the lock API, where it runs as a program of its own.
pub const LOCK_API_ACCOUNT: &str = "dogwatch-lock";

/// The Deployment, ServiceAccount and Service of the dashboard, where it runs in the cluster.
pub const WEB_ACCOUNT: &str = "dogwatch-web";
