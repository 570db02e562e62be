//! What is restored on a new Node, and what never is. Source: specification §4.1.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::power::HostSnapshot;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn taint(key: &str, value: &str, effect: &str) -> NodeTaint {
    NodeTaint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
    }
}

fn labelled(pairs: &[(&str, &str)]) -> ObservedNode {
    ObservedNode {
        labels: texts(pairs),
        ..node("a")
    }
}

#[test]
fn what_dogwatch_wrote_the_need_and_taints_by_state_are_never_kept() {
    let labels = [("tier", "db"), ("dogwatch.dev/reboot", "waiting")];
    let annotations = texts(&[
        ("site", "x"),
        ("dogwatch.dev/fencing", "{}"),
        ("dogwatch.dev/reboot", "{}"),
        ("host.metal3.io/external-remediation", ""),
    ]);
    let taints = vec![
        taint("example.com/dedicated", "db", "NoSchedule"),
        taint("node.kubernetes.io/unreachable", "", "NoExecute"),
        taint(
            "node.kubernetes.io/out-of-service",
            "nodeshutdown",
            "NoExecute",
        ),
        taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
        taint(
            "node.cloudprovider.kubernetes.io/shutdown",
            "",
            "NoSchedule",
        ),
        taint("dogwatch.dev/x", "", "NoSchedule"),
    ];
    let backup = NodeBackup::from_node(&labelled(&labels), annotations, taints);
    assert_eq!(backup.labels, texts(&[("tier", "db")]));
    assert_eq!(backup.annotations, texts(&[("site", "x")]));
    let kept = [taint("example.com/dedicated", "db", "NoSchedule")];
    assert_eq!(backup.taints, kept);
    assert_eq!((&*backup.node, &*backup.uid), ("n-a", "uid-n-a"));
    assert!(!backup.cordoned);
}

#[test]
fn a_cordon_comes_back_unless_it_was_ours() {
    let cordoned = |ours: bool, api_lock: bool, keep: bool| {
        let mut node = node("a");
        node.keep_cordoned = keep;
        node.unschedulable = true;
        node.api_lock = api_lock;
        if ours {
            node.record = ParsedAnnotation::Is(reboot_record(RebootPhase::Draining, 5));
        }
        NodeBackup::from_node(&node, BTreeMap::new(), Vec::new()).cordoned
    };
    let mut quarantined = node("a");
    quarantined.unschedulable = true;
    quarantined.quarantined = true;
    quarantined.record = ParsedAnnotation::Is(reboot_record(RebootPhase::Draining, 5));
    assert!(NodeBackup::from_node(&quarantined, BTreeMap::new(), Vec::new()).cordoned);
    assert!(cordoned(false, false, false));
    assert!(!cordoned(true, false, false));
    assert!(!cordoned(false, true, false));
    assert!(!cordoned(false, true, true));
    assert!(
        cordoned(true, false, true),
        "somebody asked to keep it cordoned after the boot"
    );
}

#[test]
fn what_is_on_the_new_node_already_wins() {
    let mut backup = NodeBackup::from_node(
        &labelled(&[("tier", "db"), ("zone", "old")]),
        texts(&[("site", "x"), ("ip", "old")]),
        vec![
            taint("a", "old", "NoSchedule"),
            taint("a", "old", "NoExecute"),
        ],
    );
    backup.cordoned = true;
    let there = NodeBackup::from_node(
        &labelled(&[("zone", "new")]),
        texts(&[("ip", "new")]),
        vec![taint("a", "new", "NoSchedule")],
    );
    let missing = backup.missing_on(&there);
    assert_eq!(missing.labels, texts(&[("tier", "db")]));
    assert_eq!(missing.annotations, texts(&[("site", "x")]));
    assert_eq!(missing.taints, [taint("a", "old", "NoExecute")]);
    assert!(missing.cordoned);
    assert!(backup.missing_on(&backup).is_empty());
}

#[test]
fn what_somebody_wrote_into_a_backup_that_may_not_be_in_one_does_not_come_back() {
    let forged = NodeBackup {
        annotations: texts(&[("dogwatch.dev/reboot-requested", "{}")]),
        taints: vec![taint("node.kubernetes.io/out-of-service", "", "NoExecute")],
        ..NodeBackup::default()
    };
    assert!(forged.missing_on(&NodeBackup::default()).is_empty());
}

#[test]
fn a_backup_that_gets_too_large_leaves_out_the_longest_annotations_and_says_how_many() {
    let long = "x".repeat(300_000);
    let longer = "x".repeat(400_000);
    let annotations = texts(&[("long", &long), ("longer", &longer), ("site", "x")]);
    let backup = NodeBackup::from_node(&labelled(&[("tier", "db")]), annotations, Vec::new());
    assert_eq!(
        backup.annotations.keys().collect::<Vec<_>>(),
        ["long", "site"]
    );
    assert_eq!(backup.labels.len(), 1);
    assert_eq!(backup.left_out, 1);
    let text = serde_json::to_string(&backup).unwrap();
    assert_eq!(serde_json::from_str::<NodeBackup>(&text).unwrap(), backup);
}

/// Host h-a with a stored backup, and the objects that exist now.
struct Scene {
    host: HostSnapshot,
    machine: Option<ObservedMachine>,
    kept: StoredBackup,
    nodes: Vec<ObservedNode>,
    /// What is on the Node already, if it was read.
    there: Option<NodeBackup>,
    /// For how long the host has been without a key.
    without_key_for: Duration,
}

impl Scene {
    fn new(kept: NodeBackup, node: Option<ObservedNode>) -> Self {
        let host = host("a");
        Self {
            kept: stored(&host, kept),
            host,
            machine: Some(machine("a")),
            nodes: node.into_iter().collect(),
            there: None,
            without_key_for: Duration::ZERO,
        }
    }

    fn reading(self, there: &NodeBackup) -> Self {
        let there = Some(there.clone());
        Self { there, ..self }
    }

    fn decided(&self) -> RemediationDecision {
        let world = world(
            self.machine.clone(),
            [self.host.clone()],
            self.nodes.clone(),
        );
        let world = keeping(world, self.kept.clone());
        let case = case_of(&world, "host/machines/h-a").unwrap();
        let now = now(100);
        let beat = beat(case.node.as_ref(), 5);
        let fresh = self.there.as_ref().map(|there| FreshReads {
            backup: Some(there.clone()),
            ..fresh(&world, &case, &beat, now.mono)
        });
        let known = RemediationMemory {
            fresh,
            host_without_key_since: now.mono.checked_sub(self.without_key_for),
            ..RemediationMemory::default()
        };
        decide(
            &case,
            &known,
            &ConcurrentRemediations::default(),
            &RemediationConfig::default(),
            now,
        )
    }

    fn drops(&self) -> bool {
        let decision = self.decided();
        let drops = matches!(
            &decision.actions[..],
            [RemediationAction::DropBackup { .. }]
        );
        assert!(drops || decision.actions.is_empty(), "{decision:?}");
        drops
    }
}

const ROLE: &str = "node-role.kubernetes.io/control-plane";

fn kept(uid: &str) -> NodeBackup {
    let labels = [
        ("tier", "db"),
        (ROLE, ""),
        ("x.node-restriction.kubernetes.io/pool", "secret"),
    ];
    NodeBackup {
        uid: uid.into(),
        ..NodeBackup::from_node(&labelled(&labels), BTreeMap::new(), Vec::new())
    }
}

fn bare() -> NodeBackup {
    NodeBackup::from_node(&node("a"), BTreeMap::new(), Vec::new())
}

#[test]
fn it_is_restored_as_soon_as_another_node_of_that_machine_is_there_and_then_dropped() {
    let old = kept("uid-old");
    let waits = Scene::new(old.clone(), None).decided();
    assert_eq!(waits.actions, vec![]);
    assert_eq!(waits.cause.reason, RemediationReason::Restoring);
    let anew = || Scene::new(old.clone(), Some(node("a")));
    let looks = anew().decided();
    assert!(matches!(
        &looks.observe[..],
        [RemediationObserve::Fresh { .. }]
    ));
    let back = anew().reading(&bare()).decided();
    let [
        RemediationAction::Restore { backup, .. },
        RemediationAction::DropBackup { .. },
    ] = &back.actions[..]
    else {
        panic!("{back:?}");
    };
    assert_eq!(backup.labels, old.labels);
    assert!(anew().reading(&old).drops());
}

#[test]
fn what_was_kept_of_a_node_that_was_not_deleted_is_dropped_once_no_deletion_can_be_late() {
    let mut scene = Scene::new(kept("uid-n-a"), Some(node("a")));
    assert!(!scene.drops());
    let wake = scene.decided().wake.unwrap();
    let wait = RemediationConfig::UNANSWERED_WRITE_LIFETIME;
    assert_eq!(
        (wake.at, wake.why),
        (now(100).mono + wait, "a late deletion of the Node")
    );
    scene.without_key_for = wait.checked_sub(Duration::from_millis(1)).unwrap();
    assert!(!scene.drops());
    scene.without_key_for = wait;
    assert!(scene.drops());
}

#[test]
fn what_this_process_has_not_seen_does_not_count_as_time_without_a_key() {
    let scene = Scene::new(kept("uid-n-a"), Some(node("a")));
    let world = world(
        scene.machine.clone(),
        [scene.host.clone()],
        scene.nodes.clone(),
    );
    let free = case_of(&keeping(world, scene.kept.clone()), "host/machines/h-a").unwrap();
    let keyed = Remediation {
        host: Ok(Arc::new(free.key.with_key_on(&scene.host))),
        ..free.clone()
    };
    let decision = scene.decided();
    let mut known = RemediationMemory::default();
    for (case, second, since) in [
        (&free, 1, Some(1)),
        (&free, 2, Some(1)),
        (&keyed, 3, None),
        (&free, 4, Some(4)),
    ] {
        known.record_decision(case, &decision, Duration::from_secs(second));
        assert_eq!(known.host_without_key_since, since.map(Duration::from_secs));
    }
}

/// This Node has the name now, and nothing is restored on it.
#[track_caller]
fn gets_nothing(scene: Scene, says: &str) {
    let decision = scene.reading(&bare()).decided();
    assert_eq!(decision.actions, vec![], "{decision:?}");
    assert_eq!(decision.cause.reason, RemediationReason::Restoring);
    let message = &decision.cause.message;
    assert!(message.contains(says), "{message}");
}

#[test]
fn a_name_that_another_machine_took_gets_nothing_of_the_old_ones() {
    let other = ObservedNode {
        system_uuid: Some("00112233-1111-4222-8333-0123456789ab".into()),
        ..node("a")
    };
    gets_nothing(Scene::new(kept("uid-old"), Some(other)), "another machine");
    let mut told = kept("uid-old");
    told.provider_id = Some("metal3://machines/h-a/m".into());
    let mut provided = node("a");
    provided.provider_id = Some("metal3://machines/h-b/m".into());
    gets_nothing(Scene::new(told, Some(provided)), "another machine");
    // The Machine's link decides, whatever the UUIDs say.
    let mut moved = machine("a");
    moved.host = Some("machines/h-b".into());
    let mut scene = Scene::new(kept("uid-old"), Some(node("a")));
    scene.machine = Some(moved);
    let world = keeping(
        world(scene.machine.clone(), [scene.host, host("b")], scene.nodes),
        scene.kept,
    );
    let case = case_of(&world, "host/machines/h-a").unwrap();
    let fate = &case.host_backup.as_ref().unwrap().disposition;
    assert!(
        matches!(fate, BackupDisposition::NotSameMachine(why) if why.contains("h-b")),
        "{fate:?}"
    );
}

#[test]
fn where_nothing_shows_whose_a_node_is_it_gets_nothing_and_that_is_said() {
    let silent = ObservedNode {
        system_uuid: None,
        ..node("a")
    };
    let mut scene = Scene::new(kept("uid-old"), Some(silent));
    scene.machine = None;
    gets_nothing(scene, "Dogwatch cannot tell whether");
}

#[test]
fn labels_that_give_roles_come_back_on_proof_of_the_same_machine_only() {
    let silent = ObservedNode {
        system_uuid: None,
        ..node("a")
    };
    let back = Scene::new(kept("uid-old"), Some(silent));
    let back = back.reading(&bare()).decided();
    let [
        RemediationAction::Restore { backup, .. },
        RemediationAction::DropBackup { .. },
    ] = &back.actions[..]
    else {
        panic!("{back:?}");
    };
    assert_eq!(backup.labels, texts(&[("tier", "db")]));
    let said = &back.report.events[0].message;
    assert!(said.contains(ROLE) && said.contains("by hand"), "{said}");
}

#[test]
fn what_is_kept_is_dropped_when_its_host_is_given_away_or_its_machine_has_another_name() {
    let scene = || Scene::new(kept("uid-old"), None);
    assert!(!scene().drops());
    let mut deprovisioned = scene();
    deprovisioned.host.status.provisioning = Some("available".into());
    assert!(deprovisioned.drops());
    let mut consumed_by_another = scene();
    let object = ObjectName::new("machines", "m2");
    consumed_by_another.host = consumed(host("a"), "cluster.x-k8s.io", "Machine", &object);
    assert!(consumed_by_another.drops());
    let mut renamed = scene();
    renamed.machine.as_mut().unwrap().node = Some("n-new".into());
    renamed.nodes = vec![node("new")];
    assert!(renamed.drops());
    let mut told = scene();
    told.nodes = vec![node("new")];
    assert!(told.drops(), "by its system UUID");
    told.nodes.push(node("newer"));
    assert!(!told.drops(), "two that tell one UUID");
}

#[test]
fn what_is_kept_for_a_host_that_is_gone_is_dropped() {
    let scene = Scene::new(kept("uid-old"), None);
    let anew = HostSnapshot {
        uid: "uid-anew".into(),
        ..host("a")
    };
    for hosts in [vec![], vec![anew]] {
        let world = keeping(world([], hosts, []), scene.kept.clone());
        let case = case_of(&world, "host/machines/h-a").unwrap();
        let (known, around) = (
            RemediationMemory::default(),
            ConcurrentRemediations::default(),
        );
        let decision = decide(
            &case,
            &known,
            &around,
            &RemediationConfig::default(),
            now(100),
        );
        assert!(matches!(
            &decision.actions[..],
            [RemediationAction::DropBackup { .. }]
        ));
    }
}

#[test]
fn what_is_kept_under_an_old_name_is_dropped_when_its_machine_is_linked_under_another() {
    let mut renamed = Scene::new(kept("uid-old"), None);
    renamed.machine.as_mut().unwrap().node = Some("n-new".into());
    renamed.nodes = vec![ObservedNode {
        system_uuid: None,
        ..node("new")
    }];
    assert!(renamed.drops());
}

#[test]
fn what_is_kept_waits_while_only_other_machines_have_nodes() {
    let another = ObservedNode {
        system_uuid: Some("00112233-1111-4222-8333-0123456789ab".into()),
        ..node("b")
    };
    let silent = ObservedNode {
        system_uuid: None,
        ..node("b")
    };
    let scene = |nodes| Scene {
        nodes,
        ..Scene::new(kept("uid-old"), None)
    };
    for node in [another, silent] {
        let waits = scene(vec![node]).decided();
        assert_eq!(waits.actions, [], "{waits:?}");
    }
    // Its firmware tells the same UUID, and a Machine links it to another host.
    let scene = scene(vec![node("b")]);
    let machines = [machine("a"), machine("b")];
    let world = world(machines, [scene.host.clone(), host("b")], scene.nodes);
    let case = case_of(&keeping(world, scene.kept), "host/machines/h-a").unwrap();
    let fate = case.host_backup.map(|kept| kept.disposition);
    assert_eq!(fate, Some(BackupDisposition::WaitsForNode));
}
