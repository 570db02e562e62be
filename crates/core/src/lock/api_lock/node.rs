//! A host that is a Node of this cluster: its cordon, and who else works on it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::RunId;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};

/// Annotation `dogwatch.dev/api-lock` on a Node: the lock API has taken the Node out of service. It
/// is written in one patch with the cordon, and removed in one patch with the uncordon. The JSON
/// names are public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiLock {
    /// The Lease that is held for the Node.
    pub lease: String,
    /// Whether the lock API set the cordon and must undo it.
    pub cordoned_by_us: bool,
    /// Since when, by the clock of the process that wrote it. For people.
    pub since: Timestamp,
    pub run: RunId,
}

/// A host's Node from one fresh read.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiNode {
    /// The part that every decision about a Node uses.
    pub seen: ObservedNode,
    /// Annotation `dogwatch.dev/api-lock`.
    pub lock: ParsedAnnotation<ApiLock>,
}

/// One conditional patch of a host's Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWrite {
    /// The version that the patch was decided on: its precondition.
    pub resource_version: String,
    /// `Some(true)` cordons, `Some(false)` uncordons.
    pub unschedulable: Option<bool>,
    /// The annotation; `None` removes it.
    pub lock: Option<ApiLock>,
}

impl ApiNode {
    /// Cordons for this request, or takes over the cordon of an earlier request of the same host.
    /// The patch always changes the Node's version: an uncordon on its way must fail.
    pub(super) fn build_cordon(&self, lease: &str, run: &RunId, now: Timestamp) -> NodeWrite {
        let closed = self.seen.unschedulable;
        let before = self.lock.get().is_some_and(|lock| lock.cordoned_by_us);
        NodeWrite {
            resource_version: self.seen.resource_version.clone(),
            unschedulable: (!closed).then_some(true),
            lock: Some(ApiLock {
                lease: lease.to_owned(),
                cordoned_by_us: !closed || before,
                since: now,
                run: run.clone(),
            }),
        }
    }

    /// Uncordons if the cordon is the lock API's and still there; never removes another cordon
    /// (S3).
    pub(super) fn build_uncordon(&self) -> NodeWrite {
        let ours = self.lock.get().is_some_and(|lock| lock.cordoned_by_us);
        NodeWrite {
            resource_version: self.seen.resource_version.clone(),
            unschedulable: (ours && self.seen.unschedulable && !self.seen.quarantined)
                .then_some(false),
            lock: None,
        }
    }

    /// Changes the version without a cordon, so that a cordon on its way fails. The next decision
    /// finds the annotation and removes it.
    pub(super) fn build_version_bump(&self, lease: &str, run: &RunId, now: Timestamp) -> NodeWrite {
        NodeWrite {
            resource_version: self.seen.resource_version.clone(),
            unschedulable: None,
            lock: Some(ApiLock {
                lease: lease.to_owned(),
                cordoned_by_us: false,
                since: now,
                run: run.clone(),
            }),
        }
    }
}

/// Why nothing begins on this Node for now: the remediator is fencing its machine.
pub fn describe_fencing(node: &ObservedNode) -> Option<String> {
    let name = &node.name;
    node.being_fenced.then(|| {
        format!("node {name} is being fenced; for the reason, run `dogwatch explain node/{name}`")
    })
}

/// Why the lock API must leave this Node alone: its own coordinator is working on it.
pub fn describe_refusal(node: &ObservedNode) -> Option<String> {
    let name = &node.name;
    match &node.record {
        ParsedAnnotation::Absent => None,
        ParsedAnnotation::Is(record) => match record.phase {
            RebootPhase::Waiting => None,
            RebootPhase::Holding => Some(format!(
                "node {name} is held out of service; for whom and why, run `dogwatch explain node/{name}`"
            )),
            RebootPhase::Draining | RebootPhase::Rebooting | RebootPhase::Returning => {
                Some(format!(
                    "the coordinator of node {name} is rebooting it (phase {}); for its progress, \
                 run `dogwatch explain node/{name}`",
                    record.phase.as_str()
                ))
            }
        },
        ParsedAnnotation::Bad { why } => Some(format!(
            "annotation dogwatch.dev/reboot of node {name} cannot be read ({why}), so the lock \
             API cannot know whether the node is being rebooted; repair or remove the annotation"
        )),
    }
}

#[cfg(test)]
pub(in crate::lock) mod tests {
    use super::super::super::testkit::run;
    use std::collections::BTreeMap;

    use super::*;
    use crate::name::{BootId, NodeName};
    use crate::reboot::{RebootRecord, RebootTrigger};

    pub(crate) fn node(unschedulable: bool, lock: ParsedAnnotation<ApiLock>) -> ApiNode {
        ApiNode {
            seen: ObservedNode {
                resource_version: "7".into(),
                unschedulable,
                api_lock: lock != ParsedAnnotation::Absent,
                ..ObservedNode::ready_node(
                    NodeName::new("h").unwrap(),
                    "uid-h".into(),
                    BootId::new("boot").unwrap(),
                )
            },
            lock,
        }
    }

    pub(crate) fn locked(by: &str, cordoned_by_us: bool) -> ParsedAnnotation<ApiLock> {
        ParsedAnnotation::Is(ApiLock {
            lease: "dogwatch-default-0".into(),
            cordoned_by_us,
            since: Timestamp::UNIX_EPOCH,
            run: run(by),
        })
    }

    fn closed(node: &ApiNode) -> (Option<bool>, bool) {
        let write = node.build_cordon("dogwatch-default-0", &run("api/p/2"), Timestamp::UNIX_EPOCH);
        assert_eq!(write.resource_version, "7");
        (write.unschedulable, write.lock.unwrap().cordoned_by_us)
    }

    #[test]
    fn whose_the_cordon_is_is_known_from_the_patch_that_made_it() {
        let bad = || ParsedAnnotation::Bad { why: "?".into() };
        let table = [
            (false, ParsedAnnotation::Absent, (Some(true), true)),
            (true, ParsedAnnotation::Absent, (None, false)),
            (true, locked("api/p/1", true), (None, true)),
            (true, locked("api/p/1", false), (None, false)),
            (false, locked("api/p/1", false), (Some(true), true)),
            (true, bad(), (None, false)),
        ];
        for (unschedulable, lock, expected) in table {
            let node = node(unschedulable, lock);
            assert_eq!(closed(&node), expected, "{node:?}");
        }
    }

    #[test]
    fn nobody_elses_cordon_is_removed() {
        let table = [
            (true, locked("api/p/1", true), Some(false)),
            (true, locked("api/p/1", false), None),
            (false, locked("api/p/1", true), None),
            (true, ParsedAnnotation::Bad { why: "?".into() }, None),
        ];
        for (unschedulable, lock, expected) in table {
            let write = node(unschedulable, lock).build_uncordon();
            assert_eq!((write.unschedulable, write.lock), (expected, None));
        }
        let mut quarantined = node(true, locked("api/p/1", true));
        quarantined.seen.quarantined = true;
        assert_eq!(quarantined.build_uncordon().unschedulable, None);
    }

    #[test]
    fn a_node_that_its_coordinator_works_on_is_left_alone() {
        let refusal = |record| {
            let mut node = node(false, ParsedAnnotation::Absent).seen;
            node.record = record;
            describe_refusal(&node)
        };
        let in_phase = |phase| {
            let record = RebootRecord::new_waiting(
                run("r"),
                RebootTrigger::default(),
                BTreeMap::new(),
                BootId::new("boot").unwrap(),
                Timestamp::UNIX_EPOCH,
            );
            refusal(ParsedAnnotation::Is(RebootRecord { phase, ..record }))
        };
        assert_eq!(refusal(ParsedAnnotation::Absent), None);
        assert_eq!(in_phase(RebootPhase::Waiting), None);
        let held = in_phase(RebootPhase::Holding).unwrap();
        assert!(
            held.starts_with("node h is held out of service; "),
            "{held}"
        );
        for phase in [
            RebootPhase::Draining,
            RebootPhase::Rebooting,
            RebootPhase::Returning,
        ] {
            let why = in_phase(phase).unwrap();
            let begins = format!(
                "the coordinator of node h is rebooting it (phase {}); ",
                phase.as_str()
            );
            assert!(why.starts_with(&begins), "{why}");
        }
        let unreadable = refusal(ParsedAnnotation::Bad {
            why: "no JSON".into(),
        })
        .unwrap();
        assert!(
            unreadable.contains("cannot be read (no JSON)"),
            "{unreadable}"
        );
    }

    #[test]
    fn the_annotation_is_spelled_as_documented() {
        let ParsedAnnotation::Is(lock) = locked("api/p/1", true) else {
            unreachable!("made so")
        };
        let text = serde_json::to_string(&lock).unwrap();
        assert_eq!(
            text,
            r#"{"lease":"dogwatch-default-0","cordonedByUs":true,"since":"1970-01-01T00:00:00Z","run":"api/p/1"}"#
        );
    }
}
