//! A leader that watches a small cluster.

use crate::reboot::RebootReason;
use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use crate::condition::CurrentCondition;
pub(super) use crate::lock::testkit::{free, held, run};
use crate::lock::{HolderId, ObservedLease};
use crate::name::{BootId, NodeName};
use crate::policy::ClusterPolicies;
use crate::reboot::{
    NodePatch, ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord, RebootTrigger,
    RecordChange, TriggerFingerprint,
};

pub(super) const MINUTE: u64 = 60;

pub(super) fn now(second: u64) -> Now {
    Now {
        wall: wall(second),
        mono: Duration::from_secs(second),
    }
}

pub(super) fn wall(second: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
}

pub(super) fn boot(text: &str) -> BootId {
    BootId::new(text).unwrap()
}

pub(super) fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

/// A Node in boot `boot-1`, Ready, cordoned, with a coordinator's record in this phase.
pub(super) fn node(text: &str, phase: RebootPhase) -> ObservedNode {
    ObservedNode {
        unschedulable: phase != RebootPhase::Waiting,
        record: ParsedAnnotation::Is(record(phase)),
        conditions: vec![kubelet(0), ours(phase, 0)],
        ..ObservedNode::ready_node(name(text), format!("uid-{text}"), boot("boot-1"))
    }
}

pub(super) fn record(phase: RebootPhase) -> RebootRecord {
    let trigger = RebootTrigger {
        source: "sentinel:/run/reboot-needed".into(),
        reason: "kernel".into(),
        requester: None,
        ..RebootTrigger::default()
    };
    let serves = [(
        "sentinel:/run/reboot-needed".to_owned(),
        TriggerFingerprint("a".into()),
    )]
    .into();
    let planned = RebootRecord::new_waiting(
        run("coordinator/a"),
        trigger,
        serves,
        boot("boot-1"),
        wall(0),
    );
    RebootRecord {
        phase,
        cordoned_by_us: phase != RebootPhase::Waiting,
        lease: (phase != RebootPhase::Waiting).then(|| "dogwatch-default-0".into()),
        attempts: u32::from(phase >= RebootPhase::Rebooting),
        ..planned
    }
}

/// The Ready condition that the kubelet posts.
pub(super) fn kubelet(at: u64) -> CurrentCondition {
    condition("Ready", "True", "KubeletReady", at)
}

/// The leading condition of a coordinator in this phase.
pub(super) fn ours(phase: RebootPhase, at: u64) -> CurrentCondition {
    let kind = match phase {
        RebootPhase::Waiting => "MaintenancePlanned",
        RebootPhase::Draining => "DrainInProgress",
        RebootPhase::Holding | RebootPhase::Rebooting | RebootPhase::Returning => {
            "MaintenanceInProgress"
        }
    };
    condition(kind, "True", RebootReason::Draining.as_str(), at)
}

fn condition(kind: &str, status: &str, reason: &str, at: u64) -> CurrentCondition {
    CurrentCondition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        last_transition: Some(wall(0)),
        last_heartbeat: Some(wall(at)),
    }
}

/// The leader's snapshot and memory.
pub(super) struct Watch {
    pub(super) seen: HealerSnapshot,
    pub(super) config: HealerConfig,
}

impl Watch {
    /// One node in this phase that holds slot 0, seen at second 0.
    pub(super) fn on(phase: RebootPhase) -> Self {
        Self::of(node("n1", phase), held(0, "n1", &["coordinator/a"]))
    }

    pub(super) fn of(node: ObservedNode, lease: ObservedLease) -> Self {
        let mut watch = Self {
            seen: HealerSnapshot {
                policies: ClusterPolicies::Known(Vec::new()),
                ..HealerSnapshot::default()
            },
            config: HealerConfig::default(),
        };
        watch.seen.nodes.insert(node.name.clone(), node);
        watch.seen.leases.insert(lease.name.clone(), lease);
        watch.sees(0);
        watch
    }

    /// The leader observes the current objects.
    pub(super) fn sees(&mut self, second: u64) {
        let seen = &mut self.seen;
        seen.memory.observe_objects(
            seen.nodes.values(),
            seen.leases.values(),
            seen.presences.values(),
            now(second),
        );
    }

    /// Somebody changes the Node; the leader sees it.
    pub(super) fn change(&mut self, second: u64, change: impl FnOnce(&mut ObservedNode)) {
        let node = self.seen.nodes.values_mut().next().unwrap();
        let version: u32 = node.resource_version.parse().unwrap();
        node.resource_version = (version + 1).to_string();
        change(node);
        self.sees(second);
    }

    pub(super) fn posts(&mut self, second: u64, boot_id: &str) {
        self.change(second, |node| {
            node.boot_id = Some(boot(boot_id));
            node.conditions[0] = kubelet(second);
        });
    }

    pub(super) fn node(&self) -> &ObservedNode {
        self.seen.nodes.values().next().unwrap()
    }

    pub(super) fn decide(&self, second: u64) -> Vec<HealingCase> {
        let cases = decide(&self.seen, &self.config, now(second));
        for case in &cases {
            let decision = &case.decision;
            assert!(!decision.cause.message.is_empty(), "{case:?}");
            let wake = decision.wake.as_ref().map(|wake| wake.at);
            let idle = decision.actions.is_empty() && decision.observe.is_empty();
            assert!(
                !idle || wake.is_none_or(|at| at > now(second).mono),
                "it spins: {case:?}"
            );
        }
        cases
    }

    /// The only case about the Node.
    pub(super) fn of_node(
        &self,
        second: u64,
    ) -> Option<crate::Decision<HealerAction, HealerObserve, RebootReason>> {
        let about = |case: HealingCase| match case.subject {
            HealingSubject::Node(_) => Some(case.decision),
            HealingSubject::Lease(_) | HealingSubject::Presence(_) => None,
        };
        self.decide(second).into_iter().find_map(about)
    }

    /// The only case about the Lease.
    pub(super) fn of_lease(
        &self,
        second: u64,
    ) -> Option<crate::Decision<HealerAction, HealerObserve, RebootReason>> {
        let about = |case: HealingCase| match case.subject {
            HealingSubject::Lease(_) => Some(case.decision),
            HealingSubject::Node(_) | HealingSubject::Presence(_) => None,
        };
        self.decide(second).into_iter().find_map(about)
    }

    /// Asserts that the healer writes nothing now.
    pub(super) fn leaves_alone(&self, second: u64) {
        for case in self.decide(second) {
            assert!(
                case.decision.actions.is_empty(),
                "second {second}: {case:?}"
            );
        }
    }

    /// The only patch of the Node that the healer sends now.
    pub(super) fn patch(&self, second: u64) -> NodePatch {
        let decision = self.of_node(second).expect("a case of the Node");
        let [HealerAction::PatchNode { node, patch }] = decision.actions.as_slice() else {
            panic!("no single patch: {decision:?}");
        };
        assert_eq!(patch.resource_version, node.resource_version);
        assert_eq!(node.uid, self.node().uid);
        assert!(
            !decision.report.events.is_empty(),
            "a write that is not said: {decision:?}"
        );
        patch.as_ref().clone()
    }

    /// Sends and answers the patch.
    pub(super) fn patches(&mut self, second: u64) -> NodePatch {
        let patch = self.patch(second);
        let node = self.seen.nodes.values_mut().next().unwrap();
        let version: u32 = node.resource_version.parse().unwrap();
        node.resource_version = (version + 1).to_string();
        apply(node, &patch);
        let node = node.clone();
        self.seen.memory.record_node_write(&node, now(second));
        patch
    }

    /// The Lease that the healer releases now, and how many runs stay on it.
    pub(super) fn releases(&self, second: u64) -> (ObservedLease, usize) {
        let decision = self.of_node(second).expect("a case of the Node");
        let [HealerAction::Release { lease, remaining }] = decision.actions.as_slice() else {
            panic!("no release: {decision:?}");
        };
        (lease.as_ref().clone(), remaining.len())
    }

    /// Performs the release.
    pub(super) fn released(&mut self, second: u64) {
        let (lease, _) = self.releases(second);
        let lease = ObservedLease {
            resource_version: "9".into(),
            holder: None,
            record: None,
            ..lease
        };
        self.seen.leases.insert(lease.name.clone(), lease);
        self.sees(second);
    }
}

fn apply(node: &mut ObservedNode, patch: &NodePatch) {
    node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
    node.record = match &patch.record {
        RecordChange::Set(record) => ParsedAnnotation::Is(record.clone()),
        RecordChange::Remove => ParsedAnnotation::Absent,
    };
    node.waiting_label = patch.waiting_label.unwrap_or(node.waiting_label);
    if let Some(last) = &patch.last {
        node.last_reboot = ParsedAnnotation::Is(last.clone());
    }
    if patch.remove_abort {
        node.abort = ParsedAnnotation::Absent;
    }
}

/// The record that a patch writes.
pub(super) fn written(patch: &NodePatch) -> &RebootRecord {
    match &patch.record {
        RecordChange::Set(record) => record,
        RecordChange::Remove => panic!("it removes the record"),
    }
}

pub(super) fn holder(text: &str) -> HolderId {
    HolderId::new(text).unwrap()
}
