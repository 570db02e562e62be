//! The controller: what no single node can do, and the lock API for hosts that run no coordinator.
//!
//! **For:** `dogwatch controller`. Its components are the healer, policy status, maintenance
//! markers, the lock API, host power, remediation, schedules, NodeReboots and estimates.
//! **May touch:** the API server through `dogwatch-k8s`, BMCs through `dogwatch-bmc`, and the
//! listeners that its flags name.
//! **Promises:** a component that acts on the cluster does so only while its process holds the
//! leader Lease. The lock API runs on every replica, because the lock keeps its own rules. Each
//! loop decides in `dogwatch-core`.

mod call_end;
pub mod cluster_views;
mod context;
pub mod decision_log;
pub mod healer;
pub mod health_registry;
pub mod leader;
pub mod lock;
pub mod maintenance_markers;
pub mod metrics;
pub mod node_reboot;
pub mod policy_status;
pub mod power;
pub mod remediation;
pub mod rollout_estimate;
pub mod run;
pub mod schedule;
mod watch_error_log;

pub use context::ControllerContext;
pub use dogwatch_runtime::stop::{StopSignal, StopTrigger};
