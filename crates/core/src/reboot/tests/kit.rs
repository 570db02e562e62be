//! What a coordinator sees, in few words.

use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use crate::Now;
use crate::lock::{HolderId, LeaseSeen};
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

pub(super) fn print(text: &str) -> Fingerprint {
    Fingerprint(text.into())
}

pub(super) fn config() -> Config {
    Config::default()
}

pub(super) fn node_seen(name: &str) -> NodeSeen {
    NodeSeen {
        name: NodeName::new(name).unwrap(),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        unschedulable: false,
        ready: true,
        boot_id: Some(boot("boot-1")),
        labels: std::collections::BTreeMap::new(),
        keep_cordoned: false,
        needs_remediation: false,
        out_of_service: false,
        fenced: false,
        system_uuid: None,
        provider_id: None,
        waiting_label: false,
        record: Parsed::Absent,
        request: Parsed::Absent,
        request_fingerprint: None,
        abort: Parsed::Absent,
        api_lock: false,
        last: Parsed::Absent,
        conditions: Vec::new(),
    }
}

pub(super) fn run_seen(name: &str, run_id: RunId) -> RunSeen {
    RunSeen {
        id: run_id,
        holder: HolderId::node(&NodeName::new(name).unwrap()),
        jitter: 0.5,
        owned: None,
        phase: None,
        permit: None,
        adopted_attempt: None,
        command: CommandSeen::None,
        ready_since: None,
        bid_after: None,
        swept: true,
        refused: false,
        leave_since: None,
        held_back: HeldBack::default(),
        waiting_since: None,
        may_not_break: false,
        unanswered: None,
    }
}

pub(super) fn first_sight(name: &str, run_id: RunId, boot_id: BootId) -> Seen {
    Seen {
        policies: crate::policy::Policies::Known(Vec::new()),
        start_gates: None,
        node: NodeFact::NotYet,
        host: HostSeen {
            boot_id: Ok(boot_id),
            triggers: Vec::new(),
        },
        lock: LockSeen::default(),
        drain: None,
        attachments: None,
        gates: None,
        trouble: std::collections::BTreeMap::new(),
        run: run_seen(name, run_id),
    }
}

pub(super) fn present(fingerprint: &str) -> TriggerSeen {
    TriggerSeen {
        source: "sentinel:/run/reboot-needed".into(),
        state: TriggerState::Present {
            fingerprint: print(fingerprint),
            reason: "kernel".into(),
        },
    }
}

pub(super) fn absent() -> TriggerSeen {
    TriggerSeen {
        source: "sentinel:/run/reboot-needed".into(),
        state: TriggerState::Absent,
    }
}

pub(super) fn unknown() -> TriggerSeen {
    TriggerSeen {
        source: "sentinel:/run/reboot-needed".into(),
        state: TriggerState::Unknown {
            why: "permission denied".into(),
        },
    }
}

/// A record of our run, whose reboot is wanted by the sentinel with print `a`.
pub(super) fn record(phase: Phase) -> Record {
    Record {
        phase,
        run: run(RUN),
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
        serves: [("sentinel:/run/reboot-needed".to_owned(), print("a"))].into(),
        failures: 0,
        retry_after: None,
        forced: false,
        deleting: false,
        budgets: Vec::new(),
        began: std::collections::BTreeMap::from([(phase, wall(0))]),
    }
}

/// Node `n1` in this phase, everything in order: the sentinel is there, the lock is ours and
/// counted, the node is cordoned and drained.
pub(super) fn seen(phase: Phase) -> Seen {
    let mut seen = idle();
    let cordoned = phase != Phase::Waiting;
    set(&mut seen, |node| {
        node.unschedulable = cordoned;
        node.record = Parsed::Is(record(phase));
    });
    seen.run.owned = Some(Duration::ZERO);
    seen.lock.leases = Some(vec![ours()]);
    seen.lock.count = Some(CountSeen {
        count: nobody_out(),
        taken: Duration::ZERO,
    });
    seen.drain = Some(drained());
    seen
}

/// Node `n1` without a record, its sentinel present with print `a`.
pub(super) fn idle() -> Seen {
    let mut seen = first_sight("n1", run(RUN), boot("boot-1"));
    seen.node = NodeFact::There(Box::new(node_seen("n1")));
    seen.host.triggers = vec![present("a")];
    seen
}

pub(super) fn ours() -> LeaseSeen {
    held(0, "n1", &[RUN])
}

pub(super) fn nobody_out() -> crate::lock::Count {
    crate::lock::Count {
        for_resource_version: "1".into(),
        unavailable: Vec::new(),
        members: 3,
        maxima: Vec::new(),
        higher_slot_undecided: false,
    }
}

pub(super) fn drained() -> DrainSeen {
    let progress = crate::drain::Progress {
        listed: true,
        ..Default::default()
    };
    DrainSeen {
        progress,
        drained_since: Some(Duration::ZERO),
    }
}

pub(super) fn one_pod_left() -> DrainSeen {
    let pod = crate::drain::PodRef {
        namespace: "a".into(),
        name: "p".into(),
        uid: "u".into(),
    };
    let progress = crate::drain::Progress {
        listed: true,
        waiting: vec![pod],
        ..Default::default()
    };
    DrainSeen {
        progress,
        drained_since: None,
    }
}

/// Changes the Node that is seen.
pub(super) fn set(seen: &mut Seen, change: impl FnOnce(&mut NodeSeen)) {
    let NodeFact::There(node) = &mut seen.node else {
        panic!("the Node is there");
    };
    change(node);
}

/// Changes the record that is seen.
pub(super) fn set_record(seen: &mut Seen, change: impl FnOnce(&mut Record)) {
    set(seen, |node| {
        let Parsed::Is(record) = &mut node.record else {
            panic!("there is a record");
        };
        change(record);
    });
}

/// The one patch of a decision.
pub(super) fn patch(decision: &Decision) -> &NodePatch {
    match decision.actions.as_slice() {
        [Action::PatchNode(patch)] => patch,
        other => panic!("not one patch: {other:?}, {:?}", decision.because),
    }
}

/// The record that a decision writes.
pub(super) fn written(decision: &Decision) -> &Record {
    match &patch(decision).record {
        RecordChange::Set(record) => record,
        RecordChange::Remove => panic!("the record is removed"),
    }
}

pub(super) fn has_event(decision: &Decision, reason: &str) -> bool {
    decision
        .report
        .events
        .iter()
        .any(|event| event.reason == reason)
}

/// Node `n1` waiting, with these Leases in sight and nothing counted.
pub(super) fn waiting(leases: Vec<LeaseSeen>) -> Seen {
    let mut seen = seen(Phase::Waiting);
    seen.lock.count = None;
    seen.lock.leases = Some(leases);
    seen
}

/// One other node of three is out.
pub(super) fn over_budget() -> crate::lock::Count {
    let unavailable = vec![crate::lock::Unavailable {
        name: "n2".into(),
        why: "not ready".into(),
    }];
    crate::lock::Count {
        unavailable,
        ..nobody_out()
    }
}
