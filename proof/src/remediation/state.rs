//! One state of the search, and what can happen next.

use super::RemediationGuard;
use crate::promise::BrokenPromise;
use crate::value_pool::PoolKey;

/// How many misfortunes of each kind there are.
#[derive(Debug, Clone, Default)]
pub struct RemediationWorldConfig {
    /// Writes that lose their answer, or arrive late.
    pub faults: u8,
    pub crashes: u8,
    /// How often the health check marks the Machine, after the first time.
    pub marks: u8,
    /// How often somebody removes the mark.
    pub withdrawals: u8,
    /// The BMC is that of another machine and reports no system UUID: it goes off, and the Node's
    /// machine runs on.
    pub wrong_bmc: bool,
    pub without: Option<RemediationGuard>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemediationWorldState {
    /// The objects as the API server stores them.
    pub(super) stored: PoolKey,
    pub(super) process: PoolKey,
    /// Writes on their way.
    pub(super) late: Vec<PoolKey>,
    pub(super) machine: MachineState,
    pub(super) left: MisfortunesLeft,
    pub(super) broken: Option<BrokenPromise>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MisfortunesLeft {
    pub faults: u8,
    pub crashes: u8,
    pub marks: u8,
    pub withdrawals: u8,
}

/// The real machine, and what the power controller knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MachineState {
    pub running: bool,
    pub power: PowerStage,
    pub boots: u8,
    /// Marks for which the host was not switched off yet.
    pub unserved_marks: u8,
    pub marks_so_far: u8,
}

/// What the power controller knows: a stand-in, whose own decisions are searched in `power_off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerStage {
    On,
    /// Off, and not proved by this process.
    ReadOff,
    /// Proved since a moment ago.
    Proved,
    /// Proved for longer than a silent kubelet may skip renewals.
    ProvedLong,
}

impl RemediationWorldState {
    pub fn describe_broken(&self) -> String {
        let broken = self.broken.as_ref();
        broken.map_or_else(String::new, |broken| broken.how.to_owned())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteFate {
    Good,
    AnswerLost,
    /// It arrives later.
    Late,
    CrashAfter,
}

impl WriteFate {
    pub const ALL: [WriteFate; 4] = [
        WriteFate::Good,
        WriteFate::AnswerLost,
        WriteFate::Late,
        WriteFate::CrashAfter,
    ];

    pub fn is_affordable(self, left: MisfortunesLeft) -> bool {
        match self {
            WriteFate::Good => true,
            WriteFate::AnswerLost | WriteFate::Late => left.faults > 0,
            WriteFate::CrashAfter => left.crashes > 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchedKind {
    Machine,
    Host,
    Node,
    /// The Lease and the stored backup.
    Claims,
}

impl WatchedKind {
    pub const ALL: [WatchedKind; 4] = [
        WatchedKind::Machine,
        WatchedKind::Host,
        WatchedKind::Node,
        WatchedKind::Claims,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemediationWorldAction {
    /// Every read becomes too old, every pause ends.
    Tick,
    /// The watch shows the stored objects of one kind.
    See(WatchedKind),
    /// What the decision about this remediation asks for is read.
    Observe(u8),
    /// Its writes are sent; `fate` is that of the one numbered `which`.
    Act {
        remediation: u8,
        which: u8,
        fate: WriteFate,
    },
    Crash,
    Mark,
    Withdraw,
    /// The power controller switches the host off, because the key is there.
    PowerOff,
    /// It reads off twice.
    ProveOff,
    /// It switches the host on, because no key is there.
    PowerOn,
    /// The kubelet posts Ready and its boot; it registers its Node if there is none.
    Kubelet,
    /// A late write arrives.
    Arrive(u8),
    Lose(u8),
}

impl RemediationWorldAction {
    /// Whether the action is a misfortune, or a change of mind, that need not happen.
    pub fn is_misfortune(self) -> bool {
        match self {
            RemediationWorldAction::Act { fate, .. } => fate != WriteFate::Good,
            RemediationWorldAction::Crash
            | RemediationWorldAction::Mark
            | RemediationWorldAction::Withdraw
            | RemediationWorldAction::Lose(_) => true,
            RemediationWorldAction::Tick
            | RemediationWorldAction::See(_)
            | RemediationWorldAction::Observe(_)
            | RemediationWorldAction::PowerOff
            | RemediationWorldAction::ProveOff
            | RemediationWorldAction::PowerOn
            | RemediationWorldAction::Kubelet
            | RemediationWorldAction::Arrive(_) => false,
        }
    }
}
