//! A Kubernetes API server in the process: deterministic, in memory, without sockets unless asked.
//!
//! [`Store::handle`] is its synchronous heart: one request in, one answer (or one watch) out, time
//! from a [`crate::clock::Clock`], everything random from one seed, so that the same requests in
//! the same order give the same bytes. [`ApiServer`] wraps it twice: as the service under an
//! ordinary [`kube::Client`], with faults in between, and on a port for kubectl.
//!
//! It is generic over kinds (a table of built-in ones, and what CustomResourceDefinitions add) and
//! follows kube-apiserver 1.36 in what Dogwatch relies on. Not built: admission beyond namespace
//! lifecycle, RBAC (but see [`Denial`]), structural pruning and validation of custom resources,
//! conversion between versions of a custom resource, garbage collection and the namespace
//! controller, protobuf and YAML bodies.

mod access;
mod apply;
mod audit;
mod discovery;
mod events;
mod faults;
mod handle;
mod kinds;
mod patch;
mod present;
mod request;
mod route;
mod schema;
mod selector;
mod serve;
mod service;
mod status;
mod store;
mod strategy;
mod table;
mod validate;
mod value;
mod verbs;
mod watch;

pub use access::Denial;
pub use audit::AuditEntry;
pub use faults::{FaultEffect, RequestInfo};
pub use handle::Reply;
pub use kinds::{Resource, Subresource};
pub use request::{Query, Request, Response};
pub use route::Verb;
pub use selector::LabelSelector;
pub use service::{AnswerBody, ApiServer, ApiService, ServiceError};
pub use status::ApiError;
pub use store::{Options, Store};
pub use watch::{Cut, Frame, Watch};
