//! What the long-running programs of Dogwatch run on.
//!
//! **For:** the loop of every domain ([`reconcile`]) with its lead check ([`leadership`]); for the
//! coordinator and the controller the clock, the log, jitter, heartbeats of loops, metrics text, a
//! small server for `/metrics` and the probes, and limits for connections and open files.
//! **May touch:** the process' clocks, stderr, the variable `DOGWATCH_LOG`, listening sockets, the
//! file of a decision log.
//! **Promises:** nothing here knows Kubernetes or decides anything.

pub mod clock;
pub mod connections;
pub mod decision_log;
pub mod health;
pub mod http;
pub mod jitter;
pub mod leadership;
pub mod line_file;
pub mod listen;
pub mod log;
pub mod metrics_text;
pub mod mutex;
pub mod open_files;
pub mod reconcile;
pub mod stop;
