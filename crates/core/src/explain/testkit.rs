//! Nodes and Leases for table tests.

use std::sync::Arc;

use dogwatch_api::node_reboot::RebootMethod;
use jiff::Timestamp;

use super::{FleetSnapshot, LeaseRow, NodeReportInput, ObservedController, ObservedCoordinator};
use crate::Now;
use crate::condition::CurrentCondition;
use crate::lock::{HolderId, LockRecord, ObservedLease};
use crate::name::{BootId, GroupName, NodeName};
use crate::node_reboot::{NodeRebootPlan, NodeRebootState, ObservedNodeReboot};
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord};

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

pub(crate) fn node(name: &str) -> ObservedNode {
    ObservedNode::ready_node(
        NodeName::new(name).unwrap(),
        format!("uid-{name}"),
        boot("old-boot"),
    )
}

/// A record on the Node, with only the fields that this folder reads.
pub(crate) fn record(phase: RebootPhase, since: i64) -> RebootRecord {
    serde_json::from_value(serde_json::json!({
        "phase": phase,
        "run": "coordinator/x",
        "since": at(since),
        "planned": at(since),
        "trigger": { "source": "sentinel:/run/reboot-needed", "reason": "kernel 6.18" },
        "bootId": "old-boot",
        "cordonedByUs": phase != RebootPhase::Waiting,
        "lease": (phase != RebootPhase::Waiting).then_some("dogwatch-default-0"),
    }))
    .unwrap()
}

/// A node in this phase, with the leading condition that its coordinator writes.
pub(crate) fn in_phase(
    name: &str,
    phase: RebootPhase,
    since: i64,
    said: (&str, &str),
) -> ObservedNode {
    let lead = match phase {
        RebootPhase::Waiting => "MaintenancePlanned",
        RebootPhase::Draining => "DrainInProgress",
        RebootPhase::Holding | RebootPhase::Rebooting | RebootPhase::Returning => {
            "MaintenanceInProgress"
        }
    };
    let mut lead = condition(lead, said);
    if phase == RebootPhase::Waiting {
        // Its reboot is not near.
        lead.status = "False".into();
    }
    ObservedNode {
        unschedulable: phase != RebootPhase::Waiting,
        record: ParsedAnnotation::Is(record(phase, since)),
        conditions: vec![lead],
        ..node(name)
    }
}

pub(crate) fn waiting(name: &str, since: i64) -> ObservedNode {
    let said = (
        "LockHeldByOther",
        "waits for the lock; held: dogwatch-default-0 by node/n1",
    );
    in_phase(name, RebootPhase::Waiting, since, said)
}

pub(crate) fn condition(kind: &str, (reason, message): (&str, &str)) -> CurrentCondition {
    CurrentCondition {
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
        lease: ObservedLease {
            name: format!("dogwatch-default-{slot}"),
            slot,
            uid: format!("uid-{slot}"),
            resource_version: "1".into(),
            holder: None,
            record: None,
            next_waiters: Vec::new(),
            yield_count: 0,
            leftover: false,
            freed_at: None,
            room_since: None,
        },
    }
}

pub(crate) fn held(slot: u32, name: &str, since: i64) -> LeaseRow {
    let node = NodeName::new(name).unwrap();
    let mut row = free(slot);
    row.lease.holder = Some(HolderId::for_node(&node));
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

pub(crate) fn fleet(nodes: Vec<ObservedNode>, leases: Vec<LeaseRow>) -> FleetSnapshot {
    FleetSnapshot {
        nodes: nodes.into_iter().map(Arc::new).collect(),
        leases,
        remediation_leases: Vec::new(),
        lock_api_waiters: Vec::new(),
        waiting_hosts: Vec::new(),
        controller: ObservedController::Unknown,
        policies: crate::policy::ClusterPolicies::Known(Vec::new()),
    }
}

pub(crate) fn view(name: &str, fleet: FleetSnapshot) -> NodeReportInput {
    NodeReportInput {
        node: NodeName::new(name).unwrap(),
        fleet,
        node_pods: None,
        coordinator: ObservedCoordinator::Unknown,
        healer: None,
        node_reboots: Vec::new(),
    }
}

/// A NodeReboot for this node, which no controller has read yet.
pub(crate) fn requested_reboot(name: &str, node: &str) -> ObservedNodeReboot {
    ObservedNodeReboot {
        name: name.into(),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        generation: Some(1),
        created: at(40),
        deleting: false,
        has_finalizer: false,
        other_finalizers: Vec::new(),
        status_problem: None,
        plan: Ok(NodeRebootPlan {
            node: NodeName::new(node).unwrap(),
            node_uid: None,
            method: RebootMethod::Reboot,
            reason: "kernel".into(),
            requester: Some("ann".into()),
            not_before: None,
            deadline: None,
            success: None,
            escalation: Vec::new(),
            cancel: false,
            ttl: std::time::Duration::from_hours(24),
        }),
        status: NodeRebootState::default(),
    }
}

/// The same, with what the controller says that it waits for.
pub(crate) fn answered_reboot(
    reboot: ObservedNodeReboot,
    said: (&str, &str),
) -> ObservedNodeReboot {
    let progressing = dogwatch_api::node_reboot::condition::PROGRESSING;
    ObservedNodeReboot {
        status: NodeRebootState {
            observed_generation: reboot.generation,
            conditions: vec![condition(progressing, said)],
            ..NodeRebootState::default()
        },
        ..reboot
    }
}
