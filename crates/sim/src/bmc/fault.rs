//! The faults of a simulated BMC: names, text form and parser ([`SimBmcFault::parse`], `Display`).
//!
//! ```text
//! hang
//! slow 15s of commands 2 times
//! refuses 503 of reads 3 times
//! off-reported-early 20s once
//! ```
//!
//! Source: specification §8; faults of real BMCs are listed in `facts/bmc.md` and
//! `facts/fencing.md` of the project's notes.

use std::time::Duration;

use super::reset::ResetType;

/// A fault of a BMC. It lasts until it is cured or used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimBmcFault {
    pub kind: BmcFaultKind,
    /// Which requests the fault affects. Only kinds for which [`BmcFaultKind::hits_requests`] is
    /// true use it.
    pub scope: FaultScope,
    /// How often the fault takes effect; `None`: until it is cured. Faults of commands count
    /// commands, faults of readings count readings, all others count requests.
    pub times: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScope {
    Anything,
    /// Reads of a system's document.
    Reads,
    Commands,
    Logins,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BmcFaultKind {
    // Faults of requests.
    /// `dead`: nothing accepts connections.
    Dead,
    /// `hang`: the BMC accepts requests and never answers.
    Hang,
    /// `breaks`: the BMC closes the connection instead of answering, and does nothing.
    Breaks,
    /// `half-body`: the BMC sends half an answer, then nothing.
    HalfBody,
    /// `slow 15s`: the BMC carries out the request at once; the answer takes this long.
    Slow(Duration),
    /// `refuses 503`: the BMC answers every request with this status only.
    Refuses(u16),
    /// `garbage`: the BMC carries out the request; the answer is not JSON.
    Garbage,
    /// `redirects`: the BMC redirects every request to another host.
    Redirects,

    // Faults of the BMC itself.
    /// `dies-with-host`: the BMC has power only while its host has (NC-SI, and cheap boards).
    DiesWithHost,
    /// `wrong-credentials`: the BMC's password has changed.
    WrongCredentials,
    /// `sessions-end`: the BMC forgets a session when it is used.
    SessionsEnd,
    /// `foreign-links`: the links in the BMC's documents lead to another host.
    ForeignLinks,
    /// `no-such-system`: the BMC's systems are gone.
    NoSuchSystem,
    /// `clock-ahead 1h`: the BMC's clock is ahead.
    ClockAhead(Duration),
    /// `clock-behind 1h`: the BMC's clock is behind.
    ClockBehind(Duration),

    // Faults of commands.
    /// `lacks GracefulShutdown`: the BMC neither lists nor accepts this reset type.
    Lacks(ResetType),
    /// `already 409`: the status of the answer to a command whose state is already reached.
    Already(u16),
    /// `soft-ignored`: the operating system does not shut down when asked.
    SoftIgnored,
    /// `off-ignored`: the BMC accepts a hard power-off and does nothing.
    OffIgnored,
    /// `on-ignored`: the BMC accepts a power-on and does nothing.
    OnIgnored,
    /// `off-reported-early 20s`: the BMC reports "off" at once; the power goes this much later.
    OffReportedEarly(Duration),
    /// `comes-back 20s`: after a power-off the host switches itself on again, this much later.
    ComesBack(Duration),
    /// `answer-lost 20s`: the BMC carries out the command this much later and never answers.
    AnswerLost(Duration),
    /// `task-never-ends`: the BMC answers with a task and carries out the command; the task runs
    /// forever.
    TaskNeverEnds,
    /// `task-unnamed`: the BMC answers 202 without naming a task, and carries out the command.
    TaskUnnamed,
    /// `task-fails`: the BMC answers with a task, and the task fails.
    TaskFails,

    // Faults of readings.
    /// `power-state Blinking`: the BMC always reports this value. `null` reports JSON null;
    /// `absent` omits the property.
    PowerState(String),
    /// `contradicts`: the BMC reports off, on, off, on, whatever the host's power is.
    Contradicts,
    /// `stale 30s`: the BMC reports the power as it was this long ago.
    Stale(Duration),
}

impl BmcFaultKind {
    /// Returns whether the fault affects requests of any kind, so that a [`FaultScope`] makes
    /// sense.
    pub fn hits_requests(&self) -> bool {
        use BmcFaultKind::{Breaks, Dead, Garbage, HalfBody, Hang, Redirects, Refuses, Slow};
        matches!(
            self,
            Dead | Hang | Breaks | HalfBody | Slow(_) | Refuses(_) | Garbage | Redirects
        )
    }
}

impl From<BmcFaultKind> for SimBmcFault {
    /// Makes a fault that affects everything, until it is cured.
    fn from(what: BmcFaultKind) -> Self {
        Self {
            kind: what,
            scope: FaultScope::Anything,
            times: None,
        }
    }
}

/// The faults of one BMC, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct ActiveFaults(Vec<SimBmcFault>);

impl ActiveFaults {
    pub fn add_fault(&mut self, fault: SimBmcFault) {
        self.0.push(fault);
    }

    /// Removes the faults for which `is_over` returns true.
    pub fn cure_faults(&mut self, is_over: impl Fn(&BmcFaultKind) -> bool) {
        self.0.retain(|fault| !is_over(&fault.kind));
    }

    pub fn active_faults(&self) -> Vec<SimBmcFault> {
        self.0.clone()
    }

    /// Uses the first fault for which `meant` returns a value, and counts it.
    pub fn strike_first<T>(&mut self, meant: impl Fn(&BmcFaultKind) -> Option<T>) -> Option<T> {
        self.strike_in_scope(FaultScope::Anything, meant)
    }

    /// Like [`Self::strike_first`], for faults that affect this kind of request.
    pub fn strike_in_scope<T>(
        &mut self,
        of: FaultScope,
        meant: impl Fn(&BmcFaultKind) -> Option<T>,
    ) -> Option<T> {
        let hit = |fault: &SimBmcFault| {
            let is_in_scope = fault.scope == FaultScope::Anything || fault.scope == of;
            meant(&fault.kind).filter(|_| is_in_scope)
        };
        let (index, struck) =
            (self.0.iter().enumerate()).find_map(|(index, fault)| Some((index, hit(fault)?)))?;
        match &mut self.0[index].times {
            None => {}
            Some(1) => drop(self.0.remove(index)),
            Some(times) => *times -= 1,
        }
        Some(struck)
    }

    /// Returns the first value that `meant` gives for a fault, without counting the fault.
    pub fn find_fault<T>(&self, meant: impl Fn(&BmcFaultKind) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(|fault| meant(&fault.kind))
    }

    /// Returns whether such a fault is active, without counting it.
    pub fn has_fault(&self, meant: impl Fn(&BmcFaultKind) -> bool) -> bool {
        self.0.iter().any(|fault| meant(&fault.kind))
    }
}
