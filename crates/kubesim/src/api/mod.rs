//! A Kubernetes API server in the process: deterministic, in memory, without sockets unless asked.
//!
//! [`ObjectStore::handle_request`] is its synchronous core: one request in, one answer (or one
//! watch) out. Time comes from a [`crate::clock::ClusterClock`] and everything random from one
//! seed, so the same requests in the same order give the same bytes. [`ApiServer`] wraps the core
//! twice: as the service under an ordinary [`kube::Client`], with fault injection, and on a port
//! for kubectl.
//!
//! The server is generic over kinds (a table of built-in ones, and those of
//! CustomResourceDefinitions) and follows kube-apiserver 1.36 in what Dogwatch relies on. Generated
//! sequences of writes get the same answers from both, managed fields included.
//!
//! Deliberately not built:
//! - admission beyond namespace lifecycle (but see [`EvictionPolicy`]), and RBAC (but see
//!   [`Denial`]);
//! - dropping of unknown fields, structural schemas of custom resources beyond how their lists
//!   merge, and conversion between versions of a custom resource;
//! - garbage collection (`propagationPolicy` is accepted) and the namespace controller (a deleted
//!   namespace stays `Terminating`);
//! - bodies in YAML, and in protobuf except kubectl's deletions and evictions;
//! - the ten seconds for which the real eviction retries on a conflict.
//!
//! Managed fields of `events.k8s.io` are kept in the spelling of `v1`.

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
mod http_server;
mod kinds;
mod patch;
mod presentation;
mod protobuf;
mod request;
mod route;
mod schema;
mod selector;
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
pub use audit::RequestAuditEntry;
pub use faults::{FaultEffect, RequestInfo};
pub use handle::ApiReply;
pub use kinds::{ServedResource, Subresource};
pub use request::{ApiRequest, ApiResponse, QueryParameters};
pub use route::ApiVerb;
pub use selector::ApiLabelSelector;
pub use service::{ApiServer, ApiService, ServiceError};
pub use status::ApiError;
pub use store::{ApiServerOptions, ObjectStore};
pub use watch::{ConnectionCut, OpenWatch, WatchFrame};
