//! The only code of Dogwatch that speaks Kubernetes in production.
//!
//! **For:** watches become what `core` sees; `core`'s actions become patches with preconditions.
//! **May touch:** the API server, through the kube client it is given. No clock (a `Now` is given
//! where one is needed; timers are tokio's, so that the embedded cluster can run them), no random
//! source. Only [`mod@connect`] reads files and the environment.
//! **Promises:** every write carries what it relies on (UID, resourceVersion, field manager), so
//! that a late duplicate does nothing; no request waits for ever; no error is dropped.

pub mod access;
pub mod admission;
pub mod cluster;
mod condition;
pub mod connect;
pub mod drain;
pub mod error;
mod event;
mod field;
pub mod fleet;
pub mod handshake;
pub mod heal;
pub mod host;
mod in_time;
pub mod kured;
pub mod leader;
pub mod lock;
mod manager;
pub mod node;
mod paged;
pub mod policy;
pub mod remedy;
pub mod rollout;
pub mod schedule;
pub mod watch;

pub use connect::{ConnectError, Connection, connect, connect_by_certificate, connect_to};
pub use error::{Error, Kind};
pub use kube::Client;
