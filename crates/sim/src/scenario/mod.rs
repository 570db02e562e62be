//! Scripts of what happens to a simulated cluster, and the timeline of what came of it.
//!
//! **For:** behaviour that can be read and reviewed: `scenarios/NAME.txt` is a script, `NAME.out`
//! beside it what happened. A bug report becomes a script.
//! **May touch:** the embedded cluster only. Wants tokio's paused time on a current-thread runtime.
//! **Promises:** the same script gives the same bytes; at the end of every script, and at every
//! change on the way, the promises of [`crate::chronicle::Checks`] are checked, asked for or not.
//!
//! A script has one command a line; `#` begins a comment. `cluster`, `workload`, `config`, `node`,
//! `host` and `policy` say what there is, `start` builds it, everything after that happens to it. A line that cannot be read
//! is refused with the forms that could have been meant. With `each NAME=VALUES…` as its first
//! command a script is run once for every combination, `$NAME` standing for the value, and only the
//! ends are told.

mod act;
mod caller;
mod command;
mod condition;
mod controllers;
mod each;
mod explanation;
mod faults;
mod forms;
mod happening;
mod metal;
mod minds;
mod parse;
mod policy;
mod process;
mod run;
mod setup;
mod stage;
mod timeline;
mod words;

pub use command::{Command, Deed, Line, PrometheusChange, Setup, Trouble, Wish};
pub use condition::Condition;
pub use controllers::ControllerDeed;
pub use faults::{Fault, FaultBox, Rule};
pub use metal::{HostSetup, MetalDeed};
pub use minds::Minds;
pub use parse::{BadLine, Script, parse};
pub use run::{Failed, Outcome, run};
pub use stage::{Host, NotBuilt, Stage, coordinator_user};
pub use timeline::{Timeline, Told};
