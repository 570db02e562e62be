//! A simulated host: what the coordinator touches of a machine, without a machine.
//!
//! **For:** running the real coordinator loop on every simulated node.
//! **May touch:** its own memory, and the power of its simulated machine.
//! **Promises:** what lies in `/run` is gone after a boot, what lies elsewhere stays; the reboot
//! command does what the script says, and nothing else.

mod coordinator;
mod disk;
mod hands;
mod prometheus;

pub use coordinator::{Coordinator, CoordinatorConfig};
pub use disk::Disk;
pub use hands::{PowerCycle, RebootCommand, SimHands};
pub use prometheus::{Alert, Prometheus};
