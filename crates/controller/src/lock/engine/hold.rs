//! From a successful bid to the answer that the client holds the lock.

mod cordon;

use std::time::Duration;

use cordon::LostCordon;
use dogwatch_core::backoff::RetryBackoff;
use dogwatch_core::lock::api_lock::{
    self as rules, ApiNode, CordonInFlight, HoldSnapshot, HoldStep, PolicyDenial,
};
use dogwatch_core::lock::{
    self, BudgetVerdict, COUNT_VALIDITY, GroupBudget, LockRecord, ObservedLease, RECOUNT_PAUSE,
};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::{RebootReason, group_of_lease};
use dogwatch_k8s::lock::BidOutcome;
use dogwatch_k8s::node::{Node, observed_node, watch_node};
use dogwatch_k8s::watch::ObjectEvent;
use dogwatch_k8s::{ApiErrorKind, Error, policy};
use futures::StreamExt as _;

use super::drain::{HostDrain, HostDrainOutcome};
use super::lock_state::LOCK_RETRY_PAUSES;
use super::queue::QueuePlace;
use super::request::PendingLockRequest;
use super::target::LockTarget;

/// How an attempt to take the lock ended. After every outcome but `Granted` the leftovers must be
/// removed.
pub(super) enum HoldOutcome {
    Granted {
        why: String,
    },
    /// Another holder has the lock.
    Denied {
        why: String,
    },
    NotAllowed(PolicyDenial),
    /// Too many nodes of the group are unavailable.
    OverBudget {
        /// Names the unavailable nodes.
        why: String,
    },
    /// Dogwatch may not take this Node.
    Refused {
        /// The reason, and what to do.
        why: String,
    },
    DrainFailed {
        why: String,
    },
    Trouble(Error),
}

struct HoldAttempt {
    target: LockTarget,
    leases: Vec<ObservedLease>,
    /// Monotonic.
    since: Duration,
    verdict: Option<BudgetVerdict>,
    may_go: bool,
    /// When the count that allowed it was here.
    counted_at: Duration,
    has_closed: bool,
    drained: bool,
    note: Option<String>,
    drain: Option<HostDrain>,
    place: Option<QueuePlace>,
    /// Pauses after grants that lost against another write of the Lease.
    lost_grants: RetryBackoff,
    lost_cordon: Option<LostCordon>,
    /// Pauses after cordons that were answered with 409 although nobody changed the Node.
    refused_cordons: RetryBackoff,
}

enum HoldContinuation {
    Look,
    End(HoldOutcome),
}

impl PendingLockRequest {
    /// Writes the request's id on this Lease and does everything that must precede the answer. The
    /// place in the queue is kept until the group was counted: the next waiter here would only find
    /// the group over budget.
    pub(super) async fn acquire_lock(
        &mut self,
        target: LockTarget,
        lease: &ObservedLease,
        place: Option<QueuePlace>,
    ) -> HoldOutcome {
        self.clear_forbidden();
        let lease = match self.bid_for_lease(&target, lease).await {
            Ok(Some(lease)) => lease,
            Ok(None) => return hold_denied("somebody else changed the Lease first"),
            Err(error) => return HoldOutcome::Trouble(error),
        };
        let mut hold = HoldAttempt {
            target,
            leases: vec![lease],
            since: self.shared.now().mono,
            verdict: None,
            may_go: false,
            counted_at: self.shared.now().mono,
            has_closed: false,
            drained: false,
            note: None,
            drain: None,
            place,
            lost_grants: RetryBackoff::default(),
            lost_cordon: None,
            refused_cordons: RetryBackoff::default(),
        };
        let mut fresh = true;
        let mut backoff = RetryBackoff::default();
        loop {
            match self.observe_and_step(&mut hold, fresh).await {
                Ok(HoldContinuation::Look) => backoff.reset(),
                Ok(HoldContinuation::End(held)) => return held,
                Err(error) if self.wait.may_wait() && error.kind() == ApiErrorKind::Transient => {
                    // Other nodes may have failed with the API server: a Node that is not cordoned
                    // yet is counted anew.
                    hold.may_go &= hold.has_closed;
                    tracing::warn!(error = error.error_chain(), holder = %self.cleanup.leftovers.holder, "failed to take a lock; retrying");
                    tokio::time::sleep(backoff.next_pause(LOCK_RETRY_PAUSES)).await;
                }
                Err(error) => return HoldOutcome::Trouble(error),
            }
            fresh = false;
        }
    }

    /// Writes the request's id on a free Lease, or beside those of other requests of the same host.
    async fn bid_for_lease(
        &mut self,
        target: &LockTarget,
        lease: &ObservedLease,
    ) -> Result<Option<ObservedLease>, Error> {
        let record = self.build_lock_record(target, lease);
        let left = &mut self.cleanup.leftovers;
        left.touched = true;
        left.bid = Some(Box::new((lease.clone(), record.clone())));
        let outcome = self
            .shared
            .client_for_holder(&left.holder)
            .bid_for_lease(lease, &record)
            .await;
        let queue = self.shared.queue_of_group(&target.group);
        match outcome {
            BidOutcome::Won(won) => {
                self.cleanup.leftovers.bid = None;
                queue.record_leases([won.as_ref().clone()]);
                Ok(Some(*won))
            }
            BidOutcome::Lost { .. } => {
                self.cleanup.leftovers.bid = None;
                queue.record_leases(self.shared.lock_client().list_slots(&target.group).await?);
                Ok(None)
            }
            BidOutcome::Refused(error) => {
                self.cleanup.leftovers.bid = None;
                Err(error)
            }
            BidOutcome::Unknown(error) => Err(error),
        }
    }

    fn build_lock_record(&self, target: &LockTarget, lease: &ObservedLease) -> LockRecord {
        let node = target.node.as_ref().map(|node| &node.seen);
        let group = group_of_lease(&lease.name).unwrap_or_else(|| target.group.clone());
        let fresh = LockRecord {
            node: node.map(|node| node.name.clone()),
            node_uid: node.map(|node| node.uid.clone()),
            boot_id: node.and_then(|node| node.boot_id.clone()),
            max: match &lease.record {
                // The host has moved to another group, whose maximum says nothing about this one.
                Some(record) if group != target.group => record.max,
                Some(_) | None => max_unavailable_of(target, self.group_size),
            },
            group,
            since: self.shared.now().wall,
            runs: vec![self.cleanup.leftovers.run.clone()],
        };
        rules::adopt_request_record(lease, &self.cleanup.leftovers.run, fresh, |run| {
            self.shared.was_answer_delivered(run)
        })
    }

    async fn observe_and_step(
        &mut self,
        hold: &mut HoldAttempt,
        fresh: bool,
    ) -> Result<HoldContinuation, Error> {
        // The Node is read before the Leases: see `dogwatch_core::lock::api_lock`. The first round
        // reads it in any case: a host that was no Node when the request came may be one by now.
        if hold.target.node.is_some() || fresh {
            hold.target.node = self.read_node().await?;
            self.record_node_state(hold);
            if let Some(refused) = self.pause_after_refused_cordon(hold).await {
                return Ok(HoldContinuation::End(refused));
            }
        }
        if hold.target.node.is_some() || !fresh {
            hold.leases = self.shared.lock_client().list_all_slots().await?;
        }
        let is_counted = self.shared.now().mono <= hold.counted_at + COUNT_VALIDITY;
        hold.may_go &= hold.has_closed || is_counted;
        let left = &self.cleanup.leftovers;
        let seen = HoldSnapshot {
            holder: &left.holder,
            run: &left.run,
            leases: &hold.leases,
            node: hold.target.node.as_ref(),
            verdict: hold.verdict.take(),
            may_go: hold.may_go,
            has_closed: hold.has_closed,
            drained: hold.drained,
        };
        let end = |outcome| Ok(HoldContinuation::End(outcome));
        match rules::decide_hold(&seen, self.shared.now().wall) {
            HoldStep::Lost => end(hold_denied(
                "another holder has taken the lock over, or a person has broken it",
            )),
            HoldStep::Refuse { why } | HoldStep::Unlocked { why } => {
                end(HoldOutcome::Refused { why })
            }
            HoldStep::NodeAppeared { why } => end(hold_denied(&why)),
            HoldStep::OverBudget { why } => end(HoldOutcome::OverBudget { why }),
            HoldStep::NodeGone { why } | HoldStep::Vetoed { why } => {
                end(HoldOutcome::DrainFailed { why })
            }
            HoldStep::Count { lease, why } => self.count_unavailable(hold, &lease, why).await,
            HoldStep::Cordon {
                write,
                needs_allowance,
            } => self.cordon_node(hold, &write, needs_allowance).await,
            HoldStep::Drain { needs_allowance } => Ok(self.drain_node(hold, needs_allowance).await),
            HoldStep::Fenced { why } => {
                hold.drain = None;
                tracing::warn!(holder = %self.cleanup.leftovers.holder, why, "the drain stops: no further pod is evicted");
                if let Some(node) = hold.target.node_name().cloned() {
                    self.wait_until_not_fenced(&node).await;
                }
                Ok(HoldContinuation::Look)
            }
            HoldStep::Answer { lease, record } => self.write_grant(hold, &lease, &record).await,
        }
    }

    /// Updates what is known of our own cordon after a read of the Node.
    fn record_node_state(&mut self, hold: &mut HoldAttempt) {
        let Some(node) = &hold.target.node else {
            return;
        };
        let written = node
            .lock
            .get()
            .is_some_and(|lock| lock.run == self.cleanup.leftovers.run);
        hold.has_closed |= written && node.seen.unschedulable;
        let moved = |version: &String| *version != node.seen.resource_version;
        if matches!(&self.cleanup.leftovers.suspect, CordonInFlight::Version(version) if moved(version))
        {
            self.cleanup.leftovers.suspect = CordonInFlight::No;
        }
    }

    async fn count_unavailable(
        &mut self,
        hold: &mut HoldAttempt,
        lease: &ObservedLease,
        again: Option<String>,
    ) -> Result<HoldContinuation, Error> {
        if again.is_some() {
            tokio::time::sleep(RECOUNT_PAUSE).await;
        }
        // Policies must be as fresh as the count: they say who is a member, how many may be
        // unavailable, and whether now.
        let policies = self.read_fresh_policies().await?;
        hold.target = self.shared.target_under_policies(&hold.target, &policies);
        let allowance = hold.target.allowance_now(&policies, self.shared.now().wall);
        if let Some(not) = PolicyDenial::of_allowance(allowance) {
            return Ok(HoldContinuation::End(HoldOutcome::NotAllowed(not)));
        }
        let group = hold.target.group.clone();
        if group_of_lease(&lease.name).as_ref() != Some(&group) {
            return Ok(HoldContinuation::End(hold_denied(&format!(
                "the host now belongs to group {group}"
            ))));
        }
        let reads = self
            .shared
            .lock_client()
            .read_budget_inputs(lease, &group, &policies)
            .await?;
        let count = lock::count_unavailable_for_node(
            &reads,
            &self.cleanup.leftovers.holder,
            hold.target.node_name(),
        );
        self.group_size = count.members;
        let budget = GroupBudget {
            max: max_unavailable_of(&hold.target, count.members),
        };
        let verdict = lock::decide_budget(
            budget,
            &count,
            lease,
            self.shared.now().mono.saturating_sub(hold.since),
        );
        if verdict == BudgetVerdict::StaleCount {
            hold.leases = self.shared.lock_client().list_all_slots().await?;
        }
        if verdict == BudgetVerdict::Go {
            hold.may_go = true;
            hold.counted_at = self.shared.now().mono;
            hold.place = None;
        }
        hold.verdict = Some(verdict);
        // A host that is no Node needs no further checks: its answer is written on this very
        // version, or not at all.
        if hold.target.node.is_none() && hold.may_go {
            let record = lease.record.as_ref().and_then(|record| {
                rules::mark_request_answered(record, &self.cleanup.leftovers.run)
            });
            return match record {
                Some(record) => self.write_grant(hold, lease, &record).await,
                None => Ok(HoldContinuation::Look),
            };
        }
        Ok(HoldContinuation::Look)
    }

    async fn drain_node(
        &mut self,
        hold: &mut HoldAttempt,
        needs_allowance: bool,
    ) -> HoldContinuation {
        let left = &self.cleanup.leftovers;
        let ours = |leases: &[ObservedLease]| {
            leases.iter().any(|lease| {
                lock::lock_ownership(lease, &left.holder, &left.run) == lock::LockOwnership::Ours
            })
        };
        if hold.drain.is_none() {
            let lease = hold
                .leases
                .iter()
                .find(|lease| ours(std::slice::from_ref(lease)));
            let group = lease.and_then(|lease| group_of_lease(&lease.name));
            let group = group.unwrap_or_else(|| hold.target.group.clone());
            hold.drain = HostDrain::start_drain(&self.shared, &hold.target, &group);
        }
        let Some(drain) = &mut hold.drain else {
            return HoldContinuation::Look;
        };
        self.report_waiting_reason(
            RebootReason::Draining,
            "the host holds the lock; its node is being drained",
        );
        match drain.wait_for_outcome(ours, needs_allowance).await {
            HostDrainOutcome::Done { note } => {
                (hold.drained, hold.note, hold.drain) = (true, note, None);
                HoldContinuation::Look
            }
            HostDrainOutcome::Failed { why } => {
                HoldContinuation::End(HoldOutcome::DrainFailed { why })
            }
            HostDrainOutcome::NotAllowed(not) => {
                HoldContinuation::End(HoldOutcome::NotAllowed(not))
            }
            HostDrainOutcome::Look => HoldContinuation::Look,
        }
    }

    /// Waits until the remediation of the Node is over, or the Node is gone.
    async fn wait_until_not_fenced(&self, name: &NodeName) {
        let client = self.shared.setup.client.clone();
        let mut node = watch_node(client, name.as_str()).boxed();
        while let Some(event) = node.next().await {
            if !is_fenced_event(&event) {
                return;
            }
        }
    }

    /// Writes the grant before the client is answered: from here on the client holds the lock.
    async fn write_grant(
        &mut self,
        hold: &mut HoldAttempt,
        lease: &ObservedLease,
        record: &LockRecord,
    ) -> Result<HoldContinuation, Error> {
        let told = self
            .shared
            .client_for_holder(&self.cleanup.leftovers.holder)
            .bid_for_lease(lease, record)
            .await;
        match told {
            BidOutcome::Won(told) => {
                let holder = &self.cleanup.leftovers.holder;
                let mut why = format!("{holder} holds Lease {}", told.name);
                if let Some(node) = hold.target.node_name() {
                    why = format!("{why}; node {node} is cordoned and drained");
                }
                if let Some(note) = &hold.note {
                    why = format!("{why} ({note})");
                }
                self.shared
                    .queue_of_group(&hold.target.group)
                    .record_leases([*told]);
                Ok(HoldContinuation::End(HoldOutcome::Granted { why }))
            }
            BidOutcome::Lost { .. } => {
                // Another request of the host wrote first, or a person has taken over the field: then
                // the same write would be lost again and again.
                tokio::time::sleep(hold.lost_grants.next_pause(LOCK_RETRY_PAUSES)).await;
                Ok(HoldContinuation::Look)
            }
            BidOutcome::Unknown(error) | BidOutcome::Refused(error) => Err(error),
        }
    }

    /// Publishes the policies to all requests here, so that none decides on older ones.
    async fn read_fresh_policies(&self) -> Result<ClusterPolicies, Error> {
        let shared = &self.shared;
        let is_watch_refused = || shared.policies.is_watch_refused();
        let policies =
            policy::list_policies_beside_watch(&shared.setup.client, is_watch_refused).await?;
        shared.policies.publish_listed(policies.clone());
        Ok(policies)
    }

    async fn read_node(&mut self) -> Result<Option<ApiNode>, Error> {
        self.shared
            .read_node_of(&mut self.cleanup.leftovers.host)
            .await
    }
}

fn is_fenced_event(event: &ObjectEvent<Node>) -> bool {
    let fenced = |node: &Node| observed_node(node).is_ok_and(|node| node.being_fenced);
    match event {
        ObjectEvent::Restarted(nodes) => nodes.first().is_some_and(fenced),
        ObjectEvent::Applied(node) => fenced(node),
        ObjectEvent::Deleted(_) => false,
        // A watch error passes by itself.
        ObjectEvent::Failed(_) => true,
    }
}

/// How many nodes of a group of `members` may be unavailable.
pub(super) fn max_unavailable_of(target: &LockTarget, members: u32) -> u32 {
    let max = target
        .max
        .allowed_nodes(usize::try_from(members).unwrap_or(usize::MAX));
    u32::try_from(max).unwrap_or(u32::MAX)
}

fn hold_denied(why: &str) -> HoldOutcome {
    HoldOutcome::Denied { why: why.into() }
}
