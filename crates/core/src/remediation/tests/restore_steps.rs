//! On which Node a backup is restored, and when one that is not needed is dropped. Source:
//! specification §4.1.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::Now;
use crate::decision::decision_with_cause;

/// The remediation of host h-a, with a stored backup of Node n-a, which exists.
struct Kept {
    case: Remediation,
    memory: RemediationMemory,
    around: ConcurrentRemediations,
    config: RemediationConfig,
    now: Now,
}

fn backup(uid: &str, labels: &[&str]) -> NodeBackup {
    let labels = labels
        .iter()
        .map(|name| ((*name).to_owned(), String::new()));
    NodeBackup {
        uid: uid.into(),
        labels: labels.collect(),
        ..NodeBackup::from_node(&node("a"), BTreeMap::new(), Vec::new())
    }
}

impl Kept {
    fn new(backup: NodeBackup) -> Self {
        let host = host("a");
        let kept = stored(&host, backup);
        let world = keeping(world([machine("a")], [host], [node("a")]), kept);
        let case = case_of(&world, "host/machines/h-a").unwrap();
        let now = now(100);
        let beat = beat(case.node.as_ref(), 5);
        let memory = RemediationMemory {
            fresh: Some(fresh(&world, &case, &beat, now.mono)),
            host_without_key_since: Some(
                now.mono
                    .saturating_sub(RemediationConfig::UNANSWERED_WRITE_LIFETIME),
            ),
            ..RemediationMemory::default()
        };
        Self {
            case,
            memory,
            around: ConcurrentRemediations::default(),
            config: RemediationConfig::default(),
            now,
        }
    }

    /// A backup that is due on Node n-a.
    fn due() -> Self {
        Self::new(backup("uid-old", &["tier"]))
    }

    fn not_deleted() -> Self {
        Self::new(backup("uid-n-a", &["tier"]))
    }

    fn ctx(&self) -> context::RemediationContext<'_> {
        context::RemediationContext {
            case: &self.case,
            memory: &self.memory,
            concurrent: &self.around,
            config: &self.config,
            now: self.now,
        }
    }

    fn decision_after(&self, reason: RemediationReason) -> RemediationDecision {
        restore::restore_backup(&self.ctx(), decision_with_cause(reason, ""))
    }

    fn decision(&self) -> RemediationDecision {
        self.decision_after(RemediationReason::NotNeeded)
    }

    fn decision_with_new_backup(&self) -> RemediationDecision {
        let fresh = self.memory.fresh.as_ref().unwrap();
        let decision = decision_with_cause(RemediationReason::Preparing, "");
        restore::restore_with_new_backup(&self.ctx(), decision, fresh)
    }

    fn also_held_off(&mut self, name: &str) {
        self.around.fenced.push(FencedHost {
            subject: RemediationSubject::Machine(machine_name("b")),
            host: host_name(name),
            node: None,
            cluster: NodeCluster::Management,
            is_cluster_readable: true,
            control_plane: false,
            bmc_answers: true,
            stage: RemediationStage::HeldOff,
        });
    }
}

fn restores(decision: &RemediationDecision) -> bool {
    let mut actions = decision.actions.iter();
    actions.any(|it| matches!(it, RemediationAction::Restore { .. }))
}

fn drops(decision: &RemediationDecision) -> bool {
    decision.actions.iter().any(RemediationAction::drops_backup)
}

type Change = fn(&mut Remediation);

/// The Node is not the one that the remediation reads afresh.
const OTHER_NODES: [(&str, Change); 4] = [
    ("another name", |case| {
        case.node_name = Some(node_name("b"));
    }),
    ("no name", |case| case.node_name = None),
    ("another cluster", |case| {
        let name = ObjectName::new("machines", "prod");
        case.cluster.name = NodeCluster::Workload(name);
    }),
    ("a cluster that cannot be read", |case| {
        let reason = RemediationReason::WorkloadClusterUnreachable;
        case.cluster.problem = Some((reason, String::new()));
    }),
];

#[test]
fn a_backup_is_restored_only_on_the_node_of_its_remediation() {
    let it = Kept::due();
    assert!(restore::is_restore_due(&it.ctx()));
    let decision = it.decision();
    assert!(restores(&decision) && drops(&decision), "{decision:?}");
    for (what, change) in OTHER_NODES {
        let mut it = Kept::due();
        change(&mut it.case);
        assert!(!restore::is_restore_due(&it.ctx()), "{what}");
        let decision = it.decision();
        assert_eq!(decision.actions, [], "{what}");
        assert_eq!(decision.observe, [], "{what}");
    }
}

#[test]
fn an_old_backup_is_restored_with_a_new_one_only_on_the_node_of_its_remediation() {
    let it = Kept::due();
    let decision = it.decision_with_new_backup();
    assert!(restores(&decision) && !drops(&decision), "{decision:?}");
    for (what, change) in OTHER_NODES {
        let mut it = Kept::due();
        change(&mut it.case);
        assert_eq!(it.decision_with_new_backup().actions, [], "{what}");
    }
    let mut replaced = Kept::due();
    let fresh = replaced.memory.fresh.as_mut().unwrap();
    fresh.backup.as_mut().unwrap().uid = "uid-newer".into();
    assert_eq!(replaced.decision_with_new_backup().actions, []);
}

#[test]
fn a_backup_of_a_node_that_was_not_deleted_stays_while_its_deletion_may_come() {
    assert!(drops(&Kept::not_deleted().decision()));

    let mut keyed_host = Kept::not_deleted();
    let key = KeyOwner::Machine("uid-a".into());
    keyed_host.case.host = Ok(Arc::new(keyed(host("a"), &key)));
    assert!(!drops(&keyed_host.decision()));

    let preparing = Kept::not_deleted();
    assert!(!drops(
        &preparing.decision_after(RemediationReason::Preparing)
    ));

    let mut held_by_another = Kept::not_deleted();
    held_by_another.also_held_off("a");
    assert!(!drops(&held_by_another.decision()));

    let mut other_host_held = Kept::not_deleted();
    other_host_held.also_held_off("b");
    assert!(drops(&other_host_held.decision()));
}

#[test]
fn a_restore_is_reported_when_something_is_restored_or_withheld() {
    const ROLE: &str = "node-role.kubernetes.io/control-plane";
    for (labels, is_proved, is_reported) in [
        (&["tier"][..], true, true),
        (&[ROLE][..], false, true),
        (&[][..], true, false),
        (&[][..], false, false),
    ] {
        let mut it = Kept::new(backup("uid-old", labels));
        let kept = it.case.host_backup.as_mut().unwrap();
        let BackupDisposition::Due { is_proved: is, .. } = &mut kept.disposition else {
            panic!("{kept:?}");
        };
        *is = is_proved;
        let events = it.decision().report.events;
        assert_eq!(
            events.len(),
            usize::from(is_reported),
            "{labels:?} {is_proved}"
        );
    }
}

#[test]
fn a_restore_says_how_many_annotations_were_too_long_to_be_saved() {
    for (left_out, says) in [(0, None), (2, Some("except 2 annotations"))] {
        let mut kept = backup("uid-old", &["tier"]);
        kept.left_out = left_out;
        let events = Kept::new(kept).decision().report.events;
        let message = &events[0].message;
        let wanted = says.is_none_or(|says| message.contains(says));
        assert!(wanted, "{message}");
        assert_eq!(message.contains("too long"), says.is_some(), "{message}");
    }
}

#[test]
fn a_backup_of_exactly_the_maximum_size_leaves_nothing_out() {
    let sized = |length: usize| {
        let annotations = [("x".to_owned(), "x".repeat(length))].into();
        NodeBackup::from_node(&node("a"), annotations, Vec::new())
    };
    let frame = serde_json::to_string(&sized(0)).unwrap().len();
    let room = 512 * 1024 - frame;
    assert_eq!(sized(room).left_out, 0);
    assert_eq!(sized(room + 1).left_out, 1);
}

#[test]
fn a_late_deletion_is_waited_for_since_the_key_was_removed() {
    let mut it = Kept::not_deleted();
    it.memory.host_without_key_since = Some(Duration::from_secs(90));
    let decision = it.decision();
    assert_eq!(decision.actions, []);
    assert_eq!(decision.wake.unwrap().at, Duration::from_secs(160));
}

fn free_lease() -> RemediationAction {
    RemediationAction::FreeLease {
        node: node_name("a"),
        version: "1".into(),
    }
}

#[test]
fn a_restore_waits_only_for_a_decision_that_stores_a_backup() {
    let it = Kept::due();
    let free = free_lease();
    let keep = RemediationAction::KeepBackup {
        host: it.case.host.clone().unwrap(),
        backup: backup("uid-n-a", &[]),
        over: None,
    };
    for (action, is_restored) in [(free, true), (keep, false)] {
        let decision = decision_with_cause(RemediationReason::NotNeeded, "").with_action(action);
        let decision = restore::restore_backup(&it.ctx(), decision);
        assert_eq!(restores(&decision), is_restored, "{decision:?}");
    }
}

#[test]
fn a_removal_of_an_old_backup_writes_the_host_and_a_free_lease_does_not() {
    let host = Arc::new(host("a"));
    assert!(RemediationAction::RemoveOldBackup { host }.writes_host());
    assert!(!free_lease().writes_host());
}
