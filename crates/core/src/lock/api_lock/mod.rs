//! The lock for hosts that run no coordinator: the lock API and FleetLock. Source: specification
//! §2.7.
//!
//! A request takes part in the lock under its host's identity ([`HolderId::for_api_host`],
//! [`HolderId::for_fleetlock_client`]) with a run id of its own. [`hold`] decides the steps of a
//! request that has its id on a Lease, [`leave`] those of a request that gives up and of an unlock.
//!
//! Why no host is out of service without a lock (S1), and why no retry loses a lock:
//!
//! 1. Whoever relies on a Lease writes its id there first. Then it reads the Node, **then** the
//!    Leases once more, and cordons on the Node's version that it read.
//! 2. Whoever leaves reads the Node and **then** the Leases. The last one removes the cordon on
//!    that version, or changes the version if a cordon may still be on its way, and then frees the
//!    Lease. If another request of the host has won another Lease, the cordon is handed to that
//!    request.
//!
//! So if a cordon and a departure race, one of them finds the Node changed, and observes again.
//!
//! [`HolderId::for_api_host`]: super::HolderId::for_api_host
//! [`HolderId::for_fleetlock_client`]: super::HolderId::for_fleetlock_client

mod drain;
mod hold;
mod leave;
mod node;
mod queue;
mod record;
mod request_ids;
mod waiting;

pub use drain::{ApiDrainSnapshot, ApiDrainStep, decide_drain};
pub use hold::{HoldSnapshot, HoldStep, decide_hold};
pub use leave::{
    CordonInFlight, LeaveSnapshot, LeaveStep, LeavingParty, decide_leave, find_recorded_node,
};
#[cfg(test)]
pub(super) use node::tests as node_kit;
pub use node::{ApiLock, ApiNode, NodeWrite, describe_fencing, describe_refusal};
pub use queue::{QueueSnapshot, QueueStep, decide_queue, find_called_holder};
pub use record::{adopt_request_record, mark_request_answered};
pub use request_ids::{
    answered_run_id, fleetlock_group, is_run_answered, process_of_request, request_run_id,
};
pub use waiting::{
    MAX_POLICY_WAIT, MAX_WAITING_HOSTS_BYTES, PolicyDenial, WaitMode, WaitingHost,
    denial_retry_delay, parse_waiting_hosts, render_waiting_hosts,
};
