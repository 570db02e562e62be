//! A simulated BMC.

use crate::power::*;

/// How the BMC handles the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Answers, and runs it after this many milliseconds.
    Runs(u64),
    /// Answers with 202 without a task, and runs it after this many milliseconds.
    NamesNoTask(u64),
    /// Answers like `NamesNoTask` after this many milliseconds, when the command has run.
    NamesNoTaskLate(u64),
    /// Answers, and never runs it.
    Ignores,
    Fails(FaultClass),
    /// Does not answer for `after` milliseconds; runs it `runs` milliseconds after receipt, or
    /// never.
    Silent {
        after: u64,
        runs: Option<u64>,
    },
}

/// How the BMC answers the next reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Truth,
    Lie(PowerReading),
    Fails(FaultClass),
    Slow(u64),
}

#[derive(Debug)]
pub(crate) struct Bmc {
    pub(crate) gives: bool,
    pub(crate) takes: Vec<Takes>,
    pub(crate) says: Vec<Says>,
    pub(crate) default_takes: Takes,
    pub(crate) default_says: Says,
    /// How long the operating system takes to shut down, in milliseconds; `None`: it never does.
    pub(crate) shuts_down: Option<u64>,
    /// Commands that will run: when, and which.
    pub(crate) pending: Vec<(u64, PowerCommand)>,
    /// When the operating system will have shut down after a soft power-off.
    pub(crate) shut_down_at: Option<u64>,
}

/// When a call ends, and its result.
pub(crate) type Ends<T> = (u64, Result<T, BmcFault>);

impl Bmc {
    pub(crate) fn new(gives: bool) -> Self {
        Self {
            gives,
            takes: Vec::new(),
            says: Vec::new(),
            default_takes: Takes::Runs(300),
            default_says: Says::Truth,
            shuts_down: Some(20_000),
            pending: Vec::new(),
            shut_down_at: None,
        }
    }

    pub(crate) fn say(&mut self, time: u64) -> Ends<PowerReading> {
        let truth = if self.gives {
            PowerReading::On
        } else {
            PowerReading::Off
        };
        let says = if self.says.is_empty() {
            self.default_says
        } else {
            self.says.remove(0)
        };
        match says {
            Says::Truth => (time, Ok(truth)),
            Says::Lie(reading) => (time, Ok(reading)),
            Says::Fails(class) => (time, Err(BmcFault::without_effect(class, "no"))),
            Says::Slow(takes) => (time + takes, Ok(truth)),
        }
    }

    pub(crate) fn take(&mut self, command: PowerCommand, time: u64) -> Ends<CommandAnswer> {
        let takes = if self.takes.is_empty() {
            self.default_takes
        } else {
            self.takes.remove(0)
        };
        let is_there = self.gives != command.is_power_off();
        match takes {
            Takes::Runs(_) if is_there => (time + 5, Ok(CommandAnswer::AlreadyThere)),
            Takes::Runs(after) => {
                self.will_run(command, time + after);
                (time + 5, Ok(CommandAnswer::Accepted))
            }
            Takes::NamesNoTask(after) => {
                self.will_run(command, time + after);
                (time + 5, Ok(CommandAnswer::AcceptedWithoutTask))
            }
            Takes::NamesNoTaskLate(after) => {
                self.will_run(command, time + after);
                (time + after, Ok(CommandAnswer::AcceptedWithoutTask))
            }
            Takes::Ignores => (time + 5, Ok(CommandAnswer::Accepted)),
            Takes::Fails(class) => (time + 5, Err(BmcFault::without_effect(class, "no"))),
            Takes::Silent { after, runs } => {
                if let Some(late) = runs {
                    self.will_run(command, time + late);
                }
                let fault = BmcFault::with_unknown_effect(FaultClass::TimedOut, "no answer");
                (time + after, Err(fault))
            }
        }
    }

    fn will_run(&mut self, command: PowerCommand, at: u64) {
        self.pending.push((at, command));
    }

    pub(crate) fn run(&mut self, time: u64) {
        self.pending.sort_by_key(|(at, _)| *at);
        let due = self.pending.partition_point(|(at, _)| *at <= time);
        for (at, command) in self.pending.drain(..due).collect::<Vec<_>>() {
            self.run_one(command, at);
        }
        if self.shut_down_at.is_some_and(|at| at <= time) {
            self.set_power(false);
        }
    }

    fn run_one(&mut self, command: PowerCommand, at: u64) {
        match command {
            PowerCommand::On => self.set_power(true),
            PowerCommand::Off => self.set_power(false),
            // Without power there is no operating system that could accept the request.
            PowerCommand::SoftOff if self.gives => {
                self.shut_down_at = self.shuts_down.map(|takes| at + takes);
            }
            PowerCommand::SoftOff => {}
        }
    }

    pub(crate) fn set_power(&mut self, gives: bool) {
        self.gives = gives;
        if !gives {
            self.shut_down_at = None;
        }
    }
}
