//! The two protocols in which hosts ask for the lock.
//!
//! **For:** the lock API (forms, made for `curl`, each caller checked) and FleetLock (JSON, what Zincati
//! speaks, nobody checked), each on a listener of its own. Source: specification §2.7.
//! **May touch:** its listeners, the files of its certificates, and the API server through [`Access`].
//! **Promises:** a request that is malformed, late, too large or not allowed changes nothing and is
//! answered with one line that says why; a client that goes away before its answer drops its future
//! of the [`LockService`](super::service::LockService) at once; what one client costs is bounded (memory,
//! time, calls); no token is logged.
//!
//! HTTP/1.1 only: its clients send one small request and wait for the answer, for which HTTP/2 would
//! bring many waiters on one connection and more ways to be attacked.

mod answer;
mod auth;
mod body;
mod config;
mod connection;
mod fleetlock;
mod form;
mod lock_api;
mod openapi;
mod peer;
mod record;
mod server;
mod strangers;
mod tls;
mod waiting;
mod wire;

#[cfg(test)]
mod tests;

pub use auth::{Access, KubernetesAccess};
pub use config::{AUDIENCE, Config, Limits, LockAuth, StartError, TlsFiles};
pub use record::{Nobody, Protocol, Record};
pub use server::{Parts, Server};
