//! Reads and writes BareMetalHosts for power decisions.
//!
//! **For:** the power controller ([`HostWatch`], [`HostClient`]); people's commands
//! ([`HostClient::list_hosts`]).
//! **May touch:** `metal3.io` BareMetalHosts (list, watch, get; their status, and named
//! annotations), Secrets (get by name), Events about hosts, Leases called `baremetal-operator`
//! (list, watch), Leases of Nodes (get by name), Machines and Metal3Machines of a host (list).
//! **Promises:**
//! - A host that cannot be understood is not left out: it has no usable level, and its text says
//!   why.
//! - Every write carries UID and resourceVersion of the host that it was decided on, and its answer
//!   is compared: a field that the cluster's CustomResourceDefinition drops is an error.
//! - Conditions, fields and annotations of others stay unchanged (S3).
//! - A Secret is read by its name only, and no `Debug` shows it (S8).
//!
//! Source: specification §3.

mod client;
mod convert;
mod metal3_leaders;
mod object;
mod secret;
mod signs_of_life;
mod status;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod write;

pub use client::HostClient;
pub use convert::convert_host;
pub use object::HostObject;
pub use secret::{BmcSecret, BmcSecretError};
pub use view::HostWatchView;
pub use watch::{HostRecheckIntervals, HostWatch};
pub use write::HostWriteError;
