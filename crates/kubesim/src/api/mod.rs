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
//! - of built-in kinds, most rules for the values of fields; and unknown fields and types in
//!   requests without the parameter `fieldValidation`, which only people and kubectl send;
//! - conversion between versions of a custom resource, and what [`structural`] lists;
//! - garbage collection (`propagationPolicy` is accepted) and the namespace controller (a deleted
//!   namespace stays `Terminating`);
//! - bodies in YAML, and in protobuf except kubectl's deletions, evictions and reviews;
//! - the ten seconds for which the real eviction retries on a conflict.
//!
//! Managed fields of `events.k8s.io` are kept in the spelling of `v1`.

mod access;
mod admission;
mod aggregated_discovery;
mod answer;
mod apply;
mod audit;
mod columns;
mod discovery;
mod events;
mod faults;
mod field_validation;
mod handle;
mod http_server;
mod kinds;
mod openapi;
mod patch;
mod presentation;
mod protobuf;
mod request;
mod reviews;
mod route;
mod schema;
mod selector;
mod service;
mod status;
mod store;
mod strategy;
mod structural;
mod table;
mod typed_fields;
mod typed_schema;
mod validate;
mod value;
mod verbs;
mod watch;
mod watch_faults;

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
pub use store::{ApiServerOptions, ObjectStore, StoreBackup};
pub use watch::{ConnectionCut, OpenWatch, WatchFrame};
pub use watch_faults::{WatchEventFault, WatchEventInfo};
