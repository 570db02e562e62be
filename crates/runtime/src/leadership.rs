//! Lets loops check whether this process leads.

use std::time::Duration;

use dogwatch_core::leader::LeaderTerm;
use tokio::sync::watch;

use crate::clock::ProcessClock;
use crate::stop::StopSignal;

/// Whether this process leads.
///
/// A component checks it before each write that acts for the whole cluster. The answer is computed
/// from the clock each time, so that a process that slept (stopped, swapped out, suspended) knows
/// that its term is over before it is notified.
#[derive(Clone)]
pub struct LeadershipHandle {
    terms: watch::Receiver<Option<LeaderTerm>>,
    clock: ProcessClock,
}

impl LeadershipHandle {
    /// Returns a handle and the sender that updates it.
    pub fn new(clock: ProcessClock) -> (watch::Sender<Option<LeaderTerm>>, LeadershipHandle) {
        let (sender, terms) = watch::channel(None);
        (sender, LeadershipHandle { terms, clock })
    }

    /// The current term, if this process leads.
    pub fn current_term(&self) -> Option<LeaderTerm> {
        let term = (*self.terms.borrow())?;
        term.is_valid_at(self.clock.now()).then_some(term)
    }

    /// Whether this process leads for at least `needed` from now, whatever happens: for a command
    /// that takes time and must not outlive the term.
    pub fn is_leading_for(&self, needed: Duration) -> bool {
        let now = self.clock.now();
        self.current_term()
            .is_some_and(|term| now.mono.saturating_add(needed) < term.until.mono)
    }

    /// The monotonic moment until which this process leads, whatever happens.
    pub fn leading_until(&self) -> Option<Duration> {
        self.current_term().map(|term| term.until.mono)
    }

    pub async fn wait_until_leading(&self) -> LeaderTerm {
        let mut terms = self.terms.clone();
        loop {
            terms.mark_unchanged();
            if let Some(term) = self.current_term() {
                return term;
            }
            if terms.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this term is over. A term that was renewed without a gap is not over.
    pub async fn wait_until_lost(&self, term: LeaderTerm) {
        let mut terms = self.terms.clone();
        loop {
            terms.mark_unchanged();
            let Some(now) = self.current_term().filter(|now| now.number == term.number) else {
                return;
            };
            tokio::select! {
                biased;
                changed = terms.changed() => if changed.is_err() { return },
                () = self.clock.sleep_until(now.until.mono) => {}
            }
        }
    }

    /// Runs `work` while this process leads, anew in each term, until `stop`. The future is dropped
    /// when the term ends, so each of its writes must be complete in itself.
    pub async fn run_while_leading<W>(
        &self,
        stop: &StopSignal,
        mut work: impl FnMut(LeaderTerm) -> W,
    ) where
        W: Future<Output = ()>,
    {
        loop {
            let term = tokio::select! {
                biased;
                () = stop.wait_for_stop() => return,
                term = self.wait_until_leading() => term,
            };
            tokio::select! {
                biased;
                () = stop.wait_for_stop() => return,
                () = self.wait_until_lost(term) => {}
                () = work(term) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
