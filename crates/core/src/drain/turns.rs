//! Whose turn it is.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Drain;
use super::budgets::Change;
use super::pod::{Name, Pod, Standing};
use super::types::{EvictionId, PodSeen, Try};
use super::waiting::{HeldBy, Turn, Waiting};
use crate::Wake;

impl Drain {
    /// Gives the pods of a changed budget their turn, as many as it has room for. A try that is
    /// under way takes some of that room, and is repeated at once if it is refused: the server may
    /// have judged it before the change.
    pub(super) fn retry_for(&mut self, change: &Change) {
        let concerned = |pod: &PodSeen| change.concerns(pod);
        let mut tried = self.waiting_pods(Waiting::being_tried, concerned);
        tried.truncate(change.room());
        let mut held = self.waiting_pods(Waiting::waits_for_budget, concerned);
        held.truncate(change.room() - tried.len());
        self.retry(&tried, &held);
    }

    /// A watch on the budgets of a namespace begins. What held a pod up may have gone between its
    /// refusal and that moment, and then no change will ever tell.
    pub(super) fn retry_uncovered(&mut self, namespace: &str) {
        let uncovered =
            |pod: &PodSeen| pod.pod.namespace == namespace && self.budgets.covering(pod).is_empty();
        let tried = self.waiting_pods(Waiting::being_tried, uncovered);
        let held = self.waiting_pods(Waiting::waits_for_budget, uncovered);
        self.retry(&tried, &held);
    }

    fn retry(&mut self, tried: &[Name], held: &[Name]) {
        for key in tried {
            if let Some(Standing::Waits(waiting)) = self.standing(key) {
                waiting.outdate();
            }
        }
        for key in held {
            self.take_turn(key);
        }
    }

    fn waiting_pods(
        &self,
        what: impl Fn(&Waiting) -> bool,
        of: impl Fn(&PodSeen) -> bool,
    ) -> Vec<Name> {
        self.pods
            .iter()
            .filter(|(_, pod)| pod.waiting().is_some_and(&what) && of(&pod.seen))
            .map(|(key, _)| key.clone())
            .collect()
    }

    fn standing(&mut self, key: &Name) -> Option<&mut Standing> {
        self.pods.get_mut(key).map(|pod| &mut pod.standing)
    }

    pub(super) fn end_pauses(&mut self, now: Duration) {
        let over = |waiting: &Waiting| matches!(waiting.turn, Turn::Paused(until) if until <= now);
        for key in self.waiting_pods(over, |_| true) {
            self.take_turn(&key);
        }
    }

    pub(super) fn take_turn(&mut self, key: &Name) {
        let place = self.places;
        if let Some(Standing::Waits(waiting)) = self.standing(key) {
            waiting.turn = Turn::Ready(place);
            self.queue.insert(place, key.clone());
            self.places += 1;
        }
    }

    pub(super) fn start_tries(&mut self) -> Vec<Try> {
        let mut tries = Vec::new();
        while self.calls.len() < self.config.in_flight.max(1) {
            let Some((place, key)) = self.queue.pop_first() else {
                break;
            };
            let Some(pod) = self.pods.get_mut(&key) else {
                continue;
            };
            let Standing::Waits(waiting) = &mut pod.standing else {
                continue;
            };
            if waiting.turn != Turn::Ready(place) {
                continue;
            }
            let id = EvictionId(self.ids);
            self.ids += 1;
            waiting.turn = Turn::Called(id);
            tries.push(Try {
                id,
                pod: pod.seen.pod.clone(),
                way: self.way,
            });
            self.calls.insert(id, key);
        }
        tries
    }

    /// Where a pod is held up by a budget. A pod keeps its namespace watched until it goes, or the
    /// watch would start anew with each of its tries.
    pub(super) fn budget_namespaces(&self) -> BTreeSet<String> {
        let held = |pod: &&Pod| {
            pod.waiting()
                .and_then(|waiting| waiting.held.as_ref())
                .is_some_and(|held| held.by == HeldBy::Budget)
        };
        self.pods
            .values()
            .filter(held)
            .map(|pod| pod.seen.pod.namespace.clone())
            .collect()
    }

    pub(super) fn wake(&self) -> Option<Wake> {
        let pause = |pod: &Pod| match pod.waiting()?.turn {
            Turn::Paused(until) => Some(until),
            Turn::Ready(_) | Turn::Called(_) | Turn::Ending => None,
        };
        let tries = self.pods.values().filter_map(pause).min();
        let wakes = [
            (tries, "a pod that could not be evicted is tried again"),
            (self.lookups.wake(), "a DaemonSet is looked up again"),
            (self.budgets.wake(), "the budgets are listed again"),
            (
                self.trouble.as_ref().map(|trouble| trouble.until),
                "the watch may be mended",
            ),
        ];
        let wakes = wakes
            .into_iter()
            .map(|(at, why)| at.map(|at| Wake { at, why }));
        wakes.fold(None, Wake::earlier)
    }
}
