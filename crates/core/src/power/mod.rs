//! Host power: what is asked of a host's BMC, when, and what is proved by its answers.
//!
//! **For:** the power controller, which keeps a host where `spec.online` and the reboot annotations
//! want it; the remediator, which releases nothing without a proof made here.
//! **May touch:** nothing.
//! **Promises:**
//! - Off is what the BMC said twice, a confirm interval apart, after our own command was answered and
//!   none of unknown end is under way. Unknown, error, timeout and "powering off" are never off (S2).
//! - Each command stands on the host before it is sent, and is sent at most once (S5); a leader that
//!   finds one of another process treats it as under way.
//! - The times that are written order a reboot, whatever any clock says: `pendingRebootSince`, off
//!   confirmed, `lastPoweredOn`, each later than the other two.
//! - A host of a live baremetal-operator is read, and nothing of it is written.
//! - Nothing that others wrote is removed but `reboot.metal3.io` once it is served, and all reboot
//!   annotations of a host that is deprovisioned (S3).
//!
//! Source: specification §3, §4.1 to §4.3; metal3's reboot-interface design.

mod address;
mod annotations;
mod bmc;
mod by_level;
mod config;
mod confirm;
mod confirmation;
mod context;
mod decide;
mod gate;
mod hold;
mod host;
mod identity;
mod idle;
mod life;
mod now;
mod off;
mod on;
mod operator;
mod pending;
mod proof;
mod provisioning;
mod readiness;
mod readings;
pub mod reason;
mod report;
mod retry;
mod seen;
mod seniority;
mod sharing;
mod standing;
mod step;
mod systems;
mod takeover;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod theirs;
mod times;
mod witness;
mod word;

pub use address::{Address, BadAddress, Endpoint, Vendor};
pub use annotations::{REBOOT, Request, is_obeyed, requests};
pub use bmc::{About, Answer, Class, Command, Cost, Fault, Reading, together};
pub use by_level::ByLevel;
pub use config::{Config, PollsTooClose};
pub use confirmation::{BadConfirmation, CONFIRMED_OFF, Confirmation};
pub use decide::{Action, Decision, Look, StatusWrite, decide};
pub use host::{
    Consumer, Device, Done, End, HISTORY, Host, HostName, HostStatus, Intention, Level,
    PowerStatus, State,
};
pub use identity::{Identity, SystemId, same_system, system_uuid};
pub(crate) use life::silence_of;
pub use life::{LifeSeen, NodeLease, SignsOfLife};
pub use now::{PowerNow, answers, now, off_since};
pub use operator::{METAL3_NAMESPACES, OperatorLease, Operators, OwnerRules};
pub use proof::{Moment, OffProof, Readings, Source, proof};
pub use seen::{Access, Check, Memory, Need, Owner, Read, Seen, Sent};
pub use seniority::Seniority;
pub use sharing::Sharing;
pub use systems::Systems;
