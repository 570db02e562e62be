//! Simulated BMCs, and the machines behind them.
//!
//! **For:** to run the real Redfish driver and the real power controller against hardware that
//! hangs, reports false states and loses sessions, under virtual time or on a TCP port.
//! **May touch:** its own memory, tokio's timer, and a listener that it is given.
//! **Promises:**
//! - The same code answers in process ([`InProcessTransport`]) and on a TCP port
//!   ([`http_server::serve_bmc`], [`http_server::serve_fleet`]). Each [`SimBmcFault`] can be added
//!   and cured while the BMC runs.
//! - The [`MachineLog`] records what a machine did with the true time, whatever its BMC reported.
//! - The BMC carries out an accepted command by its own clock, even if no client waits for the
//!   answer any more.
//! - The same seed and the same requests give the same answers.
//!
//! Two faults are missing because nobody has met them: a BMC that powers a host on because of a
//! reading, and one that carries out another host's command.

mod bmc_fleet;
mod bmc_state;
mod command;
mod documents;
mod effect;
mod fault;
mod fault_text;
mod fault_values;
pub mod http_server;
mod in_process_transport;
mod maker_profile;
mod power_reading;
mod request;
mod reset;
mod responses;
mod route;
mod session;
mod sim_bmc;
mod task;

pub use bmc_fleet::BmcFleet;
pub use command::ReceivedCommand;
pub use dogwatch_kubesim::machine::{
    BootLifetime, MachineLog, MachineSpec, MachineState, MachineTransition, PowerRestorePolicy,
    SimMachine, TransitionCause,
};
pub use fault::{BmcFaultKind, FaultScope, SimBmcFault};
pub use fault_text::BmcFaultParseError;
pub use in_process_transport::InProcessTransport;
pub use maker_profile::{CommandAnswerStyle, MakerProfile, ResetTypeLocation, SessionSupport};
pub use request::{BmcReply, RequestCounters};
pub use reset::ResetType;
pub use sim_bmc::{BmcSpec, PowerControl, SimBmc};
