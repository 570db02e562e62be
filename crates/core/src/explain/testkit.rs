//! Nodes and Leases for tables.

use jiff::Timestamp;

use super::{CoordinatorSeen, Fleet, LeaseRow, View};
use crate::Now;
use crate::condition::Condition;
use crate::lock::{HolderId, LeaseSeen, LockRecord};
use crate::name::{BootId, GroupName, NodeName};
use crate::reboot::{NodeSeen, Parsed, Phase, Record};

pub(crate) fn now(second: i64) -> Now {
    Now {
        wall: at(second),
        mono: std::time::Duration::from_secs(second.unsigned_abs()),
    }
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn boot(text: &str) -> BootId {
    BootId::new(text).unwrap()
}

pub(crate) fn node(name: &str) -> NodeSeen {
    NodeSeen {
        name: NodeName::new(name).unwrap(),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        unschedulable: false,
        ready: true,
        boot_id: Some(boot("old-boot")),
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

/// As it stands on the Node: only what this folder reads.
pub(crate) fn record(phase: Phase, since: i64) -> Record {
    serde_json::from_value(serde_json::json!({
        "phase": phase,
        "run": "coordinator/x",
        "since": at(since),
        "planned": at(since),
        "trigger": { "source": "sentinel:/run/reboot-needed", "reason": "kernel 6.18" },
        "bootId": "old-boot",
        "cordonedByUs": phase != Phase::Waiting,
        "lease": (phase != Phase::Waiting).then_some("dogwatch-default-0"),
    }))
    .unwrap()
}

/// A node in this phase, with its leading condition as its coordinator writes it.
pub(crate) fn in_phase(name: &str, phase: Phase, since: i64, said: (&str, &str)) -> NodeSeen {
    let lead = match phase {
        Phase::Waiting => "MaintenancePlanned",
        Phase::Draining => "DrainInProgress",
        Phase::Rebooting | Phase::Returning => "MaintenanceInProgress",
    };
    NodeSeen {
        unschedulable: phase != Phase::Waiting,
        record: Parsed::Is(record(phase, since)),
        conditions: vec![condition(lead, said)],
        ..node(name)
    }
}

pub(crate) fn waiting(name: &str, since: i64) -> NodeSeen {
    let said = (
        "LockHeldByOther",
        "waits for the lock; held: dogwatch-default-0 by node/n1",
    );
    in_phase(name, Phase::Waiting, since, said)
}

pub(crate) fn condition(kind: &str, (reason, message): (&str, &str)) -> Condition {
    Condition {
        kind: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: message.into(),
        last_transition: None,
        last_heartbeat: None,
    }
}

pub(crate) fn free(slot: u32) -> LeaseRow {
    LeaseRow {
        group: GroupName::default_group(),
        lease: LeaseSeen {
            name: format!("dogwatch-default-{slot}"),
            slot,
            uid: format!("uid-{slot}"),
            resource_version: "1".into(),
            holder: None,
            record: None,
            hint: Vec::new(),
            given_back: 0,
            leftover: false,
            freed_at: None,
        },
    }
}

pub(crate) fn held(slot: u32, name: &str, since: i64) -> LeaseRow {
    let node = NodeName::new(name).unwrap();
    let mut row = free(slot);
    row.lease.holder = Some(HolderId::node(&node));
    row.lease.record = Some(LockRecord {
        node: Some(node),
        node_uid: Some(format!("uid-{name}")),
        boot_id: None,
        group: GroupName::default_group(),
        max: 1,
        since: at(since),
        runs: Vec::new(),
    });
    row
}

pub(crate) fn fleet(nodes: Vec<NodeSeen>, leases: Vec<LeaseRow>) -> Fleet {
    Fleet {
        nodes,
        leases,
        remedies: Vec::new(),
        hosts: Vec::new(),
        waiting_hosts: Vec::new(),
        policies: crate::policy::Policies::Known(Vec::new()),
    }
}

pub(crate) fn view(name: &str, fleet: Fleet) -> View {
    View {
        node: NodeName::new(name).unwrap(),
        fleet,
        on_node: None,
        coordinator: CoordinatorSeen::Unknown,
        healer: None,
    }
}
