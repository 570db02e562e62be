//! Views of made-up fleets.

use std::collections::BTreeMap;

use dogwatch_core::explain::{
    HostRow, LastRebootRow, NodeStatusRow, PolicyRow, RemediationRow, WindowRow,
};
use dogwatch_core::report::{
    FLEET_VIEW_VERSION, FleetCounts, FleetEstimate, FleetView, GroupView, NodeEstimate,
    OpenWindowSpan, OutNodeRow, PersonTask, PhaseBar, RecentOutcome, TakenSlot, WaitingNodeRow,
};
use jiff::{SignedDuration, Timestamp};

/// Thursday, 02:00 UTC.
pub fn fixture_now() -> Timestamp {
    "2026-11-26T02:00:00Z".parse().unwrap()
}

/// So many minutes after the fixture's now.
pub fn minute(minutes: i64) -> Timestamp {
    fixture_now()
        .checked_add(SignedDuration::from_mins(minutes))
        .unwrap()
}

/// A fleet without anything under way.
pub fn idle_view() -> FleetView {
    FleetView {
        version: FLEET_VIEW_VERSION,
        at: fixture_now(),
        sentence: "All 2 nodes are in service. Nothing needs you.".into(),
        counts: FleetCounts {
            nodes: 2,
            ..FleetCounts::default()
        },
        needs_person: Vec::new(),
        out: Vec::new(),
        waiting: Vec::new(),
        waiting_hosts: Vec::new(),
        groups: vec![group("workers", 2, 1)],
        nodes: vec![node_row("n1", None), node_row("n2", None)],
        locks: Vec::new(),
        policies: Vec::new(),
        hosts: Vec::new(),
        remediations: Vec::new(),
        schedules: Vec::new(),
        recent: Vec::new(),
        estimate: None,
        unreadable: Vec::new(),
    }
}

/// A rollout of a third of the way, in its window.
pub fn rollout_view() -> FleetView {
    let waiting: Vec<WaitingNodeRow> = (1..=6).map(waiting_node).collect();
    let mut nodes = vec![
        node_row("w-03", Some("draining")),
        node_row("w-04", Some("rebooting")),
    ];
    nodes.extend(waiting.iter().map(|it| node_row(&it.name, Some("waiting"))));
    nodes.extend(["cp-1", "w-01", "w-02"].map(|name| node_row(name, None)));
    let mut workers = group("workers", 10, 2);
    workers.used = 2;
    workers.out = 2;
    workers.waiting = 6;
    workers.windows = vec![
        OpenWindowSpan {
            from: minute(-4 * 60),
            until: minute(120),
        },
        OpenWindowSpan {
            from: minute(20 * 60),
            until: minute(26 * 60),
        },
    ];
    let mut control_plane = group("control-plane", 3, 1);
    control_plane.used = 1;
    control_plane.taken_by_others = vec![TakenSlot {
        node: "cp-2".into(),
        why: "cordoned by somebody else".into(),
    }];
    FleetView {
        sentence: "2 of 10 done, 2 out, 6 wait. Finished about Thu 03:12 UTC (at the latest Thu 03:40 UTC). Nothing needs you.".into(),
        counts: FleetCounts {
            nodes: 13,
            done: 2,
            out: 2,
            waiting: 6,
            rollout: 10,
            requested: 0,
            needs_person: 0,
        },
        out: vec![draining_node(), rebooting_node()],
        estimate: Some(estimate(&waiting)),
        waiting,
        groups: vec![control_plane, workers],
        nodes,
        policies: vec![policy_row("workers")],
        hosts: vec![host_row("rack-1", "On"), host_row("rack-2", "Off")],
        remediations: vec![remediation_row(false)],
        recent: vec![ended("w-02", -14, "Rebooted"), ended("w-01", -28, "Rebooted")],
        ..idle_view()
    }
}

/// The same, with work that only a person can end.
pub fn urgent_view() -> FleetView {
    FleetView {
        sentence: "2 of 10 done, 2 out, 6 wait. 1 thing needs you.".into(),
        needs_person: vec![PersonTask {
            subject: "node/w-04".into(),
            reason: "RebootFailed".into(),
            message: "the boot id is the old one after 2 attempts".into(),
            next_step: Some("look at the node's console".into()),
            command: Some("dogwatch explain w-04".into()),
        }],
        remediations: vec![remediation_row(true)],
        ..rollout_view()
    }
}

/// `count` nodes, all but two of them waiting.
pub fn large_view(count: usize) -> FleetView {
    let waiting: Vec<WaitingNodeRow> = (1..=count).map(waiting_node).collect();
    let nodes = waiting.iter().map(|it| node_row(&it.name, Some("waiting")));
    FleetView {
        nodes: nodes.collect(),
        estimate: Some(estimate(&waiting)),
        waiting,
        ..rollout_view()
    }
}

pub fn bar(phase: &'static str, from: i64, until: Option<i64>) -> PhaseBar {
    PhaseBar {
        phase,
        from: minute(from),
        until: until.map(minute),
    }
}

fn draining_node() -> OutNodeRow {
    OutNodeRow {
        name: "w-03".into(),
        group: "workers".into(),
        phase: "draining",
        since: minute(-3),
        deadline: Some(minute(27)),
        asked: "sentinel /var/run/reboot-required".into(),
        reason: Some("Draining".into()),
        message: Some(
            "12 pods gone, 3 to go; default/db-0 waits for its PodDisruptionBudget".into(),
        ),
        bars: vec![bar("waiting", -40, Some(-3)), bar("draining", -3, None)],
    }
}

fn rebooting_node() -> OutNodeRow {
    OutNodeRow {
        name: "w-04".into(),
        group: "workers".into(),
        phase: "rebooting",
        since: minute(-6),
        deadline: Some(minute(-1)),
        asked: "ann: new kernel".into(),
        reason: Some("Rebooting".into()),
        message: Some("waits for a new boot id, attempt 2 of 2".into()),
        bars: vec![
            bar("waiting", -50, Some(-12)),
            bar("draining", -12, Some(-6)),
            bar("rebooting", -6, None),
        ],
    }
}

fn waiting_node(number: usize) -> WaitingNodeRow {
    WaitingNodeRow {
        name: format!("w-{:02}", number + 4),
        group: "workers".into(),
        since: minute(-40),
        place: Some(number),
        asked: "sentinel /var/run/reboot-required".into(),
        reason: Some("LockHeldByOther".into()),
        message: Some("waits for the lock, held by node/w-03 and node/w-04".into()),
        not_before: None,
    }
}

fn estimate(waiting: &[WaitingNodeRow]) -> FleetEstimate {
    let mut nodes: BTreeMap<String, NodeEstimate> = BTreeMap::new();
    for (index, name) in waiting.iter().map(|node| &node.name).enumerate() {
        let start = 10 + 12 * i64::try_from(index / 2).unwrap();
        let estimate = NodeEstimate {
            start: minute(start),
            latest_start: minute(start + 8),
            finish: minute(start + 12),
            latest_finish: minute(start + 24),
        };
        nodes.insert(name.clone(), estimate);
    }
    for name in ["w-03", "w-04"] {
        let estimate = NodeEstimate {
            start: minute(-12),
            latest_start: minute(-12),
            finish: minute(8),
            latest_finish: minute(20),
        };
        nodes.insert(name.into(), estimate);
    }
    FleetEstimate {
        groups: BTreeMap::new(),
        at: fixture_now(),
        finish: Some(minute(72)),
        latest_finish: Some(minute(100)),
        nodes,
        left_out: vec!["pods that a budget holds back for ever".into()],
    }
}

pub fn group(name: &str, members: u32, allowed: usize) -> GroupView {
    GroupView {
        name: name.into(),
        members,
        allowed,
        allowed_source: format!("policy {name}"),
        used: 0,
        taken_by_others: Vec::new(),
        out: 0,
        waiting: 0,
        paused: None,
        windows: Vec::new(),
    }
}

fn node_row(name: &str, phase: Option<&'static str>) -> NodeStatusRow {
    NodeStatusRow {
        name: name.into(),
        group: "workers".into(),
        policy: Some("workers".into()),
        status: "Ready".into(),
        ignored: false,
        phase,
        since: phase.map(|_| minute(-3)),
        lock: None,
        place: None,
        reason: None,
        message: None,
        trigger: None,
        boot_id: None,
        last: phase.is_none().then(|| LastRebootRow {
            outcome: "Rebooted",
            finished: minute(-14),
        }),
    }
}

pub fn policy_row(name: &str) -> PolicyRow {
    PolicyRow {
        name: name.into(),
        priority: 0,
        nodes: 10,
        ignored: Vec::new(),
        max_unavailable: Some("2".into()),
        rollout: None,
        out: Vec::new(),
        waiting: Vec::new(),
        paused: None,
        paused_until: None,
        window: Some(WindowRow {
            open: true,
            until: Some(minute(120)),
            windows: vec!["daily 22:00 to 04:00 UTC".into()],
        }),
        reason: None,
        message: None,
        lost_to: Vec::new(),
        gates: vec!["no alert fires at prometheus".into()],
    }
}

fn host_row(name: &str, power: &'static str) -> HostRow {
    let is_off = power == "Off";
    HostRow {
        namespace: "metal".into(),
        name: name.into(),
        power: Some(power),
        observed_at: Some(minute(-1)),
        off_confirmed_at: is_off.then(|| minute(-5)),
        wanted: if is_off { "held off" } else { "on" },
        online: true,
        held_off_by: Vec::new(),
        pending_since: None,
        power_control_ready: Some("True".into()),
        not_ready: None,
        node: Some(format!("{name}-node")),
        bmc: None,
        reason: Some(if is_off { "HeldOff" } else { "PoweredOn" }.into()),
        message: Some("as wanted".into()),
    }
}

fn remediation_row(needs_somebody: bool) -> RemediationRow {
    RemediationRow {
        subject: "machine/metal/m-2".into(),
        namespace: Some("metal".into()),
        node: Some("rack-2-node".into()),
        host: Some("metal/rack-2".into()),
        step: Some("PoweredOff"),
        since: Some(minute(-5)),
        attempt: Some(1),
        under_way: true,
        needs_somebody,
        reason: "PoweringOff".into(),
        message: "the BMC does not answer".into(),
        steps: Vec::new(),
    }
}

pub fn ended(node: &str, finished: i64, outcome: &'static str) -> RecentOutcome {
    RecentOutcome {
        node: node.into(),
        group: "workers".into(),
        outcome,
        asked: "sentinel /var/run/reboot-required".into(),
        planned: minute(finished - 40),
        finished: minute(finished),
        bars: vec![
            bar("waiting", finished - 40, Some(finished - 12)),
            bar("draining", finished - 12, Some(finished - 6)),
            bar("rebooting", finished - 6, Some(finished - 2)),
            bar("returning", finished - 2, Some(finished)),
        ],
    }
}
