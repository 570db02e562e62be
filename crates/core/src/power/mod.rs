//! Host power: which commands go to a host's BMC, when, and what its answers prove.
//!
//! **For:** the power controller, which keeps a host in the state that `spec.online` and the reboot
//! annotations ask for; the remediator, which releases nothing without a proof made here.
//! **May touch:** nothing.
//! **Promises:**
//! - Off means: the BMC said off twice, a confirm interval apart, after it answered a command of
//!   Dogwatch's and while no command of unknown end is under way. Unknown, error, timeout and
//!   "powering off" are never off (S2).
//! - Each command is recorded on the host before it is sent, and is sent at most once (S5). A
//!   leader that finds a command of another process treats it as under way.
//! - The recorded times order a reboot, whatever any clock says: `pendingRebootSince`, off
//!   confirmed, `lastPoweredOn`, each later than the other two.
//! - A host of a live baremetal-operator is read; nothing is written to it.
//! - Dogwatch removes nothing that others wrote, except `reboot.metal3.io` once it is served, and
//!   all reboot annotations of a host that is deprovisioned (S3).
//!
//! Source: specification §3, §4.1 to §4.3; metal3's reboot-interface design.

mod address;
mod annotations;
mod bmc;
mod bmc_crosscheck;
mod by_level;
mod command_state;
mod config;
mod confirmation_annotation;
mod context;
mod current_power;
mod cut_outlet;
mod decide;
mod hold;
mod host;
mod idle;
mod level_digest;
mod machine_change;
mod manual_confirmation;
mod metal3_leader;
mod metal3_managed;
mod node_liveness;
mod off_confirmation;
mod pending_reboot;
mod power_off;
mod power_on;
mod proof;
mod provisioner_work;
mod provisioning;
mod readiness;
mod readings;
mod reason;
mod refusal;
mod report;
mod retry;
mod seniority;
mod shared_bmcs;
mod shared_system_ids;
mod snapshot;
mod status_times;
mod step;
mod system_id;
mod takeover;
#[cfg(test)]
pub(crate) mod tests;

pub use address::{BadBmcAddress, BmcAddress, BmcEndpoint, RedfishVendor};
pub use annotations::{
    HostRebootAnnotation, REBOOT_ANNOTATION, is_annotation_obeyed, reboot_annotations,
};
pub use bmc::{
    BmcFault, BmcInfo, CallCost, CommandAnswer, FaultClass, IdentifiedReading, PowerCommand,
    PowerReading, combine_readings,
};
pub use by_level::ByLevel;
pub use config::{PollsTooClose, PowerConfig};
pub use confirmation_annotation::{BadConfirmation, CONFIRMED_OFF_ANNOTATION, OffConfirmation};
pub use current_power::{CurrentPower, current_power, is_bmc_answering, off_since};
pub use decide::{PowerAction, PowerDecision, PowerObserve, StatusWrite, decide};
pub use host::{
    HostConsumer, HostName, HostSnapshot, HostStatus, MAX_POWER_HISTORY, PendingCommand,
    PendingCommandEnd, PowerDevice, PowerHistoryEntry, PowerLevel, PowerState, PowerStatus,
};
pub use machine_change::{MachineChange, MachineChangeKind};
pub use metal3_leader::{METAL3_NAMESPACES, Metal3LeaderLease, Metal3Leaders, OwnerRules};
pub use node_liveness::{KubeletLease, KubeletLeaseHistory, KubeletLeases};
pub(crate) use node_liveness::{missed_renewal, required_silence};
pub use proof::{OffReadings, PowerOffProof, ProofSource, ReadingTimes, find_off_proof};
pub use reason::PowerReason;
pub use refusal::find_switching_obstacle;
pub use seniority::HostSeniority;
pub use shared_bmcs::SharedBmcs;
pub use shared_system_ids::SharedSystemIds;
pub use snapshot::{
    HostOwner, LevelAccess, LevelCheck, LevelReading, PowerMemory, PowerNeed, PowerSnapshot,
    SentCommand,
};
pub use system_id::{SystemId, SystemMatch, bmc_system_uuid, compare_system_uuids};
