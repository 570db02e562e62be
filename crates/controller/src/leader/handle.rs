//! What a component knows of who leads.

use std::time::Duration;

use dogwatch_core::leader::Term;
use dogwatch_process::clock::Clock;
use tokio::sync::watch;

/// Whether this process leads. Clones are the same.
///
/// Asked before each write that acts for the whole cluster: the answer is made from the clock each
/// time, so that a process that slept (stopped, swapped out, suspended) knows before it is told.
#[derive(Clone)]
pub struct Leadership {
    terms: watch::Receiver<Option<Term>>,
    clock: Clock,
}

impl Leadership {
    /// A handle and what it is told by.
    pub fn new(clock: Clock) -> (watch::Sender<Option<Term>>, Leadership) {
        let (sender, terms) = watch::channel(None);
        (sender, Leadership { terms, clock })
    }

    /// The term that is under way now, if this process leads.
    pub fn leads(&self) -> Option<Term> {
        let term = (*self.terms.borrow())?;
        term.lasts(self.clock.now()).then_some(term)
    }

    /// Whether this process leads for at least so long from now, whatever happens: for a command
    /// that takes time and must not outlive the term.
    pub fn leads_for(&self, needed: Duration) -> bool {
        let now = self.clock.now();
        self.leads()
            .is_some_and(|term| now.mono.saturating_add(needed) < term.until.mono)
    }

    /// Until when, by the monotonic clock, this process leads whatever happens.
    pub fn leads_until(&self) -> Option<Duration> {
        self.leads().map(|term| term.until.mono)
    }

    /// Waits until this process leads.
    pub async fn won(&self) -> Term {
        let mut terms = self.terms.clone();
        loop {
            terms.mark_unchanged();
            if let Some(term) = self.leads() {
                return term;
            }
            if terms.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this term is over; one that was renewed in between without a gap is not.
    pub async fn lost(&self, term: Term) {
        let mut terms = self.terms.clone();
        loop {
            terms.mark_unchanged();
            let Some(now) = self.leads().filter(|now| now.number == term.number) else {
                return;
            };
            tokio::select! {
                changed = terms.changed() => if changed.is_err() { return },
                () = self.clock.sleep_until(now.until.mono) => {}
            }
        }
    }

    /// Runs `work` while this process leads, anew in each term, until `stop`. What it was waiting
    /// for is dropped when the term ends: its writes must stand by themselves.
    pub async fn while_leading<W>(&self, stop: &crate::Stop, mut work: impl FnMut(Term) -> W)
    where
        W: Future<Output = ()>,
    {
        loop {
            let term = tokio::select! {
                biased;
                () = stop.told() => return,
                term = self.won() => term,
            };
            tokio::select! {
                biased;
                () = stop.told() => return,
                () = self.lost(term) => {}
                () = work(term) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
