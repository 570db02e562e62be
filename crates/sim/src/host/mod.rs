//! A simulated host: the parts of a machine that the coordinator touches.
//!
//! **For:** to run the real coordinator loop on every simulated node.
//! **May touch:** its own memory, and the power of its simulated machine.
//! **Promises:** a boot deletes the files in `/run` and keeps all others; the reboot command does
//! only what the script says.

mod coordinator;
mod disk;
mod host_ops;
mod prometheus;

pub use coordinator::{CoordinatorConfig, SimCoordinator};
pub use disk::SimDisk;
pub use host_ops::{PowerCycle, RebootCommand, SimHostOps};
pub use prometheus::{AlertState, SimPrometheus};
