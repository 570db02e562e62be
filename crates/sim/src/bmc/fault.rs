//! What can be wrong with a BMC. Names, text and back: [`Fault::parse`] and `Display`.
//!
//! ```text
//! hang
//! slow 15s of commands 2 times
//! refuses 503 of reads 3 times
//! off-reported-early 20s once
//! ```
//!
//! Source: specification §8; what was met on real ones is in `facts/bmc.md` and `facts/fencing.md`
//! of the project's notes.

use std::time::Duration;

use super::reset::ResetType;

/// Something wrong with a BMC, until it is cured or used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub what: What,
    /// Which requests it hits. Only those of [`What::hits_requests`] ask for it.
    pub of: Scope,
    /// How often it strikes; `None`: until it is cured. What strikes a command is counted by
    /// commands, what colours a reading by readings, the rest by requests.
    pub times: Option<u32>,
}

/// Which requests a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All.
    Anything,
    /// Reads of a system.
    Reads,
    /// Commands.
    Commands,
    /// Logins.
    Logins,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    // Of requests.
    /// `dead`: nobody listens.
    Dead,
    /// `hang`: requests are taken, and nothing comes of them.
    Hang,
    /// `breaks`: the connection is closed instead of an answer, and nothing was done.
    Breaks,
    /// `half-body`: half an answer, then nothing.
    HalfBody,
    /// `slow 15s`: what is asked is done at once; the answer takes so long.
    Slow(Duration),
    /// `refuses 503`: nothing but this status.
    Refuses(u16),
    /// `garbage`: what is asked is done; the answer is no JSON.
    Garbage,
    /// `redirects`: everything is elsewhere.
    Redirects,

    // Of the BMC.
    /// `dies-with-host`: it has power only while its host has (NC-SI, and cheap boards).
    DiesWithHost,
    /// `wrong-credentials`: it knows another password now.
    WrongCredentials,
    /// `sessions-end`: it forgets a session when it is used.
    SessionsEnd,
    /// `foreign-links`: what it links to is elsewhere.
    ForeignLinks,
    /// `no-such-system`: its systems are gone.
    NoSuchSystem,
    /// `clock-ahead 1h`: its clock.
    ClockAhead(Duration),
    /// `clock-behind 1h`: its clock.
    ClockBehind(Duration),

    // Of commands.
    /// `lacks GracefulShutdown`: it neither names nor takes this kind of reset.
    Lacks(ResetType),
    /// `already 409`: how it answers a command for a state that is there already.
    Already(u16),
    /// `soft-ignored`: the operating system does not shut down.
    SoftIgnored,
    /// `off-ignored`: a hard off is answered well, and nothing comes of it.
    OffIgnored,
    /// `on-ignored`: the same with a power-on.
    OnIgnored,
    /// `off-reported-early 20s`: off is said at once, and is so that much later.
    OffReportedEarly(Duration),
    /// `comes-back 20s`: after an off the host is on again, that much later.
    ComesBack(Duration),
    /// `answer-lost 20s`: the command is carried out that much later; no answer ever comes.
    AnswerLost(Duration),
    /// `task-never-ends`: a task is answered, the command is carried out, the task runs for ever.
    TaskNeverEnds,
    /// `task-unnamed`: 202 is answered, the command is carried out, and no task is named.
    TaskUnnamed,
    /// `task-fails`: a task is answered, and it fails.
    TaskFails,

    // Of readings.
    /// `power-state Blinking`: whatever the host does. `null` and `absent` are what they say.
    PowerState(String),
    /// `contradicts`: off, on, off, on, whatever the host does.
    Contradicts,
    /// `stale 30s`: what was true so long ago.
    Stale(Duration),
}

impl What {
    /// Whether what the BMC says of the power may be false in a way that no driver can tell: what is
    /// proved by readings is proved as far as those hold.
    pub fn lies(&self) -> bool {
        use What::{Contradicts, OffReportedEarly, PowerState, Stale};
        matches!(self, OffReportedEarly(_) | Contradicts | Stale(_))
            || matches!(self, PowerState(word) if word == "Off")
    }

    /// Whether it hits requests whatever they ask for, so that a [`Scope`] makes sense.
    pub fn hits_requests(&self) -> bool {
        use What::{Breaks, Dead, Garbage, HalfBody, Hang, Redirects, Refuses, Slow};
        matches!(
            self,
            Dead | Hang | Breaks | HalfBody | Slow(_) | Refuses(_) | Garbage | Redirects
        )
    }
}

impl From<What> for Fault {
    /// Of anything, until it is cured.
    fn from(what: What) -> Self {
        Self {
            what,
            of: Scope::Anything,
            times: None,
        }
    }
}

impl Fault {
    /// Of these requests only.
    #[must_use]
    pub fn of(self, of: Scope) -> Self {
        Self { of, ..self }
    }

    /// So often only.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        let times = Some(times);
        Self { times, ..self }
    }
}

/// What is wrong with one BMC, in the order in which it went wrong.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    /// It goes wrong from now on.
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Those are over.
    pub fn cure(&mut self, is_over: impl Fn(&What) -> bool) {
        self.0.retain(|fault| !is_over(&fault.what));
    }

    /// What stands.
    pub fn standing(&self) -> Vec<Fault> {
        self.0.clone()
    }

    /// The first that is meant strikes: it is counted.
    pub fn strike<T>(&mut self, meant: impl Fn(&What) -> Option<T>) -> Option<T> {
        self.strike_of(Scope::Anything, meant)
    }

    /// The same, of faults that hit this kind of request.
    pub fn strike_of<T>(&mut self, of: Scope, meant: impl Fn(&What) -> Option<T>) -> Option<T> {
        let hit = |fault: &Fault| {
            let is_in_scope = fault.of == Scope::Anything || fault.of == of;
            meant(&fault.what).filter(|_| is_in_scope)
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

    /// The first that is meant, without counting it.
    pub fn first<T>(&self, meant: impl Fn(&What) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(|fault| meant(&fault.what))
    }

    /// Whether this stands, without counting it.
    pub fn has(&self, meant: impl Fn(&What) -> bool) -> bool {
        self.0.iter().any(|fault| meant(&fault.what))
    }
}
