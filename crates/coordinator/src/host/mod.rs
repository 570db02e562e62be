//! Everything the coordinator does on its host.
//!
//! **For:** reading whether the host needs a reboot (sentinel files, a sentinel command), reading
//! its boot id, and rebooting it.
//! **May touch:** the host's files, processes and system bus. Never the API server, and no clock
//! for decisions.
//! **Promises:** a sentinel that cannot be read is `Unknown` with a reason, never "not needed"
//! (specification §2.1); a reboot method that never began is distinguished from one that did
//! (§2.4).

pub mod boot_id;
mod bounded_read;
mod child;
pub(crate) mod dbus;
pub mod kubelet;
mod namespaces;
pub mod reboot;
pub mod sentinel;
pub mod sentinel_command;
mod text;
