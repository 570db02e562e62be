//! One state of the search, and what can happen next.

use dogwatch_core::power::PowerCommand;

use super::PowerGuard;
use crate::promise::BrokenPromise;
use crate::value_pool::PoolKey;

/// How many misfortunes of each kind there are.
#[derive(Debug, Clone, Default)]
pub struct PowerOffConfig {
    /// For how many ticks the BMC reports the contrary of what is true.
    pub lies: u8,
    /// Commands that fail, run late or are not answered; status writes that do so; failed readings.
    pub faults: u8,
    /// How often another process takes over the lead.
    pub takeovers: u8,
    /// How often the key is removed or put back.
    pub key_changes: u8,
    /// How many ticks pass while the leader has something to do, or has not seen the host.
    pub delays: u8,
    pub without: Option<PowerGuard>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PowerOffState {
    /// The host as the API server stores it.
    pub(super) stored: PoolKey,
    pub(super) leader: PoolKey,
    /// The leader before it. Kept only where it still acts, which no guard would let it.
    pub(super) deposed: Option<PoolKey>,
    pub(super) late_writes: Vec<PoolKey>,
    /// Commands that the BMC may still run.
    pub(super) at_bmc: Vec<CommandAtBmc>,
    /// Ids of commands that were sent, as far as anything still names them.
    pub(super) sent: Vec<String>,
    pub(super) running: bool,
    pub(super) is_lying: bool,
    pub(super) left: MisfortunesLeft,
    pub(super) broken: Option<BrokenPromise>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MisfortunesLeft {
    pub lies: u8,
    pub faults: u8,
    pub takeovers: u8,
    pub key_changes: u8,
    pub delays: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandAtBmc {
    pub turns_on: bool,
    pub ticks_left: u8,
}

impl CommandAtBmc {
    pub fn new(command: PowerCommand, ticks_left: u8) -> Self {
        Self {
            turns_on: command == PowerCommand::On,
            ticks_left,
        }
    }
}

impl PowerOffState {
    pub fn describe_broken(&self) -> String {
        let broken = self.broken.as_ref();
        broken.map_or_else(String::new, |broken| broken.how.to_owned())
    }
}

/// What becomes of a reading, a write or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerFate {
    Good,
    /// A reading fails; a command is refused and has no effect.
    Fails,
    /// A write lands and its answer is lost; a command's call times out, and the BMC may run it.
    AnswerLost,
    /// A write arrives later; a command is accepted, and the BMC runs it later or not at all.
    Late,
    /// The command is accepted, and the answer names no task.
    NoTask,
    /// The process dies after the write landed, or after the command was sent.
    Dies,
    /// The process dies, and its write arrives later.
    DiesLate,
    /// The command is sent before its record is written, and the process dies between the two.
    SentFirst,
}

impl PowerFate {
    pub const OF_WRITE: [PowerFate; 5] = [
        PowerFate::Good,
        PowerFate::AnswerLost,
        PowerFate::Late,
        PowerFate::Dies,
        PowerFate::DiesLate,
    ];
    pub const OF_COMMAND: [PowerFate; 6] = [
        PowerFate::Good,
        PowerFate::Fails,
        PowerFate::AnswerLost,
        PowerFate::Late,
        PowerFate::NoTask,
        PowerFate::Dies,
    ];

    /// Faults and takeovers that it uses up.
    pub fn cost(self) -> (u8, u8) {
        match self {
            PowerFate::Good => (0, 0),
            PowerFate::Fails | PowerFate::AnswerLost | PowerFate::Late | PowerFate::NoTask => {
                (1, 0)
            }
            PowerFate::Dies | PowerFate::SentFirst => (0, 1),
            PowerFate::DiesLate => (1, 1),
        }
    }

    pub fn is_affordable(self, left: MisfortunesLeft) -> bool {
        let (faults, takeovers) = self.cost();
        left.faults >= faults && left.takeovers >= takeovers
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerOffAction {
    /// 5 s pass in which the leader has nothing to do.
    Tick,
    /// 5 s pass in which it does not do what it has to.
    SlowTick,
    /// The watch shows the leader the stored host.
    SeeHost,
    /// What the decision asks for is read, at once.
    Observe(PowerFate),
    /// The BMC begins to report the contrary, until the next tick.
    BeginLie,
    /// The decision's action is performed.
    Act(PowerFate),
    TakeOver,
    RemoveKey,
    AddKey,
    /// The BMC runs a command of unknown end.
    RunLate(u8),
    /// A late write arrives.
    Arrive(u8),
    /// It never arrives.
    Lose(u8),
    /// The leader before this one sends the command that it had decided to send.
    DeposedSends,
}

impl PowerOffAction {
    /// Whether the action is a misfortune, or a change of mind, that need not happen.
    pub fn is_misfortune(self) -> bool {
        match self {
            PowerOffAction::Observe(fate) | PowerOffAction::Act(fate) => fate != PowerFate::Good,
            PowerOffAction::BeginLie
            | PowerOffAction::SlowTick
            | PowerOffAction::TakeOver
            | PowerOffAction::RemoveKey
            | PowerOffAction::AddKey
            | PowerOffAction::Lose(_)
            | PowerOffAction::DeposedSends => true,
            PowerOffAction::Tick
            | PowerOffAction::SeeHost
            | PowerOffAction::RunLate(_)
            | PowerOffAction::Arrive(_) => false,
        }
    }
}
