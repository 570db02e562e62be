//! A Kubernetes API server in the process: deterministic, in memory, without sockets unless asked.
//!
//! [`Store::handle`] is its synchronous heart: one request in, one answer (or one watch) out, time
//! from a [`crate::clock::Clock`], everything random from one seed, so that the same requests in
//! the same order give the same bytes. [`ApiServer`] wraps it twice: as the service under an
//! ordinary [`kube::Client`], with faults in between, and on a port for kubectl.
//!
//! It is generic over kinds (a table of built-in ones, and what CustomResourceDefinitions add) and
//! follows kube-apiserver 1.36 in what Dogwatch relies on; generated sequences of writes get the
//! same answers from both, managed fields included.
//!
//! Not built, on purpose: admission beyond namespace lifecycle (but see [`EvictionPolicy`]); RBAC (but see [`Denial`]); dropping
//! of unknown fields, and structural schemas of custom resources beyond how their lists merge;
//! conversion between versions of a custom resource; garbage collection (`propagationPolicy` is
//! accepted) and the namespace controller (a deleted namespace stays `Terminating`); bodies in
//! protobuf (but for deletions and evictions, kubectl's) or YAML; the ten seconds for which the real eviction tries again on a conflict. Managed
//! fields of `events.k8s.io` are kept in the spelling of `v1`.

mod access;
mod admission;
mod answer;
mod apply;
mod audit;
mod columns;
mod discovery;
mod events;
mod faults;
mod handle;
mod kinds;
mod patch;
mod present;
mod protobuf;
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
pub use admission::EvictionPolicy;
pub use answer::AnswerBody;
pub use audit::AuditEntry;
pub use faults::{FaultEffect, RequestInfo};
pub use handle::Reply;
pub use kinds::{Resource, Subresource};
pub use request::{Query, Request, Response};
pub use route::Verb;
pub use selector::LabelSelector;
pub use service::{ApiServer, ApiService, ServiceError};
pub use status::ApiError;
pub use store::{Options, Store};
pub use watch::{Cut, Frame, Watch};
