//! Performing actions: each one call, each answer taken in at once.

use dogwatch_core::lock::{self, HolderId, LeaseSeen, LockRecord, Release};
use dogwatch_core::policy;
use dogwatch_core::reboot::{
    self, Action, CommandSeen, NodeFact, NodePatch, NodeSeen, Phase, Record, RecordChange,
};
use dogwatch_k8s::lock::{BidOutcome, Leaving, ReleaseOutcome};
use dogwatch_k8s::{Error, Kind, node};
use tracing::{info, warn};

use super::facts::{self, Fact};
use super::hands::{NotStarted, RebootEnd};
use super::{Agent, Exit};

/// What an action is called among the troubles.
pub(super) const ACTING: &str = "acting";

/// How an action ended.
pub(super) enum Done {
    /// Something is different now: decide again.
    Changed,
    /// It did not work; decide again after a pause.
    Failed,
    /// The API server will not have it; said, and tried again after a pause.
    Refused,
    /// The loop ends.
    Exit(Exit),
}

impl Agent {
    pub(super) async fn perform(&mut self, action: &Action) -> Done {
        match action {
            Action::PatchNode(patch) => self.patch_node(patch).await,
            Action::Bid { lease, record } => self.bid(lease, record).await,
            Action::Release { lease, over_budget } => self.release(lease, *over_budget).await,
            Action::Break { lease, evidence } => self.break_lock(lease, evidence).await,
            Action::Reboot { attempt } => self.reboot(*attempt).await,
            Action::Stop { by } => Done::Exit(Exit::Superseded { by: by.clone() }),
        }
    }

    async fn patch_node(&mut self, patch: &NodePatch) -> Done {
        let NodeFact::There(seen) = self.seen.node.clone() else {
            return Done::Failed;
        };
        self.seen.run.sending(seen.record.get(), patch);
        match node::patch_node(&self.node_client, &seen, patch).await {
            Ok(answer) => {
                self.seen.run.answered(patch, self.clock.now());
                self.note_phase(seen.record.get(), patch);
                self.take_node(&answer)
            }
            Err(error) if error.kind() == Kind::Conflict => self.reread(&seen, &error).await,
            Err(error) => self.failed("patch the Node", &error),
        }
    }

    /// What ended is counted; and what was said of one attempt is said of the next one too, which
    /// may fail like it a day later.
    fn note_phase(&mut self, before: Option<&Record>, patch: &NodePatch) {
        let phase = |record: &Record| (record.phase, record.since);
        match &patch.record {
            RecordChange::Remove => {
                self.events.forget();
                if let (Some(_), Some(last)) = (before, &patch.last) {
                    self.watcher.finished(last);
                }
            }
            RecordChange::Set(record) => {
                let begins = before.map(phase) != Some(phase(record));
                if begins && record.phase == Phase::Draining {
                    self.events.forget();
                }
            }
        }
    }

    /// The Node has changed since it was seen: the newest view decides. If it has not, the conflict
    /// is another one (a webhook's, say), and asking again at once would never end.
    async fn reread(&mut self, seen: &NodeSeen, conflict: &Error) -> Done {
        match node::get_node(&self.client, &self.name).await {
            Ok(Some(answer)) if version_of(&answer) == Some(&seen.resource_version) => {
                self.failed("patch the Node", conflict)
            }
            answer => self.read(answer),
        }
    }

    fn read(&mut self, answer: Result<Option<node::Node>, Error>) -> Done {
        match answer {
            Ok(Some(answer)) => self.take_node(&answer),
            Ok(None) => self.take(Fact::Node(NodeFact::Gone)),
            Err(error) => self.failed("read the Node", &error),
        }
    }

    pub(super) fn take_node(&mut self, answer: &node::Node) -> Done {
        match node::node_seen(answer) {
            Ok(seen) => self.take(Fact::Node(NodeFact::There(Box::new(seen)))),
            Err(error) => {
                warn!(%error, "the API server's answer is no Node that can be read");
                Done::Failed
            }
        }
    }

    fn take(&mut self, fact: Fact) -> Done {
        facts::apply(&mut self.seen, fact, self.clock.now());
        Done::Changed
    }

    async fn bid(&mut self, lease: &LeaseSeen, record: &LockRecord) -> Done {
        let unsettled = self.seen.lock.unsettled.replace(lease.name.clone());
        match self.locks.bid(lease, record).await {
            BidOutcome::Won(won) => {
                info!(lease = won.name, "holds the reboot lock");
                self.seen.lock.unsettled = None;
                self.saw_lease(*won)
            }
            BidOutcome::Lost { .. } => {
                self.seen.lock.unsettled = None;
                self.relist().await
            }
            BidOutcome::Refused(error) => {
                // Nothing of this bid can land; of an earlier one it still may.
                self.seen.lock.unsettled = unsettled;
                self.failed("take the lock", &error)
            }
            BidOutcome::Unknown(error) => self.failed("take the lock", &error),
        }
    }

    /// Somebody else was faster; the watch will tell, but a list is certain.
    async fn relist(&mut self) -> Done {
        match self.locks.list(&self.group()).await {
            Ok(leases) => self.take(Fact::Leases(leases)),
            Err(error) => self.failed("list the group's Leases", &error),
        }
    }

    async fn release(&mut self, lease: &LeaseSeen, over_budget: bool) -> Done {
        match lock::release_plan(lease, &self.seen.run.holder, &self.seen.run.id) {
            Release::Nothing => self.relist().await,
            Release::RemoveRun { remaining } => match self.locks.remove_run(lease, remaining).await
            {
                BidOutcome::Won(left) => self.saw_lease(*left),
                BidOutcome::Lost { .. } => self.relist().await,
                BidOutcome::Unknown(error) | BidOutcome::Refused(error) => {
                    self.failed("leave the lock", &error)
                }
            },
            Release::Free => self.free(lease, over_budget).await,
        }
    }

    async fn free(&mut self, lease: &LeaseSeen, over_budget: bool) -> Done {
        let leaving = if over_budget {
            Leaving::OverBudget
        } else {
            Leaving::Done {
                next: self.next_waiters().await,
            }
        };
        let outcome = self.locks.release(lease, &leaving).await;
        if matches!(outcome, ReleaseOutcome::Freed(_)) {
            info!(lease = lease.name, over_budget, "released the reboot lock");
            self.note_give_back(lease, over_budget);
        }
        self.freed(outcome, "release the lock").await
    }

    async fn freed(&mut self, outcome: ReleaseOutcome, what: &'static str) -> Done {
        match outcome {
            ReleaseOutcome::Freed(free) => self.saw_lease(*free),
            ReleaseOutcome::Changed { .. } => self.relist().await,
            ReleaseOutcome::Unknown(error) | ReleaseOutcome::Refused(error) => {
                self.failed(what, &error)
            }
        }
    }

    /// Whom to call. Without a hint the lock is still safe and live, so trouble here is only said.
    async fn next_waiters(&mut self) -> Vec<HolderId> {
        let (group, policies) = (self.group(), &self.seen.policies);
        match self.locks.waiting_nodes(&group, policies).await {
            Ok(waiters) => {
                let zone = self.zone();
                let me = &self.seen.run.holder;
                lock::hint(&waiters, me, zone.as_deref(), lock::HINT_LENGTH)
            }
            Err(error) => {
                warn!(
                    error = error.in_words(),
                    "cannot see who waits; releasing without calling anybody"
                );
                Vec::new()
            }
        }
    }

    /// Our own zone, where the policy goes by one.
    fn zone(&self) -> Option<String> {
        match &self.seen.node {
            NodeFact::There(node) => policy::zone(&self.seen.policies, &node.labels),
            NodeFact::NotYet | NodeFact::Gone => None,
        }
    }

    async fn break_lock(&mut self, lease: &LeaseSeen, evidence: &str) -> Done {
        let outcome = self.locks.break_lock(lease).await;
        if matches!(outcome, ReleaseOutcome::Freed(_)) {
            warn!(
                lease = lease.name,
                evidence, "cleared a lock whose holder is gone"
            );
        }
        if let ReleaseOutcome::Refused(error) = &outcome
            && error.kind() == Kind::Forbidden
        {
            // A policy lets the controller alone do it; a pause here would only miss our turn.
            let error = error.in_words();
            info!(
                lease = lease.name,
                error, "leaves a lock whose holder is gone to the controller"
            );
            self.seen.run.may_not_break = true;
            return Done::Changed;
        }
        self.freed(outcome, "clear a lock whose holder is gone")
            .await
    }

    fn saw_lease(&mut self, lease: LeaseSeen) -> Done {
        let now = self.clock.now();
        facts::saw_lease(&mut self.seen, lease, now);
        Done::Changed
    }

    async fn reboot(&mut self, attempt: u32) -> Done {
        self.flush_before_reboot().await;
        // A watch whose connection died silently still shows the lock and the record as ours; fresh reads
        // do not. A run that has taken over since counts on it: it waits no longer than a permit lasts.
        let answer = node::get_node(&self.client, &self.name).await;
        for done in [self.read(answer), self.relist().await] {
            if matches!(done, Done::Failed | Done::Refused) {
                return Done::Failed;
            }
        }
        if !self.permit_holds(attempt) {
            return Done::Changed;
        }
        let started = CommandSeen::Started {
            attempt,
            ended: None,
        };
        let before = std::mem::replace(&mut self.seen.run.command, started);
        let within = reboot::permitted_for(&self.seen, self.clock.now());
        match self.hands.reboot(within).await {
            Ok(end) => {
                info!(attempt, "the reboot command was started");
                self.follow_command(attempt, end);
            }
            Err(NotStarted::TooLate(why)) => {
                warn!(
                    attempt,
                    why, "the reboot was not begun in time; checking again"
                );
                self.seen.run.command = before;
            }
            Err(NotStarted::Failed(why)) => {
                self.seen.run.command = CommandSeen::FailedToStart { attempt, why };
            }
        }
        Done::Changed
    }

    /// Saying things took time: the 10 s may be over.
    fn permit_holds(&self, attempt: u32) -> bool {
        let decision = self.decide();
        decision.actions.contains(&Action::Reboot { attempt })
    }

    fn follow_command(&self, attempt: u32, end: futures::future::BoxFuture<'static, RebootEnd>) {
        let facts = self.facts.clone();
        tokio::spawn(async move {
            let fact = match end.await {
                RebootEnd::Ran(end) => Fact::CommandEnded(attempt, end),
                RebootEnd::NeverBegun(why) => Fact::CommandNeverBegun(attempt, why),
            };
            // The loop is gone only when the process ends.
            let _ = facts.send(fact);
        });
    }

    fn failed(&mut self, what: &'static str, error: &Error) -> Done {
        self.watcher.api_failed(error);
        let words = error.in_words();
        warn!(error = words, "failed to {what}");
        match error.kind() {
            Kind::Forbidden | Kind::Refused => {
                let trouble = format!("cannot {what}: {words}");
                self.seen.trouble.insert(ACTING, trouble);
                Done::Refused
            }
            Kind::NotFound
            | Kind::AlreadyExists
            | Kind::Conflict
            | Kind::Gone
            | Kind::Throttled { .. }
            | Kind::Transient => Done::Failed,
        }
    }

    /// After a give-back, wait before the next bid; longer each time in a row.
    fn note_give_back(&mut self, lease: &LeaseSeen, over_budget: bool) {
        let pause = lock::give_back_pause(lease.given_back.saturating_add(1), self.seen.run.jitter);
        self.seen.run.bid_after = over_budget.then(|| self.clock.now().mono + pause);
    }
}

fn version_of(node: &node::Node) -> Option<&String> {
    node.metadata.resource_version.as_ref()
}
