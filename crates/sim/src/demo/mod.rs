//! A cluster that reboots itself before one's eyes: what `dogwatch demo` shows.
//!
//! **For:** trying everything on a laptop, without a cluster; and a test of the coordinator's loop on
//! real files, a real child process and real time.
//! **May touch:** one folder that it is given: a small one for each node, with its sentinel, its boot
//! id and its reboot command.
//! **Promises:** the coordinators, the power controller and the remediator are the real loops with their real hands;
//! only machines, BMCs, kubelets and the API server are simulated. What the [`Verdict`] says was judged by
//! [`crate::chronicle::Checks`] at every change, not taken from anybody's word.

mod cluster;
mod failed;
mod failed_checks;
mod files;
mod machine;
mod metal;
mod metal_checks;
mod play;
mod verdict;

pub use cluster::{DemoConfig, DemoError};
pub use play::{Demo, Row};
pub use verdict::{Check, Verdict};
