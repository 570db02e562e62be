//! One line for each node and each lock.

use jiff::Timestamp;
use serde::Serialize;

use super::budget::is_ignored;
use super::fleet::{Fleet, LeaseRow, is_true, message_of, said};
use super::policies::{PolicyRow, policies};
use super::{HostRow, RemedyRow, ScheduleRow};
use crate::Now;
use crate::lock::api_lock::WaitingHost;
use crate::reboot::{NodeSeen, Parsed, Phase, reason};

/// The whole table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Nodes: those under way first, then those that wait in the order of the queue, then the rest
    /// by name.
    pub nodes: Vec<NodeRow>,
    /// Slots, by group and number.
    pub locks: Vec<LockRow>,
    /// Those who asked for a lock over HTTP and were not answered yet, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingRow>,
    /// Policies, the one that rules first on top.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyRow>,
    /// Hosts: those that are not well first. Read beside the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRow>,
    /// Schedules: those that need somebody first. Read beside the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleRow>,
    /// Remediations: those under way first. Read beside the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remediations: Vec<RemedyRow>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The policy that rules it; absent where the coordinator's flags do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// As `kubectl get nodes` prints it: `Ready`, `NotReady,SchedulingDisabled`.
    pub status: String,
    /// Whether a person has taken it out of every count (label `dogwatch.dev/ignore`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// `waiting`, `draining`, `rebooting`, `returning`; absent where nothing is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// Since when in this phase, by the node's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The Lease it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Its place among those that wait for the lock, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Why it stands where it stands: one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why a reboot is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The boot id that the kubelet last posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The last reboot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRow>,
}

/// How the last planned reboot ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRow {
    /// How.
    pub outcome: &'static str,
    /// When.
    pub finished: Timestamp,
}

/// One slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockRow {
    /// The Lease.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Who holds it; absent where it is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Since when, by the holder's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The holder's maximum for the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<u32>,
    /// Whom the last holder called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// How many winners in a row gave it back over budget.
    #[serde(skip_serializing_if = "is_zero")]
    pub given_back: u32,
}

/// One who asked for a lock over HTTP and waits for the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRow {
    /// Who would hold the lock: `api/HOST` or `fleetlock/GROUP/ID`.
    pub caller: String,
    /// The group of the lock; absent until it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The Node that it is; absent for one that is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Since when, by the clock of the replica.
    pub since: Timestamp,
    /// Why it waits: one word.
    pub reason: String,
    /// The same, as a sentence.
    pub message: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The table of a fleet.
pub fn status(fleet: &Fleet, now: Now) -> Status {
    let places = fleet.places();
    let mut nodes: Vec<(&NodeSeen, Option<usize>)> = fleet
        .nodes
        .iter()
        .map(|node| (node, places.get(&node.name).copied()))
        .collect();
    nodes.sort_by_cached_key(|(node, place)| {
        (turn(node), fleet.group(node), *place, node.name.clone())
    });
    let mut locks: Vec<&LeaseRow> = fleet.leases.iter().collect();
    locks.sort_by_key(|row| (&row.group, row.lease.slot));
    Status {
        nodes: nodes
            .into_iter()
            .map(|(node, place)| node_row(fleet, node, place))
            .collect(),
        locks: locks.into_iter().map(lock_row).collect(),
        waiting: waiting(fleet),
        policies: policies(fleet, now),
        hosts: Vec::new(),
        schedules: Vec::new(),
        remediations: Vec::new(),
    }
}

/// Where a node stands in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    UnderWay,
    Queued,
    Pausing,
    Unreadable,
    Idle,
}

fn turn(node: &NodeSeen) -> Turn {
    match &node.record {
        Parsed::Absent => Turn::Idle,
        Parsed::Bad { .. } => Turn::Unreadable,
        Parsed::Is(record) => match record.phase {
            Phase::Draining | Phase::Rebooting | Phase::Returning => Turn::UnderWay,
            Phase::Waiting if record.retry_after.is_none() => Turn::Queued,
            Phase::Waiting => Turn::Pausing,
        },
    }
}

fn node_row(fleet: &Fleet, node: &NodeSeen, place: Option<usize>) -> NodeRow {
    let record = node.record.get();
    let (reason, message) = why(node).or_else(|| through_api(fleet, node)).unzip();
    NodeRow {
        name: node.name.to_string(),
        group: fleet.group(node).to_string(),
        policy: fleet
            .rule(node)
            .policy
            .map(|policy| policy.name.to_string()),
        status: kubectl_status(node),
        ignored: is_ignored(node),
        phase: record.map(|record| record.phase.as_str()),
        since: record.map(|record| record.since),
        lock: fleet
            .held_by(&node.name)
            .or_else(|| fleet.locked_by_api(&node.name))
            .map(|row| row.lease.name.clone()),
        place,
        reason,
        message,
        trigger: record.map(|record| record.trigger.reason.clone()),
        boot_id: node.boot_id.as_ref().map(ToString::to_string),
        last: node.last.get().map(|last| LastRow {
            outcome: last.outcome.as_str(),
            finished: last.finished,
        }),
    }
}

/// Why a caller of the lock API waits for this node, or that one has it.
fn through_api(fleet: &Fleet, node: &NodeSeen) -> Option<(String, String)> {
    if let Some(host) = fleet.asks_for(&node.name) {
        return Some((host.reason.clone(), host.message.clone()));
    }
    let row = fleet.locked_by_api(&node.name)?;
    let holder = row.lease.holder.as_ref()?;
    let message = format!("{holder} has it, until it unlocks");
    Some((reason::LOCKED_THROUGH_API.to_owned(), message))
}

fn kubectl_status(node: &NodeSeen) -> String {
    let ready = if node.ready { "Ready" } else { "NotReady" };
    if node.unschedulable {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

/// The node's own words; and what its coordinator has not taken up yet.
fn why(node: &NodeSeen) -> Option<(String, String)> {
    let own = |text: &str, message: String| Some((text.to_owned(), message));
    if let Some(condition) = said(node) {
        return own(&condition.reason, message_of(condition).to_owned());
    }
    if let Parsed::Bad { why } = &node.record {
        return own(reason::RECORD_UNREADABLE, why.clone());
    }
    if let Parsed::Bad { why } = &node.request {
        return own(reason::REQUEST_UNREADABLE, why.clone());
    }
    ["RebootTriggerUnknown", "SentinelSurvivedReboot"]
        .iter()
        .find_map(|kind| is_true(node, kind))
        .map(|condition| (condition.reason.clone(), condition.message.clone()))
        .or_else(|| requested(node))
}

fn requested(node: &NodeSeen) -> Option<(String, String)> {
    let request = node.request.get()?;
    let message = match request.not_before {
        Some(at) => format!("not before {}: {}", super::moment(at), request.reason),
        None => request.reason.clone(),
    };
    node.record
        .get()
        .is_none()
        .then(|| ("RebootRequested".to_owned(), message))
}

fn waiting(fleet: &Fleet) -> Vec<WaitingRow> {
    let mut hosts: Vec<&WaitingHost> = fleet.unanswered_hosts().collect();
    hosts.sort_by_key(|host| (host.since, &host.holder));
    hosts.into_iter().map(waiting_row).collect()
}

fn waiting_row(host: &WaitingHost) -> WaitingRow {
    WaitingRow {
        caller: host.holder.to_string(),
        group: host.group.as_ref().map(ToString::to_string),
        node: host.node.as_ref().map(ToString::to_string),
        since: host.since,
        reason: host.reason.clone(),
        message: host.message.clone(),
    }
}

fn lock_row(row: &LeaseRow) -> LockRow {
    let lease = &row.lease;
    LockRow {
        name: lease.name.clone(),
        group: row.group.to_string(),
        holder: lease.holder.as_ref().map(ToString::to_string),
        since: lease.record.as_ref().map(|record| record.since),
        max_unavailable: lease.record.as_ref().map(|record| record.max),
        next: lease.hint.iter().map(ToString::to_string).collect(),
        given_back: lease.given_back,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, fleet, free, held, in_phase, node, now, waiting};
    use super::*;
    use crate::reboot::Request;

    #[test]
    fn who_is_under_way_comes_first_then_the_queue_then_the_rest() {
        let draining = in_phase(
            "n9",
            Phase::Draining,
            5,
            ("Draining", "3 pods gone, 2 to go"),
        );
        let nodes = vec![
            node("idle"),
            waiting("late", 50),
            waiting("early", 10),
            draining,
        ];
        let table = status(&fleet(nodes, vec![held(0, "n9", 5), free(1)]), now(100));
        let names: Vec<&str> = table.nodes.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["n9", "early", "late", "idle"]);
        assert_eq!(table.nodes[0].lock.as_deref(), Some("dogwatch-default-0"));
        assert_eq!(table.nodes[0].status, "Ready,SchedulingDisabled");
        assert_eq!(
            table.nodes[0].message.as_deref(),
            Some("3 pods gone, 2 to go")
        );
        assert_eq!(table.nodes[2].place, Some(2));
        assert_eq!(table.locks[0].holder.as_deref(), Some("node/n9"));
        assert_eq!(table.locks[1].holder, None);
    }

    #[test]
    fn the_reason_is_the_word_that_the_node_itself_wrote() {
        let table = status(
            &fleet(vec![waiting("n2", 10)], vec![held(0, "n1", 5)]),
            now(100),
        );
        assert_eq!(table.nodes[0].reason.as_deref(), Some("LockHeldByOther"));
        assert_eq!(table.nodes[0].place, Some(1));
        let message = table.nodes[0].message.as_deref().unwrap();
        assert!(message.starts_with("waits for the lock"), "{message}");
    }

    #[test]
    fn a_request_that_nobody_has_taken_up_is_shown() {
        let mut asked = node("n1");
        asked.request = Parsed::Is(Request {
            reason: "new kernel".into(),
            requester: "ann".into(),
            not_before: Some(at(100)),
        });
        let table = status(&fleet(vec![asked], vec![]), now(100));
        assert_eq!(table.nodes[0].reason.as_deref(), Some("RebootRequested"));
        assert_eq!(
            table.nodes[0].message.as_deref(),
            Some("not before 1970-01-01 00:01:40Z: new kernel")
        );
    }

    #[test]
    fn an_ignored_node_is_shown_as_such_with_its_policy_and_alone() {
        let mut ignored = node("s1");
        ignored.labels = [("dogwatch.dev/ignore".to_owned(), "true".to_owned())].into();
        let mut fleet = fleet(vec![node("n1"), ignored], vec![]);
        let all = crate::policy::Policy::silent(crate::name::GroupName::new("all").unwrap());
        fleet.policies = crate::policy::Policies::Known(vec![all]);
        let table = status(&fleet, now(100));
        let shown = |name: &str| table.nodes.iter().find(|row| row.name == name).unwrap();
        assert!(shown("s1").ignored && !shown("n1").ignored);
        assert_eq!(
            (table.policies[0].nodes, &*table.policies[0].ignored),
            (2, &["s1".to_owned()][..])
        );
    }

    #[test]
    fn a_record_that_cannot_be_read_is_said() {
        let mut broken = node("n1");
        broken.record = Parsed::Bad {
            why: "expected value".into(),
        };
        let table = status(&fleet(vec![broken], vec![]), now(100));
        assert_eq!(table.nodes[0].reason.as_deref(), Some("RecordUnreadable"));
    }
}
