//! Takes a coordinator's steps in its place: builds the snapshot that the coordinator would see,
//! and converts its decision. Reasons and messages stay; actions and reads that only the
//! coordinator itself can do are left out.

use crate::reboot::RebootReason;
use std::time::Duration;

use super::healing_case::{HealerAction, HealerDecision, HealerObserve};
use super::node::NodeCase;
use crate::decision::{DecisionEvent, EventSeverity, decision_with_cause};
use crate::lock::{HolderId, LockRecord, ObservedLease};
use crate::name::{BootId, RunId};
use crate::reboot::{
    self, COORDINATOR_CONDITIONS, ObservedLock, ObservedOwnHost, ObservedPhase, OwnNodeState,
    RebootCommandState, RunMemory, TakeoverStep,
};

/// The oldest answer of the return gates that is accepted.
const MAX_GATES_AGE: Duration = Duration::from_secs(30);

impl NodeCase<'_> {
    /// Like [`Self::take_over`]; while the node's boot id is not known, waits for its kubelet.
    pub(super) fn take_over_or_watch(
        &self,
        way: &TakeoverStep,
        why: RebootReason,
        text: String,
    ) -> HealerDecision {
        let unknown = "its boot id is not known";
        self.take_over(way, why, text)
            .unwrap_or_else(|| decision_with_cause(RebootReason::AwaitingKubelet, unknown))
    }

    /// The decision of a coordinator that had just come back.
    pub(super) fn take_over(
        &self,
        way: &TakeoverStep,
        why: RebootReason,
        text: String,
    ) -> Option<HealerDecision> {
        let seen = self.build_coordinator_snapshot()?;
        let flags = reboot::flags_of_coordinator(self.node, &self.ctx.config.flags);
        let decision = reboot::decide_on_behalf(&seen, &flags, self.ctx.now, way, why, text)?;
        Some(self.convert_decision(decision))
    }

    fn build_coordinator_snapshot(&self) -> Option<reboot::RebootSnapshot> {
        let record = self.node.record.get();
        let run = record.map_or_else(unknown_run, |record| record.run.clone());
        let boot_id = self.current_boot_id()?;
        let leases = self.ctx.seen.leases_held_by(&self.node.name);
        Some(reboot::RebootSnapshot {
            node: OwnNodeState::There(Box::new(self.node.clone())),
            host: ObservedOwnHost {
                boot_id: Ok(boot_id),
                // Only the coordinator sees its host; what systemd counts proves nothing here.
                soft_reboots: None,
                triggers: Vec::new(),
            },
            policies: self.ctx.seen.policies.clone(),
            lock: ObservedLock {
                leases: Some(leases.map(|lease| lease_held_by_run(lease, &run)).collect()),
                // Only a maximum in percent needs the size of the group, and the healer takes no
                // lock.
                group_size: Some(1),
                ..ObservedLock::default()
            },
            start_gates: None,
            drain: None,
            attachments: None,
            gates: self.fresh_shut_gates(),
            observation_errors: std::collections::BTreeMap::new(),
            run: self.build_run_memory(run),
        })
    }

    /// The boot id that the kubelet reported; before it has, the boot id in the record.
    fn current_boot_id(&self) -> Option<BootId> {
        let record = || self.node.record.get().map(|record| record.boot_id.clone());
        self.node.boot_id.clone().or_else(record)
    }

    fn build_run_memory(&self, id: RunId) -> RunMemory {
        let phase = self.node.record.get().map(|record| ObservedPhase {
            since: record.since,
            before: Duration::ZERO,
            seen: self.memory.stage_since,
        });
        let usable = self.memory.usable.map(|(since, seen)| ObservedPhase {
            since,
            before: Duration::ZERO,
            seen,
        });
        RunMemory {
            id,
            holder: HolderId::for_node(&self.node.name),
            jitter: 0.5,
            owned_since: Some(self.memory.stage_since),
            phase,
            usable,
            permit: None,
            adopted_attempt: None,
            command: RebootCommandState::None,
            ready_since: self.memory.ready_since(),
            bid_pause: None,
            leftover_lock_released: true,
            refused: false,
            permission_since: None,
            held_back: reboot::HeldBackTime::default(),
            waiting_since: None,
            break_forbidden: false,
            unanswered_patch_version: None,
        }
    }

    /// The answers of the return gates, if asked after our last write: before it the node may have
    /// been cordoned, and a pod that fits only here could not come back.
    fn fresh_shut_gates(&self) -> Option<Vec<String>> {
        let seen = self.ctx.seen.observations.gates.get(&self.node.name)?;
        (seen.taken >= self.gates_newer_than()).then(|| seen.shut.clone())
    }

    fn gates_newer_than(&self) -> Duration {
        let wrote = self.memory.last_own_write.as_ref().map(|(_, at)| *at);
        let fresh = self.ctx.now.mono.saturating_sub(MAX_GATES_AGE);
        wrote.map_or(fresh, |wrote| wrote.max(fresh))
    }

    /// Converts the coordinator's decision: its writes on the Node and on the Leases it holds,
    /// conditions and Events. Reads that only the coordinator can make are left out.
    fn convert_decision(&self, decision: reboot::RebootDecision) -> HealerDecision {
        let mut ours = decision_with_cause(decision.cause.reason, decision.cause.message);
        ours.wake = decision.wake;
        ours.actions = decision
            .actions
            .into_iter()
            .filter_map(|action| self.convert_action(action))
            .collect();
        ours.observe = decision
            .observe
            .into_iter()
            .filter_map(|look| self.convert_observe(look))
            .collect();
        for observation in decision.report.conditions {
            if COORDINATOR_CONDITIONS.contains(&observation.kind) {
                let heartbeat = false;
                ours.report
                    .conditions
                    .push(crate::condition::DesiredCondition {
                        heartbeat,
                        ..observation
                    });
            }
        }
        let events = decision.report.events;
        let event = Self::build_takeover_event(&ours, &events);
        ours.report.events.extend(event);
        ours
    }

    /// Reports what is done, and every Warning of the step itself.
    fn build_takeover_event(
        ours: &HealerDecision,
        theirs: &[DecisionEvent],
    ) -> Option<DecisionEvent> {
        let why = &ours.cause;
        let loud = theirs.iter().any(|event| {
            event.severity == EventSeverity::Warning && event.reason == why.reason.as_str()
        });
        let severity = if loud {
            EventSeverity::Warning
        } else {
            EventSeverity::Normal
        };
        (loud || !ours.actions.is_empty()).then(|| DecisionEvent {
            severity,
            reason: why.reason.as_str(),
            message: format!("by the healer: {}", why.message),
        })
    }

    fn convert_action(&self, action: reboot::RebootAction) -> Option<HealerAction> {
        match action {
            reboot::RebootAction::PatchNode(patch) => Some(HealerAction::PatchNode {
                node: Box::new(self.node.clone()),
                patch,
            }),
            reboot::RebootAction::Release { lease, .. } => {
                let lease = self.ctx.seen.leases.get(&lease.name)?;
                Some(release_coordinator_runs(lease))
            }
            // Only a coordinator bids, reboots and stops; `Break` concerns a deleted Node, which
            // has no case here.
            reboot::RebootAction::Bid { .. }
            | reboot::RebootAction::Break { .. }
            | reboot::RebootAction::Reboot { .. }
            | reboot::RebootAction::Stop { .. } => None,
        }
    }

    fn convert_observe(&self, look: reboot::RebootObserve) -> Option<HealerObserve> {
        match look {
            reboot::RebootObserve::Gates { gates, budgets } => self
                .fresh_shut_gates()
                .is_none()
                .then(|| HealerObserve::Gates {
                    node: self.node.name.clone(),
                    gates,
                    budgets,
                    newer_than: self.gates_newer_than(),
                }),
            reboot::RebootObserve::Locks { .. }
            | reboot::RebootObserve::GroupSize { .. }
            | reboot::RebootObserve::Count { .. }
            | reboot::RebootObserve::Holder { .. }
            | reboot::RebootObserve::Drain { .. }
            | reboot::RebootObserve::StartGates { .. }
            | reboot::RebootObserve::Attachments { .. } => None,
        }
    }
}

/// Removes the coordinator's runs from the Lease; other runs on it stay.
pub(super) fn release_coordinator_runs(lease: &ObservedLease) -> HealerAction {
    let runs = lease.record.iter().flat_map(|record| &record.runs);
    let others = runs.filter(|run| !run.as_str().starts_with("coordinator/"));
    HealerAction::Release {
        remaining: others.cloned().collect(),
        lease: Box::new(lease.clone()),
    }
}

/// The Lease as the record's own run would see it: whichever run of this coordinator is recorded on
/// it is gone, and its lock has to be released.
fn lease_held_by_run(lease: &ObservedLease, run: &RunId) -> ObservedLease {
    let record = lease.record.as_ref();
    let group =
        reboot::group_of_lease(&lease.name).unwrap_or_else(crate::name::GroupName::default_group);
    ObservedLease {
        record: Some(LockRecord {
            node: record.and_then(|record| record.node.clone()),
            node_uid: record.and_then(|record| record.node_uid.clone()),
            boot_id: None,
            group: record.map_or(group, |record| record.group.clone()),
            max: 1,
            since: jiff::Timestamp::UNIX_EPOCH,
            runs: vec![run.clone()],
        }),
        ..lease.clone()
    }
}

fn unknown_run() -> RunId {
    RunId::new("coordinator/none").expect("a run id by its own rules")
}
