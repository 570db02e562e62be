//! The only Dogwatch crate that speaks to Kubernetes in production.
//!
//! **For:** watches become snapshots for `core`; `core`'s actions become patches with
//! preconditions.
//! **May touch:** the API server, through the given kube client. No clock (a `Now` is passed where
//! one is needed; timers are tokio's, so that the embedded cluster can run them), no random source.
//! Only [`mod@connect`] reads files and the environment.
//! **Promises:** every write carries what it relies on (UID, resourceVersion, field manager), so
//! that a late duplicate does nothing; every request has a deadline; no error is dropped.

pub mod access;
pub mod admission;
pub mod cluster;
mod condition;
pub mod connect;
mod deadline;
pub mod drain;
pub mod error;
mod event;
mod field_manager;
pub mod fleet;
pub mod healer;
pub mod host;
mod informer;
mod json_field;
pub mod kured;
pub mod leader;
pub mod lock;
pub mod markers;
pub mod node;
pub mod node_reboot;
mod paged;
pub mod policy;
mod readable_dates;
pub mod remediation;
pub mod rollout;
pub mod schedule;
pub mod start_marks;
mod status_write;
pub mod watch;
pub mod workload_cluster;

pub use connect::{
    ClusterConnection, ConnectError, connect, connect_by_certificate, connect_to_context,
    connect_with_token,
};
pub use error::{ApiErrorKind, Error};
pub use kube::Client;
pub use status_write::StatusWriteError;
