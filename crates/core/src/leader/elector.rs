//! One process' part in the election.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};

use super::types::{LeaderLease, Sight, Step, Term, Write};
use super::{ACT_WITHIN, LEASE, RENEW_EVERY, RETRY_AFTER, SPREAD};
use crate::Now;

/// How many of our own writes are remembered, in case one is seen that was never answered.
const REMEMBERED: usize = 16;

/// What one process saw, wrote and remembers. Nothing of it outlives the process.
#[derive(Debug, Clone)]
pub struct Elector {
    me: String,
    sight: Sight,
    /// When the record that is seen was first seen.
    since: Duration,
    /// Our own writes that may stand there, the newest last.
    sent: Vec<Sent>,
    /// The one that stands there.
    confirmed: Option<Sent>,
    terms: u64,
    /// After a call that failed.
    not_before: Duration,
    /// 0..1, this process' place among those that bid at the same time.
    jitter: f64,
    stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    renewed: Timestamp,
    at: Now,
}

impl Sent {
    fn until(self) -> Now {
        Now {
            mono: self.at.mono.saturating_add(ACT_WITHIN),
            wall: self.at.plus(ACT_WITHIN),
        }
    }
}

impl Elector {
    /// For a process whose identity no other process ever had. `jitter` is in 0..1.
    pub fn new(me: impl Into<String>, jitter: f64) -> Self {
        Self {
            me: me.into(),
            sight: Sight::NotYet,
            since: Duration::ZERO,
            sent: Vec::new(),
            confirmed: None,
            terms: 0,
            not_before: Duration::ZERO,
            jitter: jitter.clamp(0.0, 1.0),
            stopping: false,
        }
    }

    /// Who it is.
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Who leads, as far as it was seen.
    pub fn leader(&self) -> Option<&str> {
        match &self.sight {
            Sight::There(lease) => lease.holder.as_deref(),
            Sight::Missing | Sight::NotYet => None,
        }
    }

    /// The term under way, if this process leads at `now`.
    pub fn term(&self, now: Now) -> Option<Term> {
        if self.stopping {
            return None;
        }
        let term = Term {
            number: self.terms,
            until: self.confirmed?.until(),
        };
        term.lasts(now).then_some(term)
    }

    /// Takes in what a watch, a read or the answer to a write shows.
    pub fn saw(&mut self, sight: Sight, now: Now) {
        if is_older(&sight, &self.sight) {
            return;
        }
        if !same_record(&sight, &self.sight) {
            self.since = now.mono;
        }
        let standing = self.ours(&sight);
        if standing.is_some() && self.term(now).is_none() {
            self.terms += 1;
        }
        self.confirmed = standing;
        self.sight = sight;
    }

    /// A call failed, or had no answer: whether it was done will be seen.
    pub fn failed(&mut self, now: Now) {
        self.not_before = now.mono.saturating_add(RETRY_AFTER);
    }

    /// The process ends: it acts no more, and gives the Lease back if it has it.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// What to do now, while no call is under way. A write counts as sent at `now`.
    pub fn step(&mut self, now: Now) -> Step {
        if now.mono < self.not_before {
            return Step::Wait {
                until: self.not_before,
            };
        }
        match &self.sight {
            Sight::NotYet => Step::Read,
            Sight::Missing if self.stopping => Step::Wait {
                until: Duration::MAX,
            },
            Sight::Missing => Step::Write(Write::Create),
            Sight::There(lease) => {
                let lease = lease.clone();
                self.step_at(lease, now)
            }
        }
    }

    /// Whether nothing is left to be done before the process ends.
    pub fn is_done(&self) -> bool {
        self.stopping && self.confirmed.is_none()
    }

    fn step_at(&mut self, lease: LeaderLease, now: Now) -> Step {
        if self.stopping {
            return match self.confirmed {
                Some(_) => Step::Write(Write::Release { lease }),
                None => Step::Wait {
                    until: Duration::MAX,
                },
            };
        }
        let due = self.due(&lease);
        if now.mono < due {
            return Step::Wait { until: due };
        }
        let renewed = self.sending(&lease, now);
        Step::Write(if self.confirmed.is_some() {
            Write::Renew { lease, renewed }
        } else {
            Write::Take { lease, renewed }
        })
    }

    /// When the next write is due.
    fn due(&self, lease: &LeaderLease) -> Duration {
        match self.confirmed {
            Some(sent) => sent.at.mono.saturating_add(RENEW_EVERY),
            None if lease.released => Duration::ZERO,
            None => self.since + LEASE + SPREAD.mul_f64(self.jitter),
        }
    }

    /// Remembers what is about to be sent.
    fn sending(&mut self, lease: &LeaderLease, now: Now) -> Timestamp {
        let before = self.sent.last().map(|sent| sent.renewed);
        let before = before.max(lease.renewed);
        // As the API server keeps it: to the microsecond.
        let wall = now.wall.round(Unit::Microsecond).unwrap_or(now.wall);
        let tick = SignedDuration::from_micros(1);
        let next = before.and_then(|before| before.checked_add(tick).ok());
        let renewed = next.map_or(wall, |next| next.max(wall));
        self.sent.push(Sent { renewed, at: now });
        let surplus = self.sent.len().saturating_sub(REMEMBERED);
        self.sent.drain(..surplus);
        renewed
    }

    /// Which write of ours this is the result of. The name alone proves nothing.
    fn ours(&self, sight: &Sight) -> Option<Sent> {
        let Sight::There(lease) = sight else {
            return None;
        };
        if lease.holder.as_ref() != Some(&self.me) {
            return None;
        }
        let mut sent = self.sent.iter();
        sent.rfind(|sent| Some(sent.renewed) == lease.renewed)
            .copied()
    }
}

/// A watch may tell what stood before the write whose answer is known already. Versions of one
/// object are ordered (Kubernetes promises it since 1.35, and always kept it).
fn is_older(new: &Sight, known: &Sight) -> bool {
    let (Sight::There(new), Sight::There(known)) = (new, known) else {
        return false;
    };
    let number = |lease: &LeaderLease| lease.resource_version.parse::<u128>().ok();
    new.uid == known.uid
        && matches!((number(new), number(known)), (Some(new), Some(known)) if new < known)
}

/// Whether they say the same of who leads. Labels and the like are not ours to mind: whoever
/// touches them must not keep a dead leader's Lease alive.
fn same_record(a: &Sight, b: &Sight) -> bool {
    match (a, b) {
        (Sight::There(a), Sight::There(b)) => {
            (&a.uid, &a.holder, a.renewed, a.transitions, a.released)
                == (&b.uid, &b.holder, b.renewed, b.transitions, b.released)
        }
        (Sight::Missing, Sight::Missing) | (Sight::NotYet, Sight::NotYet) => true,
        (
            Sight::There(_) | Sight::Missing | Sight::NotYet,
            Sight::There(_) | Sight::Missing | Sight::NotYet,
        ) => false,
    }
}
