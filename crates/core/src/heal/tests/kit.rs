//! A leader that watches a small cluster, in few words.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use crate::condition::Condition;
pub(super) use crate::lock::testkit::{free, held, run};
use crate::lock::{HolderId, LeaseSeen};
use crate::name::{BootId, NodeName};
use crate::policy::Policies;
use crate::reboot::{
    Fingerprint, NodePatch, NodeSeen, Parsed, Phase, Record, RecordChange, Trigger,
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

/// A Node in boot `boot-1`, Ready, cordoned, with a record of its coordinator in this phase.
pub(super) fn node(text: &str, phase: Phase) -> NodeSeen {
    NodeSeen {
        name: name(text),
        uid: format!("uid-{text}"),
        resource_version: "1".into(),
        unschedulable: phase != Phase::Waiting,
        ready: true,
        boot_id: Some(boot("boot-1")),
        labels: BTreeMap::new(),
        keep_cordoned: false,
        needs_remediation: false,
        out_of_service: false,
        fenced: false,
        system_uuid: None,
        provider_id: None,
        waiting_label: false,
        record: Parsed::Is(record(phase)),
        request: Parsed::Absent,
        request_fingerprint: None,
        abort: Parsed::Absent,
        api_lock: false,
        last: Parsed::Absent,
        conditions: vec![kubelet(0), ours(phase, 0)],
    }
}

pub(super) fn record(phase: Phase) -> Record {
    Record {
        phase,
        run: run("coordinator/a"),
        since: wall(0),
        planned: wall(0),
        trigger: Trigger {
            source: "sentinel:/run/reboot-needed".into(),
            reason: "kernel".into(),
            requester: None,
        },
        boot_id: boot("boot-1"),
        cordoned_by_us: phase != Phase::Waiting,
        lease: (phase != Phase::Waiting).then(|| "dogwatch-default-0".into()),
        attempts: u32::from(phase >= Phase::Rebooting),
        message: String::new(),
        serves: [(
            "sentinel:/run/reboot-needed".to_owned(),
            Fingerprint("a".into()),
        )]
        .into(),
        failures: 0,
        retry_after: None,
        forced: false,
        deleting: false,
        budgets: Vec::new(),
        began: BTreeMap::new(),
    }
}

/// What the kubelet posts.
pub(super) fn kubelet(at: u64) -> Condition {
    condition("Ready", "True", "KubeletReady", at)
}

/// The leading condition of a coordinator at work.
pub(super) fn ours(phase: Phase, at: u64) -> Condition {
    let kind = match phase {
        Phase::Waiting => "MaintenancePlanned",
        Phase::Draining => "DrainInProgress",
        Phase::Rebooting | Phase::Returning => "MaintenanceInProgress",
    };
    condition(kind, "True", "AtWork", at)
}

fn condition(kind: &str, status: &str, reason: &str, at: u64) -> Condition {
    Condition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: String::new(),
        last_transition: Some(wall(0)),
        last_heartbeat: Some(wall(at)),
    }
}

/// The leader's eyes and memory.
pub(super) struct Watch {
    pub(super) seen: Seen,
    pub(super) config: Config,
}

impl Watch {
    /// One node in this phase that holds slot 0, seen at second 0.
    pub(super) fn on(phase: Phase) -> Self {
        Self::of(node("n1", phase), held(0, "n1", &["coordinator/a"]))
    }

    pub(super) fn of(node: NodeSeen, lease: LeaseSeen) -> Self {
        let mut watch = Self {
            seen: Seen {
                policies: Policies::Known(Vec::new()),
                ..Seen::default()
            },
            config: Config::default(),
        };
        watch.seen.nodes.insert(node.name.clone(), node);
        watch.seen.leases.insert(lease.name.clone(), lease);
        watch.sees(0);
        watch
    }

    /// The leader takes in what there is.
    pub(super) fn sees(&mut self, second: u64) {
        let seen = &mut self.seen;
        seen.memory.saw(
            seen.nodes.values(),
            seen.leases.values(),
            seen.presences.values(),
            now(second),
        );
    }

    /// Somebody changes the Node; the leader sees it.
    pub(super) fn change(&mut self, second: u64, change: impl FnOnce(&mut NodeSeen)) {
        let node = self.seen.nodes.values_mut().next().unwrap();
        let version: u32 = node.resource_version.parse().unwrap();
        node.resource_version = (version + 1).to_string();
        change(node);
        self.sees(second);
    }

    /// Its kubelet posts its status.
    pub(super) fn posts(&mut self, second: u64, boot_id: &str) {
        self.change(second, |node| {
            node.boot_id = Some(boot(boot_id));
            node.conditions[0] = kubelet(second);
        });
    }

    pub(super) fn node(&self) -> &NodeSeen {
        self.seen.nodes.values().next().unwrap()
    }

    pub(super) fn decide(&self, second: u64) -> Vec<Case> {
        let cases = decide(&self.seen, &self.config, now(second));
        for case in &cases {
            let decision = &case.decision;
            assert!(!decision.because.message.is_empty(), "{case:?}");
            let wake = decision.wake.as_ref().map(|wake| wake.at);
            let idle = decision.actions.is_empty() && decision.looks.is_empty();
            assert!(
                !idle || wake.is_none_or(|at| at > now(second).mono),
                "it spins: {case:?}"
            );
        }
        cases
    }

    /// The one case about the Node.
    pub(super) fn of_node(&self, second: u64) -> Option<crate::Decision<Action, Look>> {
        let about = |case: Case| match case.subject {
            Subject::Node(_) => Some(case.decision),
            Subject::Lease(_) | Subject::Presence(_) => None,
        };
        self.decide(second).into_iter().find_map(about)
    }

    /// The one case about the Lease.
    pub(super) fn of_lease(&self, second: u64) -> Option<crate::Decision<Action, Look>> {
        let about = |case: Case| match case.subject {
            Subject::Lease(_) => Some(case.decision),
            Subject::Node(_) | Subject::Presence(_) => None,
        };
        self.decide(second).into_iter().find_map(about)
    }

    /// No write of any kind now.
    pub(super) fn leaves_alone(&self, second: u64) {
        for case in self.decide(second) {
            assert!(
                case.decision.actions.is_empty(),
                "second {second}: {case:?}"
            );
        }
    }

    /// The one patch of the Node that is wanted now.
    pub(super) fn patch(&self, second: u64) -> NodePatch {
        let decision = self.of_node(second).expect("a case of the Node");
        let [Action::PatchNode { node, patch }] = decision.actions.as_slice() else {
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

    /// The patch is sent and answered.
    pub(super) fn patches(&mut self, second: u64) -> NodePatch {
        let patch = self.patch(second);
        let node = self.seen.nodes.values_mut().next().unwrap();
        let version: u32 = node.resource_version.parse().unwrap();
        node.resource_version = (version + 1).to_string();
        apply(node, &patch);
        let node = node.clone();
        self.seen.memory.wrote_node(&node, now(second));
        patch
    }

    /// The Lease that is to be given away now, and who stays.
    pub(super) fn releases(&self, second: u64) -> (LeaseSeen, usize) {
        let decision = self.of_node(second).expect("a case of the Node");
        let [Action::Release { lease, remaining }] = decision.actions.as_slice() else {
            panic!("no release: {decision:?}");
        };
        (lease.as_ref().clone(), remaining.len())
    }

    /// It is given away.
    pub(super) fn released(&mut self, second: u64) {
        let (lease, _) = self.releases(second);
        let lease = LeaseSeen {
            resource_version: "9".into(),
            holder: None,
            record: None,
            ..lease
        };
        self.seen.leases.insert(lease.name.clone(), lease);
        self.sees(second);
    }
}

fn apply(node: &mut NodeSeen, patch: &NodePatch) {
    node.unschedulable = patch.unschedulable.unwrap_or(node.unschedulable);
    node.record = match &patch.record {
        RecordChange::Set(record) => Parsed::Is(record.clone()),
        RecordChange::Remove => Parsed::Absent,
    };
    node.waiting_label = patch.waiting_label.unwrap_or(node.waiting_label);
    if let Some(last) = &patch.last {
        node.last = Parsed::Is(last.clone());
    }
    if patch.remove_abort {
        node.abort = Parsed::Absent;
    }
}

/// The record that a patch writes.
pub(super) fn written(patch: &NodePatch) -> &Record {
    match &patch.record {
        RecordChange::Set(record) => record,
        RecordChange::Remove => panic!("it removes the record"),
    }
}

pub(super) fn holder(text: &str) -> HolderId {
    HolderId::new(text).unwrap()
}
