//! One state of the search, and what can happen next.

use super::PlannedGuard;
use super::coordinator::{CountList, LocalFacts};
use super::time::Clock;
use crate::promise::BrokenPromise;
use crate::value_pool::PoolKey;

/// The size of a world.
#[derive(Debug, Clone)]
pub struct PlannedConfig {
    /// `maxUnavailable` of each node's coordinator.
    pub maxima: Vec<u32>,
    pub slots: u32,
    /// How many writes may lose their answer, be late, or arrive twice.
    pub faults: u8,
    pub crashes: u8,
    /// How often people cordon or uncordon.
    pub foreign: u8,
    /// Nodes whose sentinel is there from the start.
    pub wanting: Vec<bool>,
    /// The sentinel outlives a boot.
    pub sentinel_stays: bool,
    /// Somebody has cordoned the last node before the world begins.
    pub last_is_cordoned: bool,
    /// Node 0 is remediated: its Node is deleted and comes back.
    pub remediation: bool,
    pub without: Option<PlannedGuard>,
}

impl PlannedConfig {
    pub fn count_list(&self) -> CountList {
        match self.without {
            Some(PlannedGuard::CountAfterWin) => CountList::AnyTime,
            Some(_) | None => CountList::AfterWin,
        }
    }

    /// Nodes with these maxima that all want a reboot, as many slots as the largest one, and no
    /// misfortunes.
    pub fn new(maxima: &[u32]) -> Self {
        Self {
            maxima: maxima.to_vec(),
            slots: maxima.iter().copied().max().unwrap_or(1),
            faults: 0,
            crashes: 0,
            foreign: 0,
            wanting: vec![true; maxima.len()],
            sentinel_stays: false,
            last_is_cordoned: false,
            remediation: false,
            without: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlannedState {
    pub(super) nodes: Vec<Option<PoolKey>>,
    pub(super) leases: Vec<PoolKey>,
    pub(super) coordinators: Vec<Option<PoolKey>>,
    pub(super) hosts: Vec<HostState>,
    /// Writes on their way; sorted, so that their order makes no other state.
    pub(super) late: Vec<PoolKey>,
    pub(super) remediation: RemediationStage,
    pub(super) faults: u8,
    pub(super) crashes: u8,
    pub(super) foreign: u8,
    pub(super) broken: Option<BrokenPromise>,
}

impl PlannedState {
    pub fn describe_broken(&self) -> String {
        self.broken
            .as_ref()
            .map(|broken| broken.how.to_owned())
            .unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CordonOwner {
    Nobody,
    Ours,
    Foreign,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostState {
    pub boot: u8,
    pub runs: u8,
    pub local: LocalFacts,
    /// The reboot command was started, and the kernel has not booted since.
    pub pending: bool,
    /// The attempts whose command was started in this boot.
    pub commands: Vec<u8>,
    /// A boot that our command caused has served the sentinel.
    pub served: bool,
    pub cordon: CordonOwner,
    /// The remediation of node 0 had its Lease when this host's node won its own: the count that
    /// follows the win must see it.
    pub won_beside_remediation: bool,
}

/// How far the remediation of node 0 is. Each step is one write or one act of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RemediationStage {
    None,
    /// `dogwatch-remedy-n0` is held.
    LeaseTaken,
    /// The Node says that it is being fenced.
    Marked,
    /// The machine is off.
    Off,
    NodeDeleted,
    /// The machine has booted; its Node is another one.
    Returned,
    /// The Lease is free again.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    Good,
    AnswerLost,
    Delayed,
    /// It lands and is answered; a copy arrives later.
    Doubled,
    CrashAfter,
    CrashDelayed,
}

impl Fate {
    pub const FAULTS: [Fate; 5] = [
        Fate::AnswerLost,
        Fate::Delayed,
        Fate::Doubled,
        Fate::CrashAfter,
        Fate::CrashDelayed,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlannedAction {
    /// The watch shows the coordinator its Node.
    SeeNode(u8),
    /// The watch shows it the Leases.
    SeeLeases(u8),
    /// The count's list of all Leases is answered.
    ListLeases(u8),
    /// The count's list of nodes is answered.
    ListNodes(u8),
    /// One read of a holder's Node is answered.
    LookAtHolder(u8),
    /// It decides and acts; `fate` is that of the write numbered `which`.
    Act {
        node: u8,
        clock: Clock,
        which: u8,
        fate: Fate,
    },
    Crash(u8),
    /// The kernel boots.
    Boot(u8),
    /// The kubelet posts Ready and the boot id.
    Kubelet(u8),
    PodGoes(u8),
    Cordon(u8),
    Uncordon(u8),
    /// A write that was late, or a copy, arrives.
    Arrive(u8),
    /// It never arrives.
    Lose(u8),
    Remediate,
    /// A person reboots a node whose condition asks for that.
    BootByHand(u8),
    /// A lock that no live run stands behind is freed: a stand-in for the healer, whose own decisions
    /// are not in this world.
    Heal(u8),
}

impl PlannedAction {
    /// Whether the action is a misfortune that need not happen.
    pub fn is_misfortune(self) -> bool {
        match self {
            PlannedAction::Act { fate, .. } => fate != Fate::Good,
            PlannedAction::Crash(_)
            | PlannedAction::Cordon(_)
            | PlannedAction::Uncordon(_)
            | PlannedAction::Lose(_) => true,
            PlannedAction::SeeNode(_)
            | PlannedAction::SeeLeases(_)
            | PlannedAction::ListLeases(_)
            | PlannedAction::ListNodes(_)
            | PlannedAction::LookAtHolder(_)
            | PlannedAction::Boot(_)
            | PlannedAction::Kubelet(_)
            | PlannedAction::PodGoes(_)
            | PlannedAction::Arrive(_)
            | PlannedAction::Remediate
            | PlannedAction::BootByHand(_)
            | PlannedAction::Heal(_) => false,
        }
    }
}
