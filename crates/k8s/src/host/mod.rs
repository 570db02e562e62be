//! BareMetalHosts as power decisions see them, and what is written to them.
//!
//! **For:** the power controller ([`HostWatch`], [`HostClient`]); people's commands ([`HostClient::list`]).
//! **May touch:** `metal3.io` BareMetalHosts (list, watch, get; their status, and the annotations that
//! are named), Secrets (get by name), Events about hosts, Leases called `baremetal-operator` (list,
//! watch), Leases of Nodes (get by name), Machines and Metal3Machines beside a host (list).
//! **Promises:**
//! - A host that cannot be understood is not left out: it has no usable level, and says why in words.
//! - Every write carries uid and resourceVersion of what it was decided on, and its answer is compared:
//!   what the CustomResourceDefinition of the cluster drops is an error, never taken for written.
//! - Other people's conditions, fields and annotations stay as they are (S3).
//! - A Secret is read by its name only, and no `Debug` shows it (S8).
//!
//! Source: specification §3.

mod client;
mod convert;
mod leaders;
mod life;
mod object;
mod secret;
mod status;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod write;

pub use client::HostClient;
pub use convert::convert;
pub use object::HostObject;
pub use secret::{Secret, SecretTrouble};
pub use view::HostView;
pub use watch::{Cadence, HostWatch};
pub use write::WriteError;
