//! Which Nodes carry annotation `dogwatch.dev/estimated-start`: those whose reboot begins soon.
//!
//! A coordinator knows no estimate. The controller does, and writes the time on the Node, which the
//! coordinator watches anyway. Source: specification §10.6.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::NodeEstimate;
use crate::Now;
use crate::name::NodeName;
use crate::reboot::{ObservedNode, RebootPhase};

/// A reboot that begins within this time is near. Source: specification §10.6.
const NEAR_START: Duration = Duration::from_mins(10);
/// A Node that carries the time keeps it until its start is further away than this, so that an
/// estimate that varies causes no writes.
const NO_LONGER_NEAR: Duration = Duration::from_mins(20);

/// One patch of the annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartMarkPatch {
    pub node: NodeName,
    /// A later Node of the same name is not patched.
    pub uid: String,
    /// `None` removes it.
    pub start: Option<Timestamp>,
}

/// The Nodes whose annotation has to change, by an estimate of this moment.
pub fn plan_start_marks<'a>(
    nodes: impl Iterator<Item = &'a ObservedNode>,
    estimates: &BTreeMap<String, NodeEstimate>,
    now: Now,
) -> Vec<StartMarkPatch> {
    let patches = nodes.filter_map(|node| {
        let start = estimates.get(node.name.as_str()).map(|times| times.start);
        let near = start.filter(|start| is_near(node, *start, now));
        let start = match (near, node.is_start_near(), node.estimated_start) {
            (None, _, None) | (Some(_), true, _) => return None,
            (None, _, Some(_)) => None,
            (Some(start), false, _) => Some(start),
        };
        Some(StartMarkPatch {
            node: node.name.clone(),
            uid: node.uid.clone(),
            start,
        })
    });
    patches.collect()
}

fn is_near(node: &ObservedNode, start: Timestamp, now: Now) -> bool {
    let record = node.record.get();
    let is_waiting = record
        .is_some_and(|record| record.phase == RebootPhase::Waiting && record.retry_after.is_none());
    let limit = if node.is_start_near() {
        NO_LONGER_NEAR
    } else {
        NEAR_START
    };
    is_waiting && start <= now.wall_after(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::BootId;
    use crate::reboot::ParsedAnnotation;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + 60 * minute).unwrap()
    }

    /// A node that has waited since minute 0.
    fn waiting() -> ObservedNode {
        let boot = BootId::new("b1").unwrap();
        let record = serde_json::json!({
            "phase": "waiting", "run": "coordinator/x", "since": at(0), "planned": at(0),
            "trigger": { "source": "request" }, "bootId": "b1", "cordonedByUs": false,
        });
        ObservedNode {
            record: ParsedAnnotation::Is(serde_json::from_value(record).unwrap()),
            ..ObservedNode::ready_node(NodeName::new("n1").unwrap(), "u1".into(), boot)
        }
    }

    /// What is patched at minute 60, if the planner says that the node begins at that minute.
    fn patched(node: &ObservedNode, start: Option<i64>) -> Vec<Option<Timestamp>> {
        let times = start.map(|minute| NodeEstimate {
            start: at(minute),
            latest_start: at(minute),
            finish: at(minute + 5),
            latest_finish: at(minute + 5),
        });
        let estimates = times.map(|times| ("n1".to_owned(), times));
        let now = Now {
            wall: at(60),
            mono: Duration::ZERO,
        };
        let patches = plan_start_marks([node].into_iter(), &estimates.into_iter().collect(), now);
        patches.into_iter().map(|patch| patch.start).collect()
    }

    #[test]
    fn a_start_is_near_from_ten_minutes_before_and_stays_so_until_it_is_twenty_away() {
        let mut node = waiting();
        assert_eq!(patched(&node, Some(71)), []);
        assert_eq!(patched(&node, Some(70)), [Some(at(70))]);
        node.estimated_start = Some(at(70));
        for start in [59, 65, 71, 80] {
            assert_eq!(patched(&node, Some(start)), [], "{start}");
        }
        assert_eq!(patched(&node, Some(81)), [None]);
        assert_eq!(patched(&node, None), [None]);
    }

    #[test]
    fn what_was_left_from_an_earlier_reboot_is_replaced_or_removed() {
        let mut node = waiting();
        node.estimated_start = Some(at(-1));
        assert_eq!(patched(&node, Some(65)), [Some(at(65))]);
        assert_eq!(patched(&node, Some(75)), [None]);
        node.record = ParsedAnnotation::Absent;
        assert_eq!(patched(&node, None), [None]);
        assert_eq!(patched(&node, Some(65)), [None]);
    }
}
