//! A simulated cluster that reboots itself: the content of `dogwatch demo`.
//!
//! **For:** to try Dogwatch on a laptop without a cluster; and to test the coordinator's loop on
//! real files, a real child process and real time.
//! **May touch:** one folder that it is given, with a subfolder for each node that holds sentinel,
//! boot id and reboot command.
//! **Promises:** the coordinators, the power controller and the remediator are the real loops with
//! their real actions; only machines, BMCs, kubelets and the API server are simulated.
//! [`DemoVerdict`] comes from [`crate::observer::PromiseChecks`] at every change, not from what
//! Dogwatch reports.

mod cluster;
mod failed_node;
mod failed_node_checks;
mod files;
mod host_checks;
mod hosts;
mod installation;
mod machine;
mod rows;
mod run;
mod story;
mod verdict;

pub use cluster::{DemoConfig, DemoError};
pub use rows::DemoRow;
pub use run::Demo;
pub use verdict::{DemoCheck, DemoVerdict};
