//! The lock for hosts that run no coordinator: the lock API and FleetLock. Source: specification §2.7.
//!
//! A request takes part in the lock under its host's identity ([`HolderId::api`],
//! [`HolderId::fleetlock`]) with a run id of its own. [`hold`] says what a request that has its id on
//! a Lease does next, [`leave`] what one does that gives up, or that unlocks.
//!
//! Why nobody is out without a lock (S1), and why no retry loses what it got:
//!
//! 1. Who relies on a Lease writes its id there first. Then it reads the Node, **then** the Leases
//!    once more, and cordons on the Node's version that it read.
//! 2. Who leaves reads the Node and **then** the Leases. The last one out undoes the cordon on that
//!    version, or moves the version where a cordon may still be on its way, and frees after that. Where
//!    another request of the host has won another Lease, the cordon is handed to that one instead.
//!
//! So of a cordon and a departure one finds the Node changed, and looks again.
//!
//! [`HolderId::api`]: super::HolderId::api
//! [`HolderId::fleetlock`]: super::HolderId::fleetlock

mod drain;
mod hold;
mod leave;
mod name;
mod node;
mod queue;
mod record;
mod waiting;

pub use drain::{DrainStep, Draining, drain};
pub use hold::{HoldSeen, HoldStep, hold};
pub use leave::{LeaveSeen, LeaveStep, Suspect, Who, leave};
pub use name::{answered, fleetlock_group, is_answered, request_process, request_run};
#[cfg(test)]
pub(super) use node::tests as node_kit;
pub use node::{ApiLock, ApiNode, NodeWrite, being_fenced, refusal};
pub use queue::{Turn, TurnSeen, called, turn};
pub use record::{adopt, answer};
pub use waiting::{LONGEST_TOLD, NotAllowed, SOON, Wait, WaitingHost, answered_now, tell, told};
