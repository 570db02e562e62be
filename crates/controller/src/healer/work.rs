//! One object's work: reads that were asked for, one write, and what is to be said.

use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::heal::{Action, ApiRead, Case, GatesSeen, HostsSeen, NodeRead, Subject};
use dogwatch_core::lock::{HolderId, LeaseSeen};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policies;
use dogwatch_core::reboot::{HolderSeen, NodeSeen};
use dogwatch_k8s::heal::{About, HealClient};
use dogwatch_process::clock::Clock;
use tracing::info;

use super::{eyes, verb};
use crate::leader::Leadership;

/// What a call has answered.
#[derive(Debug)]
pub(super) enum Fact {
    WroteNode(Box<NodeSeen>),
    WroteConditions(Box<NodeSeen>),
    WroteApiNode(HolderId),
    WroteLease(Box<LeaseSeen>),
    ReadNode(NodeName, Box<NodeRead>),
    ReadHolder(HolderSeen),
    ReadApi(HolderId, Box<ApiRead>),
    ReadGates(NodeName, GatesSeen),
    ReadHosts(NodeName, HostsSeen),
    AskedHost(NodeName),
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    /// What it relied on had changed: it did nothing.
    Changed,
    Failed,
}

impl End {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            End::Done => "done",
            End::Changed => "changed",
            End::Failed => "failed",
        }
    }
}

/// What came of it.
pub(super) struct Done {
    pub(super) subject: Subject,
    pub(super) reason: &'static str,
    pub(super) facts: Vec<Fact>,
    pub(super) said: Vec<Event>,
    /// How its write ended, if there was one.
    pub(super) end: Option<End>,
    /// What went wrong; it pauses then.
    pub(super) trouble: Option<String>,
}

/// One object's work.
pub(super) struct Job {
    pub(super) client: HealClient,
    pub(super) clock: Clock,
    pub(super) leadership: Leadership,
    pub(super) policies: Policies,
    pub(super) about: Option<About>,
    pub(super) zone: Option<String>,
    pub(super) node: Option<NodeSeen>,
    pub(super) conditions: Vec<Write>,
    pub(super) events: Vec<Event>,
    pub(super) case: Case,
}

impl Job {
    /// Nothing to read, do or say.
    pub(super) fn is_nothing(&self) -> bool {
        let decision = &self.case.decision;
        let quiet = self.conditions.is_empty() && self.events.is_empty();
        decision.actions.is_empty() && decision.looks.is_empty() && quiet
    }

    pub(super) async fn run(self) -> Done {
        let mut done = Done {
            subject: self.case.subject.clone(),
            reason: self.case.decision.because.reason,
            facts: Vec::new(),
            said: Vec::new(),
            end: None,
            trouble: None,
        };
        self.read(&mut done).await;
        if done.trouble.is_none() {
            self.act(&mut done).await;
        }
        if done.trouble.is_none() && done.end.is_none() {
            self.tell(&mut done).await;
        }
        if done.trouble.is_none() {
            self.say(&mut done).await;
        }
        done
    }

    async fn read(&self, done: &mut Done) {
        for look in &self.case.decision.looks {
            match self.look(look).await {
                Ok(fact) => done.facts.extend(fact),
                Err(error) => done.trouble = Some(error.in_words()),
            }
        }
    }

    /// One write, if this process still leads. What follows from it is decided anew.
    async fn act(&self, done: &mut Done) {
        let Some(action) = self.case.decision.actions.first() else {
            return;
        };
        if self.leadership.leads().is_none() {
            done.trouble = Some("this process does not lead any more".into());
            return;
        }
        let why = &self.case.decision.because;
        info!(object = %eyes::words(&done.subject), reason = why.reason, why = why.message, "{}", verb(action));
        let end = match self.perform(action).await {
            Ok(Some(fact)) => {
                done.facts.push(fact);
                End::Done
            }
            Ok(None) if matches!(action, Action::DeletePresence { .. }) => End::Done,
            Ok(None) => {
                done.trouble = Some("it has changed since it was seen".into());
                End::Changed
            }
            Err(error) => {
                done.trouble = Some(error.in_words());
                End::Failed
            }
        };
        done.end = Some(end);
    }

    /// The conditions; after a write they are decided anew.
    async fn tell(&self, done: &mut Done) {
        let Some(node) = self.node.as_ref().filter(|_| !self.conditions.is_empty()) else {
            return;
        };
        if self.leadership.leads().is_none() {
            return;
        }
        let now = self.clock.now();
        match self
            .client
            .patch_conditions(node, &self.conditions, now)
            .await
        {
            Ok(node) => done.facts.push(Fact::WroteConditions(Box::new(node))),
            Err(error) => done.trouble = Some(error.in_words()),
        }
    }

    async fn say(&self, done: &mut Done) {
        let Some(about) = &self.about else {
            return;
        };
        for event in &self.events {
            if self.leadership.leads().is_none() {
                return;
            }
            match self.client.say(about, event, self.clock.now()).await {
                Ok(()) => done.said.push(event.clone()),
                Err(error) => done.trouble = Some(error.in_words()),
            }
        }
    }
}
