//! The coordinator's hands on its host.
//!
//! **For:** seeing that the host wants a reboot (sentinel files, a sentinel command), knowing its
//! boot id, and rebooting it.
//! **May touch:** the host's files, processes and system bus. Never the API server, never a clock
//! that decides something.
//! **Promises:** what cannot be read is `Unknown` with a reason, never "not needed" (specification
//! §2.1); a reboot method that was never begun is told apart from one that was (§2.4).

pub mod boot_id;
mod bounded;
mod child;
mod dbus;
pub mod kubelet;
mod namespaces;
pub mod reboot;
pub mod sentinel;
pub mod sentinel_command;
mod text;
