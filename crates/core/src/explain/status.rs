//! The status of the fleet: one row for each node, lock, policy, host, schedule and remediation.

use jiff::Timestamp;
use serde::Serialize;

use super::budget::is_ignored;
use super::fleet::{
    FleetSnapshot, LeaseRow, condition_message, find_true_condition, leading_condition,
};
use super::policies::{PolicyRow, policy_rows};
use super::{HostRow, RemediationRow, ScheduleRow};
use crate::Now;
use crate::json_default::is_default;
use crate::lock::api_lock::WaitingHost;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootReason};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetStatus {
    /// First nodes under way, then waiting nodes in the order of the queue, then the rest by name.
    pub nodes: Vec<NodeStatusRow>,
    /// Slots, by group and number.
    pub locks: Vec<LockRow>,
    /// Callers that wait at a lock API, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingRow>,
    /// Policies, the highest precedence first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PolicyRow>,
    /// Hosts with problems first. Read separately from the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRow>,
    /// Schedules that need a person first. Read separately from the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<ScheduleRow>,
    /// Remediations under way first. Read separately from the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remediations: Vec<RemediationRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatusRow {
    pub name: String,
    pub group: String,
    /// The policy that applies to it; absent if the coordinator's flags decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// As `kubectl get nodes` prints it: `Ready`, `NotReady,SchedulingDisabled`.
    pub status: String,
    /// Whether it has label `dogwatch.dev/ignore`, which takes it out of every budget.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// `waiting`, `draining`, `rebooting`, `returning`; absent if no reboot is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'static str>,
    /// Start of the phase, by the node's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Its place in the queue for the lock, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// One CamelCase word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The boot id that the kubelet last posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRebootRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastRebootRow {
    pub outcome: &'static str,
    pub finished: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockRow {
    pub name: String,
    pub group: String,
    /// Absent if the slot is free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Since when it is held, by the holder's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The holder's maximum of unavailable nodes in the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<u32>,
    /// The waiters that the last holder named as next in line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// How many winners in a row gave it back because the group was over budget.
    #[serde(skip_serializing_if = "is_default")]
    pub given_back: u32,
}

/// A caller that waits for a lock over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRow {
    /// The holder name it would get: `api/HOST` or `fleetlock/GROUP/ID`.
    pub caller: String,
    /// Absent until the group is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The caller's Node; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Start of the wait, by the clock of the lock API's replica.
    pub since: Timestamp,
    /// One CamelCase word.
    pub reason: String,
    pub message: String,
}

pub fn fleet_status(fleet: &FleetSnapshot, now: Now) -> FleetStatus {
    let places = fleet.queue_places();
    let mut nodes: Vec<(&ObservedNode, Option<usize>)> = fleet
        .iter_nodes()
        .map(|node| (node, places.get(&node.name).copied()))
        .collect();
    nodes.sort_by_cached_key(|(node, place)| {
        (
            node_sort_group(node),
            fleet.group_of_node(node),
            *place,
            node.name.clone(),
        )
    });
    let mut locks: Vec<&LeaseRow> = fleet.leases.iter().collect();
    locks.sort_by_key(|row| (&row.group, row.lease.slot));
    FleetStatus {
        nodes: nodes
            .into_iter()
            .map(|(node, place)| node_row(fleet, node, place))
            .collect(),
        locks: locks.into_iter().map(lock_row).collect(),
        waiting: waiting_rows(fleet),
        policies: policy_rows(fleet, now),
        hosts: Vec::new(),
        schedules: Vec::new(),
        remediations: Vec::new(),
    }
}

/// The order of a node's row in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NodeSortGroup {
    UnderWay,
    Queued,
    Pausing,
    Unreadable,
    Idle,
}

fn node_sort_group(node: &ObservedNode) -> NodeSortGroup {
    match &node.record {
        ParsedAnnotation::Absent => NodeSortGroup::Idle,
        ParsedAnnotation::Bad { .. } => NodeSortGroup::Unreadable,
        ParsedAnnotation::Is(record) => match record.phase {
            RebootPhase::Draining
            | RebootPhase::Holding
            | RebootPhase::Rebooting
            | RebootPhase::Returning => NodeSortGroup::UnderWay,
            RebootPhase::Waiting if record.retry_after.is_none() => NodeSortGroup::Queued,
            RebootPhase::Waiting => NodeSortGroup::Pausing,
        },
    }
}

fn node_row(fleet: &FleetSnapshot, node: &ObservedNode, place: Option<usize>) -> NodeStatusRow {
    let record = node.record.get();
    let (reason, message) = node_reason(node)
        .or_else(|| lock_api_reason(fleet, node))
        .unzip();
    NodeStatusRow {
        name: node.name.to_string(),
        group: fleet.group_of_node(node).to_string(),
        policy: fleet
            .rule_of_node(node)
            .policy
            .map(|policy| policy.name.to_string()),
        status: kubectl_status(node),
        ignored: is_ignored(node),
        phase: record.map(|record| record.phase.as_str()),
        since: record.map(|record| record.since),
        lock: fleet
            .lease_held_by(&node.name)
            .or_else(|| fleet.lease_locked_through_api(&node.name))
            .map(|row| row.lease.name.clone()),
        place,
        reason,
        message,
        trigger: record.map(|record| record.trigger.reason.clone()),
        boot_id: node.boot_id.as_ref().map(ToString::to_string),
        last: node.last_reboot.get().map(|last| LastRebootRow {
            outcome: last.outcome.as_str(),
            finished: last.finished,
        }),
    }
}

/// Why a caller of the lock API waits for this node, or that a caller holds its lock.
fn lock_api_reason(fleet: &FleetSnapshot, node: &ObservedNode) -> Option<(String, String)> {
    if let Some(host) = fleet.waiting_host_for(&node.name) {
        return Some((host.reason.clone(), host.message.clone()));
    }
    let row = fleet.lease_locked_through_api(&node.name)?;
    let holder = row.lease.holder.as_ref()?;
    let message = format!("{holder} holds it until it calls unlock");
    Some((RebootReason::LockedThroughApi.to_string(), message))
}

fn kubectl_status(node: &ObservedNode) -> String {
    let ready = if node.ready { "Ready" } else { "NotReady" };
    if node.unschedulable {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

/// The node's leading condition, or a request that its coordinator has not accepted yet.
fn node_reason(node: &ObservedNode) -> Option<(String, String)> {
    let own = |text: &str, message: String| Some((text.to_owned(), message));
    if let Some(condition) = leading_condition(node) {
        return own(&condition.reason, condition_message(condition).to_owned());
    }
    if let ParsedAnnotation::Bad { why } = &node.record {
        return own(RebootReason::RecordUnreadable.as_str(), why.clone());
    }
    if let ParsedAnnotation::Bad { why } = &node.request {
        return own(RebootReason::RequestUnreadable.as_str(), why.clone());
    }
    ["RebootTriggerUnknown", "SentinelSurvivedReboot"]
        .iter()
        .find_map(|kind| find_true_condition(node, kind))
        .map(|condition| (condition.reason.clone(), condition.message.clone()))
        .or_else(|| request_reason(node))
}

fn request_reason(node: &ObservedNode) -> Option<(String, String)> {
    let request = node.request.get()?;
    let message = match request.not_before {
        Some(at) => format!("not before {}: {}", super::format_time(at), request.reason),
        None => request.reason.clone(),
    };
    node.record
        .get()
        .is_none()
        .then(|| (RebootReason::RebootRequested.to_string(), message))
}

fn waiting_rows(fleet: &FleetSnapshot) -> Vec<WaitingRow> {
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
        next: lease.next_waiters.iter().map(ToString::to_string).collect(),
        given_back: lease.yield_count,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{at, fleet, free, held, in_phase, node, now, waiting};
    use super::*;
    use crate::reboot::RebootRequest;

    #[test]
    fn who_is_under_way_comes_first_then_the_queue_then_the_rest() {
        let draining = in_phase(
            "n9",
            RebootPhase::Draining,
            5,
            ("Draining", "3 pods gone, 2 to go"),
        );
        let nodes = vec![
            node("idle"),
            waiting("late", 50),
            waiting("early", 10),
            draining,
        ];
        let table = fleet_status(&fleet(nodes, vec![held(0, "n9", 5), free(1)]), now(100));
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
        let table = fleet_status(
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
        asked.request = ParsedAnnotation::Is(RebootRequest {
            reason: "new kernel".into(),
            requester: "ann".into(),
            not_before: Some(at(100)),
            ..RebootRequest::default()
        });
        let table = fleet_status(&fleet(vec![asked], vec![]), now(100));
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
        let all = crate::policy::Policy::without_rules(crate::name::GroupName::new("all").unwrap());
        fleet.policies = crate::policy::ClusterPolicies::Known(vec![all]);
        let table = fleet_status(&fleet, now(100));
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
        broken.record = ParsedAnnotation::Bad {
            why: "expected value".into(),
        };
        let table = fleet_status(&fleet(vec![broken], vec![]), now(100));
        assert_eq!(table.nodes[0].reason.as_deref(), Some("RecordUnreadable"));
    }
}
