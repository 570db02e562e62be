//! The election as one process sees it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};

use super::types::{ElectionStep, LeaderLease, LeaderLeaseWrite, LeaderTerm, ObservedLeaderLease};
use super::{BID_SPREAD, CALL_RETRY_DELAY, LEASE_DURATION, RENEW_DEADLINE, RENEW_INTERVAL};
use crate::Now;
use crate::resource_version::is_older_version;

/// How many of this process' own writes are remembered, to recognize one whose answer was lost.
const REMEMBERED_WRITES: usize = 16;

/// What one process observed and wrote. Nothing of it outlives the process.
#[derive(Debug, Clone)]
pub struct LeaderElector {
    identity: String,
    observed: ObservedLeaderLease,
    /// What was observed when the call under way was decided.
    observed_at_call: ObservedLeaderLease,
    /// When this process first observed the current record.
    since: Duration,
    /// This process' own writes that may be on the Lease, newest last.
    sent: Vec<SentRenewal>,
    /// The own write that is on the Lease.
    confirmed: Option<SentRenewal>,
    terms: u64,
    /// No call before this monotonic moment, because the last one failed.
    not_before: Duration,
    /// 0..1: this process' place among those that bid at the same time.
    jitter: f64,
    stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SentRenewal {
    renewed: Timestamp,
    at: Now,
}

impl SentRenewal {
    fn term_end(self) -> Now {
        Now {
            mono: self.at.mono.saturating_add(RENEW_DEADLINE),
            wall: self.at.wall_after(RENEW_DEADLINE),
        }
    }
}

impl LeaderElector {
    /// `me` is an identity that no other process ever had. `jitter` is in 0..1.
    pub fn new(me: impl Into<String>, jitter: f64) -> Self {
        Self {
            identity: me.into(),
            observed: ObservedLeaderLease::NotYet,
            observed_at_call: ObservedLeaderLease::NotYet,
            since: Duration::ZERO,
            sent: Vec::new(),
            confirmed: None,
            terms: 0,
            not_before: Duration::ZERO,
            jitter: jitter.clamp(0.0, 1.0),
            stopping: false,
        }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The holder of the Lease as last observed.
    pub fn observed_leader(&self) -> Option<&str> {
        match &self.observed {
            ObservedLeaderLease::There(lease) => lease.holder.as_deref(),
            ObservedLeaderLease::Missing | ObservedLeaderLease::NotYet => None,
        }
    }

    /// The current term, if this process leads at `now`.
    pub fn current_term(&self, now: Now) -> Option<LeaderTerm> {
        if self.stopping {
            return None;
        }
        let term = LeaderTerm {
            number: self.terms,
            until: self.confirmed?.term_end(),
        };
        term.is_valid_at(now).then_some(term)
    }

    /// Takes in the answer to the call that [`Self::next_step`] asked for. If it is older than what
    /// was known when the call was sent, the API server's store was restored from a backup.
    pub fn observe_answer(&mut self, sight: ObservedLeaderLease, now: Now) {
        if is_older_lease(&sight, &self.observed_at_call) {
            self.observed = ObservedLeaderLease::NotYet;
        }
        self.observe_lease(sight, now);
    }

    /// Takes in the Lease from a watch, which may lag behind.
    pub fn observe_lease(&mut self, sight: ObservedLeaderLease, now: Now) {
        if is_older_lease(&sight, &self.observed) {
            return;
        }
        if !is_same_record(&sight, &self.observed) {
            self.since = now.mono;
        }
        let standing = self.confirmed_renewal(&sight);
        if standing.is_some() && self.current_term(now).is_none() {
            self.terms += 1;
        }
        self.confirmed = standing;
        self.observed = sight;
    }

    /// A call failed or was not answered: a later observation will show whether it was carried out.
    pub fn record_call_failure(&mut self, now: Now) {
        self.not_before = now.mono.saturating_add(CALL_RETRY_DELAY);
    }

    /// The process ends: it stops acting, and releases the Lease if it holds it.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// What to do now. Call this only while no call is under way. A write counts as sent at `now`.
    pub fn next_step(&mut self, now: Now) -> ElectionStep {
        if now.mono < self.not_before {
            return ElectionStep::Wait {
                until: self.not_before,
            };
        }
        self.observed_at_call.clone_from(&self.observed);
        match &self.observed {
            ObservedLeaderLease::NotYet => ElectionStep::Read,
            ObservedLeaderLease::Missing if self.stopping => ElectionStep::Wait {
                until: Duration::MAX,
            },
            ObservedLeaderLease::Missing => ElectionStep::Write(LeaderLeaseWrite::Create),
            ObservedLeaderLease::There(lease) => {
                let lease = lease.clone();
                self.step_for_lease(lease, now)
            }
        }
    }

    /// Whether nothing is left to be done before the process ends.
    pub fn is_done(&self) -> bool {
        self.stopping && self.confirmed.is_none()
    }

    fn step_for_lease(&mut self, lease: LeaderLease, now: Now) -> ElectionStep {
        if self.stopping {
            return match self.confirmed {
                Some(_) => ElectionStep::Write(LeaderLeaseWrite::Release { lease }),
                None => ElectionStep::Wait {
                    until: Duration::MAX,
                },
            };
        }
        let due = self.next_write_at(&lease);
        if now.mono < due {
            return ElectionStep::Wait { until: due };
        }
        let renewed = self.record_renewal(&lease, now);
        ElectionStep::Write(if self.confirmed.is_some() {
            LeaderLeaseWrite::Renew { lease, renewed }
        } else {
            LeaderLeaseWrite::Take { lease, renewed }
        })
    }

    fn next_write_at(&self, lease: &LeaderLease) -> Duration {
        match self.confirmed {
            Some(sent) => sent.at.mono.saturating_add(RENEW_INTERVAL),
            None if lease.released => Duration::ZERO,
            None => self.since + LEASE_DURATION + BID_SPREAD.mul_f64(self.jitter),
        }
    }

    /// Remembers the renewal that is about to be sent.
    fn record_renewal(&mut self, lease: &LeaderLease, now: Now) -> Timestamp {
        let before = self.sent.last().map(|sent| sent.renewed);
        let before = before.max(lease.renewed);
        // The API server stores microseconds.
        let wall = now.wall.round(Unit::Microsecond).unwrap_or(now.wall);
        let tick = SignedDuration::from_micros(1);
        let next = before.and_then(|before| before.checked_add(tick).ok());
        let renewed = next.map_or(wall, |next| next.max(wall));
        self.sent.push(SentRenewal { renewed, at: now });
        let surplus = self.sent.len().saturating_sub(REMEMBERED_WRITES);
        self.sent.drain(..surplus);
        renewed
    }

    /// The own write that this observation is the result of. The holder's name alone proves
    /// nothing.
    fn confirmed_renewal(&self, sight: &ObservedLeaderLease) -> Option<SentRenewal> {
        let ObservedLeaderLease::There(lease) = sight else {
            return None;
        };
        if lease.holder.as_ref() != Some(&self.identity) {
            return None;
        }
        let mut sent = self.sent.iter();
        sent.rfind(|sent| Some(sent.renewed) == lease.renewed)
            .copied()
    }
}

/// A watch may show an older version than the answer to a write that is known already.
fn is_older_lease(new: &ObservedLeaderLease, known: &ObservedLeaderLease) -> bool {
    let (ObservedLeaderLease::There(new), ObservedLeaderLease::There(known)) = (new, known) else {
        return false;
    };
    new.uid == known.uid && is_older_version(&new.resource_version, &known.resource_version)
}

/// Whether both name the same leadership. Labels and the like do not count: a writer of labels must
/// not keep a dead leader's Lease alive.
fn is_same_record(a: &ObservedLeaderLease, b: &ObservedLeaderLease) -> bool {
    match (a, b) {
        (ObservedLeaderLease::There(a), ObservedLeaderLease::There(b)) => {
            (&a.uid, &a.holder, a.renewed, a.transitions, a.released)
                == (&b.uid, &b.holder, b.renewed, b.transitions, b.released)
        }
        (ObservedLeaderLease::Missing, ObservedLeaderLease::Missing)
        | (ObservedLeaderLease::NotYet, ObservedLeaderLease::NotYet) => true,
        (
            ObservedLeaderLease::There(_)
            | ObservedLeaderLease::Missing
            | ObservedLeaderLease::NotYet,
            ObservedLeaderLease::There(_)
            | ObservedLeaderLease::Missing
            | ObservedLeaderLease::NotYet,
        ) => false,
    }
}
