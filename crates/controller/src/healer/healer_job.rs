//! One job for one object: reads, at most one write, and the Events and conditions that follow.

use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::healer::{
    ApiLockRead, HealerAction, HealingCase, HealingSubject, NodeRead, ObservedNodeHost,
    ObservedReturnGates,
};
use dogwatch_core::lock::{HolderId, ObservedLease};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::{ObservedHolderNode, ObservedNode, RebootReason};
use dogwatch_k8s::healer::{HealerClient, HealerEventSubject};
use dogwatch_runtime::clock::ProcessClock;
use tracing::info;

use super::{describe_action, observer};
use crate::leader::LeadershipHandle;

/// The result of one API call.
#[derive(Debug)]
pub(super) enum HealerCallResult {
    WroteNode(Box<ObservedNode>),
    WroteConditions(Box<ObservedNode>),
    WroteApiNode(HolderId),
    WroteLease(Box<ObservedLease>),
    ReadNode(NodeName, Box<NodeRead>),
    ReadHolder(ObservedHolderNode),
    ReadApi(HolderId, Box<ApiLockRead>),
    ReadGates(NodeName, ObservedReturnGates),
    ReadHosts(NodeName, ObservedNodeHost),
    AskedHost(NodeName),
}

impl HealerCallResult {
    pub(super) fn is_read(&self) -> bool {
        match self {
            HealerCallResult::ReadNode(..)
            | HealerCallResult::ReadHolder(_)
            | HealerCallResult::ReadApi(..)
            | HealerCallResult::ReadGates(..)
            | HealerCallResult::ReadHosts(..) => true,
            HealerCallResult::WroteNode(_)
            | HealerCallResult::WroteConditions(_)
            | HealerCallResult::WroteApiNode(_)
            | HealerCallResult::WroteLease(_)
            | HealerCallResult::AskedHost(_) => false,
        }
    }
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HealerWriteResult {
    Done,
    /// An object that the write relied on has changed, so nothing was written.
    Changed,
    Failed,
}

impl HealerWriteResult {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            HealerWriteResult::Done => "done",
            HealerWriteResult::Changed => "changed",
            HealerWriteResult::Failed => "failed",
        }
    }
}

pub(super) struct HealerJobResult {
    pub(super) subject: HealingSubject,
    pub(super) reason: RebootReason,
    pub(super) facts: Vec<HealerCallResult>,
    pub(super) said: Vec<DecisionEvent>,
    /// `None` if the job wrote nothing.
    pub(super) end: Option<HealerWriteResult>,
    /// After an error the object pauses.
    pub(super) trouble: Option<String>,
}

pub(super) struct HealerJob {
    pub(super) client: HealerClient,
    pub(super) clock: ProcessClock,
    pub(super) leadership: LeadershipHandle,
    pub(super) policies: ClusterPolicies,
    pub(super) about: Option<HealerEventSubject>,
    pub(super) zone: Option<String>,
    pub(super) node: Option<ObservedNode>,
    pub(super) conditions: Vec<ConditionWrite>,
    pub(super) events: Vec<DecisionEvent>,
    pub(super) case: HealingCase,
}

impl HealerJob {
    pub(super) fn has_no_work(&self) -> bool {
        let decision = &self.case.decision;
        let quiet = self.conditions.is_empty() && self.events.is_empty();
        decision.actions.is_empty() && decision.observe.is_empty() && quiet
    }

    pub(super) async fn run_job(self) -> HealerJobResult {
        let mut done = HealerJobResult {
            subject: self.case.subject.clone(),
            reason: self.case.decision.cause.reason,
            facts: Vec::new(),
            said: Vec::new(),
            end: None,
            trouble: None,
        };
        self.perform_observations(&mut done).await;
        if done.trouble.is_none() {
            self.perform_first_action(&mut done).await;
        }
        if done.trouble.is_none() && done.end.is_none() {
            self.patch_conditions(&mut done).await;
        }
        if done.trouble.is_none() {
            self.report_events(&mut done).await;
        }
        done
    }

    async fn perform_observations(&self, done: &mut HealerJobResult) {
        for look in &self.case.decision.observe {
            match self.perform_observation(look).await {
                Ok(fact) => done.facts.extend(fact),
                Err(error) => done.trouble = Some(error.error_chain()),
            }
        }
    }

    /// Performs one write, if this process still leads. The case is then decided anew.
    async fn perform_first_action(&self, done: &mut HealerJobResult) {
        let Some(action) = self.case.decision.actions.first() else {
            return;
        };
        if self.leadership.current_term().is_none() {
            done.trouble = Some("this process is no longer the leader".into());
            return;
        }
        let why = &self.case.decision.cause;
        info!(object = %observer::format_subject(&done.subject), reason = why.reason.as_str(), why = why.message, "{}", describe_action(action));
        let end = match self.perform_action(action).await {
            Ok(Some(fact)) => {
                done.facts.push(fact);
                HealerWriteResult::Done
            }
            Ok(None) if matches!(action, HealerAction::DeletePresence { .. }) => {
                HealerWriteResult::Done
            }
            Ok(None) => {
                done.trouble = Some("the object has changed since it was read".into());
                HealerWriteResult::Changed
            }
            Err(error) => {
                done.trouble = Some(error.error_chain());
                HealerWriteResult::Failed
            }
        };
        done.end = Some(end);
    }

    /// Writes the conditions. After a write they are decided anew first.
    async fn patch_conditions(&self, done: &mut HealerJobResult) {
        let Some(node) = self.node.as_ref().filter(|_| !self.conditions.is_empty()) else {
            return;
        };
        if self.leadership.current_term().is_none() {
            return;
        }
        let now = self.clock.now();
        match self
            .client
            .patch_conditions(node, &self.conditions, now)
            .await
        {
            Ok(node) => done
                .facts
                .push(HealerCallResult::WroteConditions(Box::new(node))),
            Err(error) => done.trouble = Some(error.error_chain()),
        }
    }

    async fn report_events(&self, done: &mut HealerJobResult) {
        let Some(about) = &self.about else {
            return;
        };
        for event in &self.events {
            if self.leadership.current_term().is_none() {
                return;
            }
            match self
                .client
                .write_event(about, event, self.clock.now())
                .await
            {
                Ok(()) => done.said.push(event.clone()),
                Err(error) => done.trouble = Some(error.error_chain()),
            }
        }
    }
}
