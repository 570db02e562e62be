//! What a decision about a host's power starts from: the object, and what this process saw and did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::annotations::{Request, requests};
use super::bmc::{About, Answer, Cost, Fault, Reading};
use super::by_level::ByLevel;
use super::confirmation::CONFIRMED_OFF;
use super::host::{End, Host, HostName};
use super::life::{LifeSeen, SignsOfLife};
use super::witness::HOLD_UP;
use crate::Now;

/// Everything that is known of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The object, as whoever else sees this version of it may have it too.
    pub host: Arc<Host>,
    /// Whose it is.
    pub owner: Owner,
    /// Other hosts that name one of its devices and go before it ([`super::Seniority`]): they keep it.
    pub shared_with: Vec<HostName>,
    /// Other hosts whose BMCs tell the same system UUID ([`super::Systems`]) and that go before it: this one has
    /// the address of another one's machine.
    pub same_system: Vec<HostName>,
    /// Whether there is a way to its BMCs: one answer for each level.
    pub access: Vec<Access>,
    /// What this process saw and did.
    pub memory: Memory,
}

impl Seen {
    /// The object, to be changed for this one alone.
    pub fn host_mut(&mut self) -> &mut Host {
        Arc::make_mut(&mut self.host)
    }
}

/// Whose hosts these are. Source: specification §3.2, "Whose hosts".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Ours.
    Ours,
    /// A live baremetal-operator's: nothing is written, and its BMC is read.
    Theirs {
        /// Who holds its leader Lease.
        leader: String,
    },
    /// Not known yet whether a baremetal-operator lives: nothing is done.
    NotYetKnown,
}

/// Whether a level can be spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Its credentials are there.
    Ready {
        /// How dear a call is.
        cost: Cost,
    },
    /// They are being read.
    NotYet,
    /// They are not to be had, or the address is none: a reason of [`super::reason`], and a sentence
    /// that says what to do.
    Missing {
        /// One word.
        reason: &'static str,
        /// A sentence, without secrets.
        message: String,
    },
}

/// What this process saw of a host's power, and what it did, since it leads. Nothing of it outlives
/// the process or its lead; whoever leads next begins with [`Memory::default`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Memory {
    /// The newest reading of each level, and the one before it, the newest first.
    pub readings: Vec<Read>,
    /// The newest command of this process.
    pub command: Option<Sent>,
    /// The id of a write whose answer did not come: it was never sent, whatever became of the write.
    pub tried: Option<String>,
    /// A command that stands on the host, and is not ours: its id, and when we first saw it.
    pub foreign: Option<(String, Duration)>,
    /// When the newest command of unknown end was given up, or first seen if it is not ours.
    pub loose: Option<Duration>,
    /// The need that the command on the host belongs to, by our own clock.
    pub need: Option<Need>,
    /// What the last check of each level found, by level.
    pub checks: Vec<Option<Check>>,
    /// What the last check that was answered found, by level.
    pub abouts: ByLevel<About>,
    /// By level that was off when it was last read: when the first of the unbroken readings of off was asked.
    pub off_since: ByLevel<Duration>,
    /// By level that has not said off since: when the newest reading that shows that the machine may run was
    /// asked. Readings that failed since do not take it back.
    pub alive: ByLevel<Duration>,
    /// By further level: when the BMC was last asked, while the level was off, and said that the machine runs.
    pub contradicted: ByLevel<Duration>,
    /// The signs of life of the Nodes that it carries.
    pub life: Option<LifeSeen>,
    /// Since when each reboot annotation has been seen with its value: [`Request::id`].
    pub keys: BTreeMap<String, Duration>,
    /// A person's word ([`super::Confirmation`]) as it stands on the host, and since when it has been seen.
    pub word: Option<(String, Duration)>,
}

/// Since when commands are sent for something, in a time that no clock can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// [`super::Intention::since`].
    pub since: Timestamp,
    /// When this process first saw it.
    pub seen: Duration,
    /// How old it was then, by the wall clock.
    pub age: Duration,
}

/// One reading of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Which level.
    pub level: usize,
    /// When it was asked.
    pub asked: Duration,
    /// When it was answered, or given up.
    pub answered: Duration,
    /// What was said.
    pub said: Result<Reading, Fault>,
}

impl Read {
    pub(super) fn is_off(&self) -> bool {
        self.said == Ok(Reading::Off)
    }

    /// Whether it shows that the machine may run. A reading that failed shows nothing.
    pub(super) fn shows_life(&self) -> bool {
        match self.said {
            Ok(Reading::On | Reading::PoweringOn | Reading::PoweringOff) => true,
            Ok(Reading::Off) | Err(_) => false,
        }
    }
}

/// A command whose intention this process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// [`super::Intention::id`].
    pub id: String,
    /// When the answer to the write came.
    pub written: Duration,
    /// When it was sent; `None`: not yet.
    pub sent: Option<Duration>,
    /// How it ended, and when.
    pub ended: Option<(Duration, Result<Answer, Fault>)>,
}

/// What a check of power control found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// When it ended.
    pub at: Duration,
    /// What it found.
    pub found: Result<(), Fault>,
}

/// Whether the BMC may still run a command that ended so.
fn may_still_run(how: &Result<Answer, Fault>) -> bool {
    match how {
        Ok(Answer::AcceptedWithoutTask) => true,
        Ok(Answer::Accepted | Answer::AlreadyThere) => false,
        Err(fault) => fault.may_have_run,
    }
}

/// How many readings of a level are kept.
const KEPT: usize = 2;

impl Memory {
    /// A reading ended.
    pub fn read(&mut self, read: Read) {
        let level = read.level;
        self.note_life(&read);
        // In the order of asking: an answer that comes late is an old one.
        let place = self
            .readings
            .partition_point(|other| other.asked > read.asked);
        self.readings.insert(place, read);
        let mut kept = 0;
        self.readings.retain(|read| {
            let is_same = read.level == level;
            kept += usize::from(is_same);
            !is_same || kept <= KEPT
        });
        self.note_off(level);
    }

    fn note_life(&mut self, read: &Read) {
        let known = self.alive.get(read.level).copied();
        if read.shows_life() {
            let newest = known.map_or(read.asked, |known| known.max(read.asked));
            self.alive.insert(read.level, newest);
        } else if read.is_off() && known.is_some_and(|known| known < read.asked) {
            self.alive.remove(read.level);
        }
        if read.level == 0 {
            self.note_witness(read);
        }
    }

    /// What the BMC says of the levels beside it that are off.
    fn note_witness(&mut self, read: &Read) {
        if read.is_off() {
            self.contradicted.clear();
        }
        if !read.shows_life() {
            return;
        }
        let off = self.off_since.iter().filter(|(level, _)| *level > 0);
        for (level, since) in off {
            if read.asked >= since.saturating_add(HOLD_UP) {
                self.contradicted.insert(level, read.asked);
            }
        }
    }

    /// Since when the level has been off without a break.
    fn note_off(&mut self, level: usize) {
        let mut of_level = self.readings.iter().filter(|read| read.level == level);
        let newest = of_level.next().filter(|read| read.is_off());
        let Some(newest) = newest else {
            self.off_since.remove(level);
            return;
        };
        let older = of_level.next().filter(|read| read.is_off());
        let since = older.map_or(newest.asked, |older| {
            let known = self.off_since.get(level);
            known.map_or(older.asked, |known| older.asked.min(*known))
        });
        self.off_since.insert(level, since);
    }

    /// A status with our command in it is being written. To be called before the write: should its
    /// answer be lost, a command of this id on the host is known never to have been sent.
    pub fn writing(&mut self, id: impl Into<String>) {
        self.tried = Some(id.into());
    }

    /// The host's status, with our command in it, was written: `id` may be sent now.
    pub fn written(&mut self, id: impl Into<String>, now: Duration) {
        self.tried = None;
        self.command = Some(Sent {
            id: id.into(),
            written: now,
            sent: None,
            ended: None,
        });
    }

    /// The command is being sent.
    pub fn sending(&mut self, now: Duration) {
        if let Some(command) = &mut self.command {
            command.sent = Some(now);
        }
    }

    /// The command of this id ended. One that is not the newest any more only leaves behind that the
    /// BMC may still run it.
    pub fn ended(&mut self, id: &str, how: Result<Answer, Fault>, now: Duration) {
        if may_still_run(&how) {
            self.loose = Some(now);
        }
        if let Some(command) = self.command.as_mut().filter(|newest| newest.id == id) {
            command.ended = Some((now, how));
        }
    }

    /// A check of a level ended.
    pub fn checked(&mut self, level: usize, found: Result<About, Fault>, now: Duration) {
        if self.checks.len() <= level {
            self.checks.resize(level + 1, None);
        }
        let found = found.map(|about| self.abouts.insert(level, about));
        self.checks[level] = Some(Check { at: now, found });
    }

    /// The signs of life of the Nodes that it carries were read: asked then.
    pub fn signs_of_life(&mut self, asked: Duration, signs: SignsOfLife) {
        self.life = Some(LifeSeen::saw(self.life.take(), asked, signs));
    }

    /// The host as it stands now: to be called before each decision. A command on it that this process
    /// did not write began before, at an unknown time: it counts from now. So does a key, and a person's
    /// word.
    pub fn saw(&mut self, host: &Host, now: Now) {
        self.saw_keys(host, now.mono);
        self.saw_command(host, now);
    }

    fn saw_keys(&mut self, host: &Host, now: Duration) {
        let there = requests(host);
        let ids = there.iter().map(Request::id);
        self.keys = ids
            .map(|id| {
                let since = self.keys.get(&id).copied().unwrap_or(now);
                (id, since)
            })
            .collect();
        let known = self.word.take();
        let word = host.annotations.get(CONFIRMED_OFF);
        self.word = word.map(|text| {
            known
                .filter(|(known, _)| known == text)
                .unwrap_or_else(|| (text.clone(), now))
        });
    }

    fn saw_command(&mut self, host: &Host, now: Now) {
        let Some(standing) = &host.status.power.command else {
            return;
        };
        if self.need.is_none_or(|need| need.since != standing.since) {
            self.need = Some(Need {
                since: standing.since,
                seen: now.mono,
                age: now.since(standing.since),
            });
        }
        let is_ours = self
            .command
            .as_ref()
            .is_some_and(|ours| ours.id == standing.id);
        let is_known = self
            .foreign
            .as_ref()
            .is_some_and(|(id, _)| *id == standing.id);
        if is_ours || is_known || self.tried.as_ref() == Some(&standing.id) {
            return;
        }
        self.foreign = Some((standing.id.clone(), now.mono));
        let has_unknown_end = matches!(standing.end, End::Open | End::Unknown { .. });
        if has_unknown_end || standing.after_unknown {
            self.loose = Some(now.mono);
        }
    }

    /// The Secret or the address changed: what was found out with the old ones means nothing. A
    /// command to the old address stays known by its [`super::Intention::target`].
    pub fn forget_bmc(&mut self) {
        self.readings.clear();
        self.checks.clear();
        self.abouts.clear();
        self.off_since.clear();
        self.alive.clear();
        self.contradicted.clear();
    }
}
