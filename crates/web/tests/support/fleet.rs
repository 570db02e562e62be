//! Fleets in the middle of a rollout.

use dogwatch_core::explain::{
    HostRow, LastRebootRow, NodeStatusRow, PolicyRow, RemediationRow, StepRow, WindowRow,
};
use dogwatch_core::report::{
    FLEET_VIEW_VERSION, FleetCounts, FleetEstimate, FleetView, GroupView, NodeEstimate,
    OpenWindowSpan, OutNodeRow, PersonTask, PhaseBar, RecentOutcome, TakenSlot, WaitingNodeRow,
};
use jiff::{SignedDuration, Timestamp};

const TRIGGER: &str = "sentinel file /run/reboot-required";

/// Markup, a long text, and text that turns the direction of others.
pub const MARKUP: &str =
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";
pub const RIGHT_TO_LEFT: &str = "\u{202e}\u{5d0}\u{5d1}\u{5d2} txt.exe\u{2066}";

/// A time this many minutes from `at`.
fn minutes(at: Timestamp, minutes: f64) -> Timestamp {
    let seconds = SignedDuration::from_secs_f64(minutes * 60.0);
    at.checked_add(seconds).unwrap()
}

fn group_of(index: usize) -> &'static str {
    match index % 10 {
        0..=6 => "workers",
        7..=8 => "storage",
        _ => "gpu",
    }
}

fn node_name(index: usize) -> String {
    format!("{}-{index:04}", group_of(index).trim_end_matches('s'))
}

/// A fleet of `count` nodes: a tenth is done, up to four are out, the others wait.
pub fn fleet_of(count: usize, at: Timestamp) -> FleetView {
    let done = count / 10;
    let out = out_nodes(done, count.min(4), at);
    let waiting = waiting_nodes(done + out.len(), count, at);
    let nodes = node_rows(&out, &waiting, done, count, at);
    let estimate = estimate_of(&out, &waiting, at);
    FleetView {
        version: FLEET_VIEW_VERSION,
        at,
        sentence: format!(
            "{done} of {count} done, {} out, {} wait. Finished about {} UTC (at the latest {} UTC). Nothing needs you.",
            out.len(),
            waiting.len(),
            estimate.finish.unwrap().strftime("%a %H:%M"),
            estimate.latest_finish.unwrap().strftime("%a %H:%M"),
        ),
        counts: FleetCounts {
            nodes: count,
            done,
            out: out.len(),
            waiting: waiting.len(),
            rollout: count,
            requested: 0,
            needs_person: 0,
        },
        needs_person: Vec::new(),
        groups: group_views(&out, &waiting, count, at),
        policies: ["workers", "storage"].map(policy_row).into(),
        hosts: (1..=4).map(|number| host_row(number, at)).collect(),
        remediations: vec![remediation_row(at)],
        recent: recent_outcomes(done.min(40), at),
        out,
        waiting,
        waiting_hosts: Vec::new(),
        nodes,
        locks: Vec::new(),
        schedules: Vec::new(),
        estimate: Some(estimate),
        unreadable: Vec::new(),
    }
}

/// The same fleet in trouble.
pub fn fleet_in_trouble(count: usize, at: Timestamp) -> FleetView {
    let mut view = fleet_of(count, at);
    let rebooting = view.out.iter().find(|node| node.phase == "rebooting");
    let node = rebooting.unwrap_or(&view.out[0]).name.clone();
    view.needs_person.push(PersonTask {
        subject: format!("node/{node}"),
        reason: "RebootCommandFailed".into(),
        message: "the reboot command failed twice: exit code 1".into(),
        next_step: Some("correct the command, then abort this reboot".into()),
        command: Some(format!("dogwatch abort {node}")),
    });
    view.counts.needs_person = 1;
    view.sentence = view
        .sentence
        .replace("Nothing needs you.", "1 thing needs you.");
    view
}

/// A fleet whose every text is hostile. Names of nodes and groups are what the API server would
/// never accept.
pub fn hostile_fleet(at: Timestamp) -> FleetView {
    let mut view = fleet_in_trouble(30, at);
    let long = "x".repeat(10 * 1024);
    view.sentence = format!("{MARKUP} {RIGHT_TO_LEFT}");
    let texts = [
        MARKUP.to_owned(),
        RIGHT_TO_LEFT.to_owned(),
        long,
        "\u{0}\u{7}\r\n\u{1b}[31m".into(),
    ];
    let text = |index: usize| texts[index % texts.len()].clone();
    for (index, node) in view.out.iter_mut().enumerate() {
        node.name = format!("{MARKUP}{index}");
        node.group = text(index);
        node.asked = text(index + 1);
        node.reason = Some(text(index + 2));
        node.message = Some(text(index + 3));
    }
    for (index, node) in view.waiting.iter_mut().enumerate() {
        node.name = format!("{}{index}", text(index));
        node.message = Some(text(index + 1));
        node.asked = text(index + 2);
    }
    for (index, node) in view.nodes.iter_mut().enumerate() {
        node.name = format!("{}{index}", text(index));
        node.message = Some(text(index + 1));
        node.status = text(index + 2);
        node.group = text(index + 3);
    }
    for (index, group) in view.groups.iter_mut().enumerate() {
        group.name = format!("{}{index}", text(index));
        group.paused = Some(text(index + 1));
        group.allowed_source = text(index + 2);
    }
    for (index, task) in view.needs_person.iter_mut().enumerate() {
        task.message = text(index);
        task.command = Some(MARKUP.into());
        task.subject = format!("node/{MARKUP}");
    }
    for (index, host) in view.hosts.iter_mut().enumerate() {
        host.message = Some(text(index));
        host.held_off_by = vec![text(index + 1)];
    }
    for one in &mut view.remediations {
        one.message = text(2);
        one.subject = MARKUP.into();
    }
    view.unreadable = texts.to_vec();
    view
}

/// Phase, minutes since its begin, minutes to its deadline, and the reason with its message.
type NodeStory = (
    &'static str,
    f64,
    Option<f64>,
    Option<(&'static str, &'static str)>,
);

fn out_nodes(first: usize, count: usize, at: Timestamp) -> Vec<OutNodeRow> {
    let stories: [NodeStory; 4] = [
        (
            "returning",
            -1.0,
            Some(9.0),
            Some((
                "GateNotMet",
                "gate daemonsets: 1 of 9 pods is not ready (kube-system/cilium-x7b2q)",
            )),
        ),
        ("rebooting", -2.0, Some(8.0), None),
        (
            "draining",
            -6.0,
            Some(24.0),
            Some((
                "BudgetBlocks",
                "PodDisruptionBudget shop/web allows no disruption: 2 of 2 pods are needed",
            )),
        ),
        ("holding", -130.0, None, None),
    ];
    let node = |(index, story): (usize, NodeStory)| {
        let (phase, since, deadline, why) = story;
        OutNodeRow {
            name: node_name(first + index),
            group: group_of(first + index).into(),
            phase,
            since: minutes(at, since),
            deadline: deadline.map(|ahead| minutes(at, ahead)),
            asked: if phase == "holding" {
                "ben: replace DIMM B2".into()
            } else {
                TRIGGER.into()
            },
            reason: why.map(|(reason, _)| reason.into()),
            message: why.map(|(_, message)| message.into()),
            bars: phase_bars(phase, minutes(at, since)),
        }
    };
    let mut all: Vec<OutNodeRow> = stories
        .into_iter()
        .enumerate()
        .map(node)
        .take(count)
        .collect();
    all.sort_by_key(|node| node.since);
    all
}

fn phase_bars(phase: &'static str, since: Timestamp) -> Vec<PhaseBar> {
    let bar = |phase, from, until| PhaseBar { phase, from, until };
    let mut bars = Vec::new();
    let mut from = minutes(since, -70.0);
    for (earlier, length) in [("waiting", 55.0), ("draining", 9.0), ("rebooting", 6.0)] {
        if earlier == phase {
            break;
        }
        let until = if phase == "holding" && earlier == "draining" {
            since
        } else {
            minutes(from, length).min(since)
        };
        bars.push(bar(earlier, from, Some(until)));
        from = until;
        if phase == "holding" && earlier == "draining" {
            break;
        }
    }
    if let Some(last) = bars.last_mut() {
        last.until = Some(since);
    }
    bars.push(bar(phase, since, None));
    bars
}

fn waiting_nodes(first: usize, count: usize, at: Timestamp) -> Vec<WaitingNodeRow> {
    let wait = |(place, index): (usize, usize)| {
        let is_closed = index % 9 == 3;
        WaitingNodeRow {
            name: node_name(index),
            group: group_of(index).into(),
            since: minutes(at, -90.0),
            place: Some(place + 1),
            asked: TRIGGER.into(),
            reason: Some(
                if is_closed {
                    "WindowClosed"
                } else {
                    "LockHeldByOther"
                }
                .into(),
            ),
            message: Some(if is_closed {
                "window daily 22:00-06:00 Europe/Berlin opens in 3h".into()
            } else {
                format!("dogwatch-{}-0 is held by another node", group_of(index))
            }),
            not_before: is_closed.then(|| minutes(at, 180.0)),
        }
    };
    (first..count).enumerate().map(wait).collect()
}

fn estimate_of(out: &[OutNodeRow], waiting: &[WaitingNodeRow], at: Timestamp) -> FleetEstimate {
    let estimate = |start: f64, length: f64| NodeEstimate {
        start: minutes(at, start),
        latest_start: minutes(at, start * 1.2),
        finish: minutes(at, start + length),
        latest_finish: minutes(at, start.max(0.0) * 1.2 + length + 5.0),
    };
    let mut nodes = std::collections::BTreeMap::new();
    for (index, node) in waiting.iter().enumerate() {
        let ahead = u32::try_from(index).map_or(0.0, f64::from) * (300.0 / 240.0);
        nodes.insert(node.name.clone(), estimate(10.0 + ahead.min(4000.0), 11.0));
    }
    // A hold ends when somebody releases it.
    for node in out.iter().filter(|node| node.phase != "holding") {
        nodes.insert(node.name.clone(), estimate(-12.0, 21.0));
    }
    let last = |time: fn(&NodeEstimate) -> Timestamp| nodes.values().map(time).max();
    FleetEstimate {
        groups: std::collections::BTreeMap::new(),
        at,
        finish: last(|one| one.finish),
        latest_finish: last(|one| one.latest_finish),
        nodes,
        left_out: Vec::new(),
    }
}

fn node_rows(
    out: &[OutNodeRow],
    waiting: &[WaitingNodeRow],
    done: usize,
    count: usize,
    at: Timestamp,
) -> Vec<NodeStatusRow> {
    let row = |index: usize| {
        let name = node_name(index);
        let out = out.iter().find(|node| node.name == name);
        let wait = index
            .checked_sub(done + out_count(count))
            .and_then(|place| waiting.get(place));
        let reason = out.map_or_else(
            || wait.and_then(|node| node.reason.clone()),
            |node| node.reason.clone(),
        );
        let message = out.map_or_else(
            || wait.and_then(|node| node.message.clone()),
            |node| node.message.clone(),
        );
        NodeStatusRow {
            group: group_of(index).into(),
            policy: Some(group_of(index).into()),
            status: if out.is_some() {
                "Ready,SchedulingDisabled"
            } else if index % 97 == 13 {
                "NotReady"
            } else {
                "Ready"
            }
            .into(),
            ignored: false,
            phase: out.map(|node| node.phase).or(wait.map(|_| "waiting")),
            since: out.map(|node| node.since).or(wait.map(|node| node.since)),
            lock: None,
            place: wait.and_then(|node| node.place),
            reason,
            message,
            trigger: None,
            boot_id: None,
            last: (index < done).then(|| LastRebootRow {
                outcome: "Rebooted",
                finished: minutes(at, -8.0 - 7.0 * u32::try_from(index).map_or(0.0, f64::from)),
            }),
            name,
        }
    };
    let under_way = done..done + out.len();
    let queue = done + out.len()..count;
    under_way.chain(queue).chain(0..done).map(row).collect()
}

fn out_count(count: usize) -> usize {
    count.min(4)
}

fn group_views(
    out: &[OutNodeRow],
    waiting: &[WaitingNodeRow],
    count: usize,
    at: Timestamp,
) -> Vec<GroupView> {
    let view = |(name, allowed, others): (&str, usize, Vec<TakenSlot>)| {
        let out = out.iter().filter(|node| node.group == name).count();
        GroupView {
            name: name.into(),
            members: u32::try_from((0..count).filter(|index| group_of(*index) == name).count())
                .unwrap(),
            allowed,
            allowed_source: format!("RebootPolicy {name}: maxUnavailable {allowed}"),
            used: out + others.len(),
            taken_by_others: others,
            out,
            waiting: waiting.iter().filter(|node| node.group == name).count(),
            paused: (name == "storage").then(|| "ceph rebalances until 18:00".into()),
            windows: if name == "workers" {
                vec![
                    OpenWindowSpan {
                        from: minutes(at, -240.0),
                        until: minutes(at, 150.0),
                    },
                    OpenWindowSpan {
                        from: minutes(at, 400.0),
                        until: minutes(at, 790.0),
                    },
                ]
            } else {
                Vec::new()
            },
        }
    };
    let slot = |node: &str, why: &str| TakenSlot {
        node: node.into(),
        why: why.into(),
    };
    let others = vec![
        slot("worker-0013", "not Ready"),
        slot("worker-0110", "cordoned by somebody else"),
    ];
    [
        ("gpu", 1, Vec::new()),
        ("storage", 2, vec![slot("storage-0117", "not Ready")]),
        ("workers", 6, others),
    ]
    .map(view)
    .into()
}

fn policy_row(name: &str) -> PolicyRow {
    PolicyRow {
        name: name.into(),
        priority: 0,
        nodes: 100,
        ignored: Vec::new(),
        max_unavailable: Some("2".into()),
        rollout: None,
        out: Vec::new(),
        waiting: Vec::new(),
        paused: None,
        paused_until: None,
        window: (name == "workers").then(|| WindowRow {
            open: true,
            until: None,
            windows: vec!["daily 22:00-06:00 Europe/Berlin".into()],
        }),
        reason: None,
        message: None,
        lost_to: Vec::new(),
        gates: Vec::new(),
    }
}

fn host_row(number: u32, at: Timestamp) -> HostRow {
    let is_off = number == 4;
    HostRow {
        namespace: "metal".into(),
        name: format!("h{number}"),
        power: Some(if is_off { "Off" } else { "On" }),
        observed_at: Some(minutes(at, -0.4)),
        off_confirmed_at: is_off.then(|| minutes(at, -4.0)),
        wanted: if is_off { "held off" } else { "on" },
        online: true,
        held_off_by: if is_off {
            vec!["remediation-42".into()]
        } else {
            Vec::new()
        },
        pending_since: None,
        power_control_ready: Some("True".into()),
        not_ready: None,
        node: Some(node_name(usize::try_from(number).unwrap())),
        bmc: Some("redfish://bmc.example".into()),
        reason: None,
        message: None,
    }
}

fn remediation_row(at: Timestamp) -> RemediationRow {
    let step = |step, ago: f64| StepRow {
        step,
        at: minutes(at, ago),
        after_ms: None,
    };
    RemediationRow {
        subject: "machine/metal/worker-7".into(),
        namespace: Some("metal".into()),
        node: Some("worker-0004".into()),
        host: Some("metal/h4".into()),
        step: Some("NodeDeleted"),
        since: Some(minutes(at, -3.9)),
        attempt: Some(1),
        under_way: true,
        needs_somebody: false,
        reason: "WaitingForNode".into(),
        message: "the Node was deleted; waits until the host is on again".into(),
        steps: vec![
            step("Requested", -7.0),
            step("HeldOff", -6.8),
            step("OffConfirmed", -4.0),
            step("NodeDeleted", -3.9),
        ],
    }
}

fn recent_outcomes(count: usize, at: Timestamp) -> Vec<RecentOutcome> {
    let outcome = |index: usize| {
        let finished = minutes(at, -8.0 - 7.0 * u32::try_from(index).map_or(0.0, f64::from));
        let bar = |phase, from: f64, until: f64| PhaseBar {
            phase,
            from: minutes(finished, from),
            until: Some(minutes(finished, until)),
        };
        RecentOutcome {
            node: node_name(index),
            group: group_of(index).into(),
            outcome: if index == 5 { "Aborted" } else { "Rebooted" },
            asked: TRIGGER.into(),
            planned: minutes(finished, -100.0),
            finished,
            bars: vec![
                bar("waiting", -100.0, -11.0),
                bar("draining", -11.0, -5.0),
                bar("rebooting", -5.0, -1.0),
                bar("returning", -1.0, 0.0),
            ],
        }
    };
    (0..count).map(outcome).collect()
}
