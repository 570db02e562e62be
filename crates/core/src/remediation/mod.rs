//! Remediation: proves that a failed machine is off, releases its Node, and brings it back.
//!
//! **For:** the remediator ([`discover_remediations`] lists the remediations, [`decide`] says what
//! to do about each); `explain`, the simulator and the model checker use the same values.
//! **May touch:** nothing.
//! **Promises:**
//! - A Node is deleted, or its workloads released, only with a [`ReleasePermit`], and only a
//!   [`PowerOffProof`](crate::power::PowerOffProof) makes one: our own readings say that this host
//!   is off since this request, and still is (S2).
//! - Every decision starts from what the objects say; after a crash each host that carries a key of
//!   ours is found, and its remediation continues (S5, S6).
//! - Of what others wrote, only the mark is removed, once it is served (S3).
//! - Remediations are independent: trouble with one delays no other (L1). Guards delay new keys
//!   only.
//!
//! Source: specification §4; metal3's remediation design (its truth table).

mod action;
mod by_annotation;
mod concurrency;
mod config;
mod context;
mod decide;
mod discovery;
mod guard;
mod heartbeat;
mod host_link;
mod key;
mod leftovers;
mod legacy_backup;
mod machine;
mod manual_confirmation;
mod node_cluster;
mod node_silence;
mod prepare;
mod provider_id;
mod reason;
mod record;
mod recovery;
mod release_permit;
mod request;
mod request_target;
mod restore;
mod snapshot;
mod stored_backup;
mod target_cluster;
#[cfg(test)]
mod tests;
mod truth_table;
mod types;

pub use action::{LeaseConflictRule, RemediationAction, RemediationObserve};
pub use concurrency::{ConcurrentRemediations, FencedHost, PlannedReboots, RemediationStage};
pub use config::RemediationConfig;
pub use decide::decide;
pub use discovery::{REMEDIATION_CONDITION, discover_remediations};
pub use heartbeat::{HeartbeatHistory, NodeHeartbeat};
pub use host_link::{node_annotated_on, nodes_of_host, record_on_host};
pub use key::{KeyOwner, MACHINE_KEY, REQUEST_PREFIX, RemediationKey};
pub use legacy_backup::LegacyBackup;
pub use machine::{InfraMachine, InfraRef, MachineApi, MachineName, ObjectName, ObservedMachine};
pub use manual_confirmation::remediation_to_confirm;
pub use node_cluster::{
    NodeCluster, ReadableCluster, RemediationCluster, WorkloadClusterState, WorkloadClusters,
};
pub(crate) use provider_id::ids_contradict;
pub use reason::{ReasonSource, RemediationReason};
pub use record::{NodeBackup, NodeTaint, RemediationRecord, RemediationStep, StepStamp};
pub(crate) use release_permit::find_identity_problem;
pub use release_permit::{ReleasePermit, WorkloadRelease};
pub use request::{
    MAX_TIMELINE_STEPS, PowerRequest, ProofNote, RemediationAttempt, RemediationStrategy,
    RequestStatus, StrategyType,
};
pub use request_target::{HostLinkProblem, host_carrying, sole_host_carrying};
pub use snapshot::{
    FreshReads, HeldRemediationLease, ObservedPower, RemediationMemory, RemediationSnapshot,
    WorkloadLeftovers,
};
pub use stored_backup::{BackupDisposition, BackupVersion, HostBackup, StoredBackup};
pub use truth_table::{RemediationMove, TruthTableInputs, move_by_annotation, move_by_request};
pub use types::{Remediation, RemediationDecision, RemediationSubject};
