//! One job for one key: the actions of a decision, or its observations, or its Events.

use std::fmt;
use std::sync::Arc;

use dogwatch_core::decision::DecisionEvent;
use futures::stream::{self, StreamExt as _};
use tracing::info;

use super::{CallEnd, DecisionOf, DomainCalls, LoopLimits};
use crate::leadership::LeadershipHandle;

const NOT_LEADING_MESSAGE: &str = "this process is no longer the leader";

pub(super) struct KeyJob<Calls: DomainCalls> {
    pub(super) calls: Arc<Calls>,
    pub(super) leadership: LeadershipHandle,
    pub(super) seen: Calls::Snapshot,
    pub(super) decision: DecisionOf<Calls>,
    /// The decision's Events that were not sent yet.
    pub(super) events: Vec<DecisionEvent>,
    pub(super) limits: LoopLimits,
}

pub(super) struct JobResult<Calls: DomainCalls> {
    pub(super) seen: Calls::Snapshot,
    pub(super) decision: DecisionOf<Calls>,
    /// The index of each action that was tried, and how it ended.
    pub(super) ends: Vec<(usize, CallEnd<Calls::Answer>)>,
    pub(super) findings: Vec<Calls::Finding>,
    pub(super) reported: Vec<DecisionEvent>,
    event_error: Option<String>,
}

impl<Calls: DomainCalls> KeyJob<Calls> {
    pub(super) fn has_no_work(&self) -> bool {
        self.decision.actions.is_empty()
            && self.decision.observe.is_empty()
            && self.events.is_empty()
    }

    pub(super) async fn run_job(self, key: &impl fmt::Display) -> JobResult<Calls> {
        let (mut ends, mut findings, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        let mut event_error = None;
        if !self.decision.actions.is_empty() {
            ends = self.perform_actions(key).await;
        } else if !self.decision.observe.is_empty() {
            for what in &self.decision.observe {
                findings.extend(self.calls.perform_observation(&self.seen, what).await);
            }
        } else {
            (reported, event_error) = self.report_events().await;
        }
        JobResult {
            seen: self.seen,
            decision: self.decision,
            ends,
            findings,
            reported,
            event_error,
        }
    }

    async fn perform_actions(
        &self,
        key: &impl fmt::Display,
    ) -> Vec<(usize, CallEnd<Calls::Answer>)> {
        let (actions, cause) = (&self.decision.actions, &self.decision.cause);
        let (reason, why, count) = (cause.reason, &cause.message, actions.len());
        info!(of = self.limits.name, %key, %reason, why, actions = count, "acts");
        // A vector, because the compiler cannot prove that a lazy iterator of these is `Send`.
        let calls = actions.iter().enumerate();
        let calls: Vec<_> = calls
            .map(|(index, it)| self.perform_action(index, it))
            .collect();
        stream::iter(calls)
            .buffer_unordered(self.limits.concurrent_actions)
            .collect()
            .await
    }

    async fn perform_action(
        &self,
        index: usize,
        action: &Calls::Action,
    ) -> (usize, CallEnd<Calls::Answer>) {
        if self.leadership.current_term().is_none() {
            return (index, CallEnd::Failed(NOT_LEADING_MESSAGE.into()));
        }
        let end = self
            .calls
            .perform_action(&self.seen, &self.decision, action)
            .await;
        (index, end)
    }

    /// Sends the Events in order, until one fails.
    async fn report_events(&self) -> (Vec<DecisionEvent>, Option<String>) {
        let mut reported = Vec::new();
        for event in &self.events {
            if self.leadership.current_term().is_none() {
                return (reported, Some(NOT_LEADING_MESSAGE.into()));
            }
            match self.calls.report_event(&self.seen, event).await {
                CallEnd::Done(()) | CallEnd::Changed => reported.push(event.clone()),
                CallEnd::Failed(error) => return (reported, Some(error)),
            }
        }
        (reported, None)
    }
}

impl<Calls: DomainCalls> JobResult<Calls> {
    pub(super) fn first_error(&self) -> Option<&str> {
        let failed = self.ends.iter().find_map(|(_, end)| match end {
            CallEnd::Failed(error) => Some(error.as_str()),
            CallEnd::Done(_) | CallEnd::Changed => None,
        });
        failed.or(self.event_error.as_deref())
    }

    /// Whether a call failed, or met an object that had changed.
    pub(super) fn has_failed(&self) -> bool {
        let mut ends = self.ends.iter();
        self.first_error().is_some() || ends.any(|(_, end)| matches!(end, CallEnd::Changed))
    }

    /// Whether an action was done, so that the next decision need not wait.
    pub(super) fn has_progress(&self) -> bool {
        let mut ends = self.ends.iter();
        ends.any(|(_, end)| matches!(end, CallEnd::Done(_)))
    }
}
