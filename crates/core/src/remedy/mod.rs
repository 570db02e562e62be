//! Remediation: a failed machine is proved off, its Node is released, and it comes back.
//!
//! **For:** the remediator ([`cases`] finds who is concerned, [`decide`] says what to do about each);
//! `explain`, the simulator and the model checker, from the same values.
//! **May touch:** nothing.
//! **Promises:**
//! - A Node is deleted, or its workloads released, on a [`Cleared`] only, and only an
//!   [`OffProof`](crate::power::OffProof) makes one: off by our own readings, of this host, after this
//!   request, and still so (S2).
//! - Everything is decided from what stands on the objects; after a crash each host that carries a key of
//!   ours is found, and carried on (S5, S6).
//! - Nothing that others wrote is removed but the need itself, once it is served (S3).
//! - Cases are independent: trouble with one delays no other (L1). Guards delay new keys only.
//!
//! Source: specification §4; metal3's remediation design (its truth table).

mod action;
mod after;
mod around;
mod beat;
mod case;
mod cases;
mod clear;
mod config;
mod context;
mod decide;
mod guard;
mod kept;
mod key;
mod leftover;
mod legacy;
mod link;
mod machine;
mod marked;
mod person;
mod prepare;
mod provider;
pub mod reason;
mod record;
mod request;
mod restore;
mod seen;
mod silence;
mod table;
mod target;
#[cfg(test)]
mod tests;

pub use action::{Action, Look};
pub use around::{Around, FencedSeen, Stage};
pub use beat::{Beat, Beats};
pub use case::{Case, Decision, Subject};
pub use cases::{CONDITION, cases};
pub use clear::{Cleared, Release};
pub use config::Config;
pub use decide::decide;
pub use kept::{Fate, Kept, KeptBackup};
pub use key::{Key, KeyOwner, MACHINE_KEY, REQUEST_PREFIX};
pub use legacy::Legacy;
pub use link::{named_node, nodes_of, record_on};
pub use machine::{InfraMachine, InfraRef, Machine, MachineApi, MachineName, ObjectName};
pub use person::wanting;
pub use record::{Backup, Record, Stamp, Step, Taint};
pub use request::{Attempt, PowerRequest, ProofNote, RequestStatus, Strategy, StrategyType};
pub use seen::{Fresh, Known, Leftovers, PowerSeen, RemedyLease, World};
pub use table::{Bits, Move, by_annotation, by_request};
pub use target::host_carrying;
