//! A BMC as a test wants it.

use crate::power::*;

/// How a BMC takes the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Answered, and run after so many milliseconds.
    Runs(u64),
    /// Answered by 202 without a task, and run after so many milliseconds.
    NamesNoTask(u64),
    /// The same, answered after so many milliseconds, when it has run.
    NamesNoTaskLate(u64),
    /// Answered, and never run.
    Ignores,
    /// Refused.
    Fails(Class),
    /// No answer for `after` milliseconds; run so long after it was received, or not at all.
    Silent { after: u64, runs: Option<u64> },
}

/// How a BMC answers the next reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Truth,
    Lie(Reading),
    Fails(Class),
    Slow(u64),
}

#[derive(Debug)]
pub(crate) struct Bmc {
    pub(crate) gives: bool,
    pub(crate) takes: Vec<Takes>,
    pub(crate) says: Vec<Says>,
    pub(crate) default_takes: Takes,
    pub(crate) default_says: Says,
    /// How long the operating system takes to shut down; `None`: it never does.
    pub(crate) shuts_down: Option<u64>,
    /// Commands that will be run: when, and which.
    pub(crate) pending: Vec<(u64, Command)>,
    /// When the operating system, which was asked to shut down, has done so.
    pub(crate) shut_down_at: Option<u64>,
}

/// When a call ends, and how.
pub(crate) type Ends<T> = (u64, Result<T, Fault>);

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

    pub(crate) fn say(&mut self, time: u64) -> Ends<Reading> {
        let truth = if self.gives {
            Reading::On
        } else {
            Reading::Off
        };
        let says = if self.says.is_empty() {
            self.default_says
        } else {
            self.says.remove(0)
        };
        match says {
            Says::Truth => (time, Ok(truth)),
            Says::Lie(reading) => (time, Ok(reading)),
            Says::Fails(class) => (time, Err(Fault::harmless(class, "no"))),
            Says::Slow(takes) => (time + takes, Ok(truth)),
        }
    }

    pub(crate) fn take(&mut self, command: Command, time: u64) -> Ends<Answer> {
        let takes = if self.takes.is_empty() {
            self.default_takes
        } else {
            self.takes.remove(0)
        };
        let is_there = self.gives != command.is_off();
        match takes {
            Takes::Runs(_) if is_there => (time + 5, Ok(Answer::AlreadyThere)),
            Takes::Runs(after) => {
                self.will_run(command, time + after);
                (time + 5, Ok(Answer::Accepted))
            }
            Takes::NamesNoTask(after) => {
                self.will_run(command, time + after);
                (time + 5, Ok(Answer::AcceptedWithoutTask))
            }
            Takes::NamesNoTaskLate(after) => {
                self.will_run(command, time + after);
                (time + after, Ok(Answer::AcceptedWithoutTask))
            }
            Takes::Ignores => (time + 5, Ok(Answer::Accepted)),
            Takes::Fails(class) => (time + 5, Err(Fault::harmless(class, "no"))),
            Takes::Silent { after, runs } => {
                if let Some(late) = runs {
                    self.will_run(command, time + late);
                }
                let fault = Fault::unknown_end(Class::TimedOut, "no answer");
                (time + after, Err(fault))
            }
        }
    }

    fn will_run(&mut self, command: Command, at: u64) {
        self.pending.push((at, command));
    }

    /// Runs what is due.
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

    fn run_one(&mut self, command: Command, at: u64) {
        match command {
            Command::On => self.set_power(true),
            Command::Off => self.set_power(false),
            // A machine without power has no operating system that could take the request.
            Command::SoftOff if self.gives => {
                self.shut_down_at = self.shuts_down.map(|takes| at + takes);
            }
            Command::SoftOff => {}
        }
    }

    pub(crate) fn set_power(&mut self, gives: bool) {
        self.gives = gives;
        if !gives {
            self.shut_down_at = None;
        }
    }
}
