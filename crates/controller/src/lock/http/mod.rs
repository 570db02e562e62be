//! The two protocols in which hosts ask for the lock.
//!
//! **For:** the lock API (forms, made for `curl`, each caller checked) and FleetLock (JSON, spoken
//! by Zincati, callers not checked), each on a listener of its own. Source: specification §2.7.
//! **May touch:** its listeners, the certificate files, and the API server through [`LockAccess`].
//! **Promises:** a request that is malformed, late, too large or not allowed changes nothing and is
//! answered with one line that states the reason. If a client disconnects before its answer, the
//! future of the [`LockService`](super::service::LockService) is dropped at once. What one client
//! costs is bounded (memory, time, calls). No token is logged.
//!
//! HTTP/1.1 only: clients send one small request and wait for the answer. HTTP/2 would put many
//! waiters on one connection and open more ways to attack.

mod auth;
mod body;
mod client_certificate;
mod config;
mod connection;
mod disconnect_aware_stream;
mod fleetlock;
mod form;
mod lock_api;
mod openapi;
mod reply;
mod request_metrics;
mod server;
mod tls;
mod unauthenticated_limit;
mod waiter_limit;

#[cfg(test)]
mod tests;

pub use auth::{KubernetesAccess, LockAccess};
pub use config::{
    DEFAULT_LOCK_AUDIENCE, LockApiConfig, LockApiLimits, LockApiStartError, LockAuthMode, TlsFiles,
};
pub use request_metrics::{LockProtocol, NoRequestMetrics, RequestMetrics};
pub use server::{LockApiDeps, LockApiServer};
