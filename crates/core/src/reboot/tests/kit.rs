//! Builders for what a coordinator sees.

use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use crate::Now;
use crate::lock::{HolderId, ObservedLease};
use crate::name::{NodeName, RunId};

pub(super) use crate::lock::testkit::{free, held, run};

pub(super) const RUN: &str = "coordinator/b";

pub(super) fn now(second: u32) -> Now {
    Now {
        wall: wall(second),
        mono: Duration::from_secs(second.into()),
    }
}

pub(super) fn wall(second: u32) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::from(second)).unwrap()
}

pub(super) fn boot(text: &str) -> BootId {
    BootId::new(text).unwrap()
}

pub(super) fn print(text: &str) -> TriggerFingerprint {
    TriggerFingerprint(text.into())
}

pub(super) fn config() -> RebootConfig {
    RebootConfig::default()
}

pub(super) fn node_seen(name: &str) -> ObservedNode {
    ObservedNode::ready_node(
        NodeName::new(name).unwrap(),
        format!("uid-{name}"),
        boot("boot-1"),
    )
}

pub(super) fn run_seen(name: &str, run_id: RunId) -> RunMemory {
    RunMemory {
        id: run_id,
        holder: HolderId::for_node(&NodeName::new(name).unwrap()),
        jitter: 0.5,
        owned_since: None,
        phase: None,
        usable: None,
        permit: None,
        adopted_attempt: None,
        command: RebootCommandState::None,
        ready_since: None,
        bid_pause: None,
        leftover_lock_released: true,
        refused: false,
        permission_since: None,
        held_back: HeldBackTime::default(),
        waiting_since: None,
        break_forbidden: false,
        unanswered_patch_version: None,
    }
}

pub(super) fn first_sight(name: &str, run_id: RunId, boot_id: BootId) -> RebootSnapshot {
    RebootSnapshot {
        policies: crate::policy::ClusterPolicies::Known(Vec::new()),
        start_gates: None,
        node: OwnNodeState::NotYet,
        host: ObservedOwnHost {
            boot_id: Ok(boot_id),
            soft_reboots: None,
            triggers: Vec::new(),
        },
        lock: ObservedLock::default(),
        drain: None,
        attachments: None,
        gates: None,
        observation_errors: std::collections::BTreeMap::new(),
        run: run_seen(name, run_id),
    }
}

pub(super) fn present(fingerprint: &str) -> ObservedTrigger {
    ObservedTrigger {
        source: "sentinel:/run/reboot-needed".into(),
        state: TriggerState::Present {
            fingerprint: print(fingerprint),
            reason: "kernel".into(),
        },
    }
}

pub(super) fn absent() -> ObservedTrigger {
    ObservedTrigger {
        source: "sentinel:/run/reboot-needed".into(),
        state: TriggerState::Absent,
    }
}

pub(super) fn unknown() -> ObservedTrigger {
    ObservedTrigger {
        source: "sentinel:/run/reboot-needed".into(),
        state: TriggerState::Unknown {
            why: "permission denied".into(),
        },
    }
}

/// A record of our run; the trigger is the sentinel with fingerprint `a`.
pub(super) fn record(phase: RebootPhase) -> RebootRecord {
    let trigger = RebootTrigger {
        source: "sentinel:/run/reboot-needed".into(),
        reason: "kernel".into(),
        requester: None,
        ..RebootTrigger::default()
    };
    let serves = [("sentinel:/run/reboot-needed".to_owned(), print("a"))].into();
    let planned = RebootRecord::new_waiting(run(RUN), trigger, serves, boot("boot-1"), wall(0));
    RebootRecord {
        phase,
        cordoned_by_us: phase != RebootPhase::Waiting,
        lease: (phase != RebootPhase::Waiting).then(|| "dogwatch-default-0".into()),
        attempts: u32::from(phase >= RebootPhase::Rebooting),
        began: std::collections::BTreeMap::from([(phase, wall(0))]),
        ..planned
    }
}

/// Node `n1` in this phase with nothing wrong: the sentinel is present, the lock is ours and
/// counted, the node is cordoned and drained.
pub(super) fn seen(phase: RebootPhase) -> RebootSnapshot {
    let mut seen = idle();
    let cordoned = phase != RebootPhase::Waiting;
    set(&mut seen, |node| {
        node.unschedulable = cordoned;
        node.record = ParsedAnnotation::Is(record(phase));
    });
    seen.run.owned_since = Some(Duration::ZERO);
    seen.lock.leases = Some(vec![ours()]);
    seen.lock.count = Some(ObservedBudgetCount {
        count: nobody_out(),
        taken: Duration::ZERO,
        arrived: Duration::ZERO,
    });
    seen.drain = Some(drained());
    seen
}

/// Node `n1` without a record; its sentinel is present with fingerprint `a`.
pub(super) fn idle() -> RebootSnapshot {
    let mut seen = first_sight("n1", run(RUN), boot("boot-1"));
    seen.node = OwnNodeState::There(Box::new(node_seen("n1")));
    seen.host.triggers = vec![present("a")];
    seen
}

pub(super) fn ours() -> ObservedLease {
    held(0, "n1", &[RUN])
}

pub(super) fn nobody_out() -> crate::lock::UnavailableCount {
    crate::lock::UnavailableCount {
        for_resource_version: "1".into(),
        unavailable: Vec::new(),
        members: 3,
        maxima: Vec::new(),
        higher_slot_undecided: false,
    }
}

pub(super) fn drained() -> ObservedDrain {
    let progress = crate::drain::DrainProgress {
        listed: true,
        ..Default::default()
    };
    ObservedDrain {
        progress,
        drained_since: Some(Duration::ZERO),
    }
}

pub(super) fn one_pod_left() -> ObservedDrain {
    let pod = crate::drain::PodIdentity {
        namespace: "a".into(),
        name: "p".into(),
        uid: "u".into(),
    };
    let progress = crate::drain::DrainProgress {
        listed: true,
        waiting: vec![pod],
        ..Default::default()
    };
    ObservedDrain {
        progress,
        drained_since: None,
    }
}

pub(super) fn set(seen: &mut RebootSnapshot, change: impl FnOnce(&mut ObservedNode)) {
    let OwnNodeState::There(node) = &mut seen.node else {
        panic!("the Node is there");
    };
    change(node);
}

pub(super) fn set_record(seen: &mut RebootSnapshot, change: impl FnOnce(&mut RebootRecord)) {
    set(seen, |node| {
        let ParsedAnnotation::Is(record) = &mut node.record else {
            panic!("there is a record");
        };
        change(record);
    });
}

/// The only patch of a decision.
pub(super) fn patch(decision: &RebootDecision) -> &NodePatch {
    match decision.actions.as_slice() {
        [RebootAction::PatchNode(patch)] => patch,
        other => panic!("not one patch: {other:?}, {:?}", decision.cause),
    }
}

/// The record that a decision writes.
pub(super) fn written(decision: &RebootDecision) -> &RebootRecord {
    match &patch(decision).record {
        RecordChange::Set(record) => record,
        RecordChange::Remove => panic!("the record is removed"),
    }
}

pub(super) fn has_event(decision: &RebootDecision, reason: RebootReason) -> bool {
    decision
        .report
        .events
        .iter()
        .any(|event| event.reason == reason.as_str())
}

/// Node `n1` waiting, with these Leases observed and nothing counted.
pub(super) fn waiting(leases: Vec<ObservedLease>) -> RebootSnapshot {
    let mut seen = seen(RebootPhase::Waiting);
    seen.lock.count = None;
    seen.lock.leases = Some(leases);
    seen
}

/// One other node of three is unavailable.
pub(super) fn over_budget() -> crate::lock::UnavailableCount {
    let unavailable = vec![crate::lock::UnavailableMember {
        name: "n2".into(),
        why: "not ready".into(),
    }];
    crate::lock::UnavailableCount {
        unavailable,
        ..nobody_out()
    }
}
