//! Explanations, word for word.

use std::sync::Arc;

use super::testkit::*;
use super::*;
use crate::lock::api_lock::WaitingHost;
use crate::lock::{HeldLockLease, HolderId, RemediationHold};
use crate::name::{GroupName, NodeName};
use crate::reboot::{
    LastReboot, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase, RebootRequest,
    RebootTrigger,
};

pub(super) fn text(explanation: &NodeExplanation) -> Vec<String> {
    let lines = explanation.chain.iter();
    lines
        .map(|line| format!("{}: {}", line.topic.as_str(), line.text))
        .collect()
}

fn explained(name: &str, nodes: Vec<ObservedNode>, leases: Vec<LeaseRow>) -> NodeExplanation {
    explain_node(&view(name, fleet(nodes, leases)), now(70)).unwrap()
}

pub(super) fn blocked_holder() -> ObservedNode {
    let said = (
        "DrainBlocked",
        "1 pods gone, 1 to go; shop/db is blocked by PodDisruptionBudget shop/db",
    );
    in_phase("n1", RebootPhase::Draining, 20, said)
}

#[test]
fn a_waiting_node_is_explained_down_to_what_holds_its_holder_up() {
    let nodes = vec![blocked_holder(), waiting("n2", 10), waiting("n3", 40)];
    let explanation = explained("n3", nodes, vec![held(0, "n1", 20)]);
    assert_eq!(explanation.summary, "n3: waiting for 30s: LockHeldByOther");
    assert_eq!(
        text(&explanation),
        [
            "asked: sentinel:/run/reboot-needed: \"kernel 6.18\", since 1970-01-01 00:00:40Z (30s)",
            "phase: waiting since 1970-01-01 00:00:40Z (30s)",
            "says: LockHeldByOther: waits for the lock; held: dogwatch-default-0 by node/n1",
            "lock: dogwatch-default-0 is held by node/n1 since 1970-01-01 00:00:20Z (50s) (at most 1 at once); n1 is draining: DrainBlocked: 1 pods gone, 1 to go; shop/db is blocked by PodDisruptionBudget shop/db",
            "order: 2nd of 2 that wait; before it: n2",
            "budget: at most 1 of 3 in group default may be unavailable (if --max-unavailable has its default); unavailable now: n1 (unschedulable, holds dogwatch-default-0)",
            "boot: old-boot, which the reboot ends",
            "deadline: none: Dogwatch changes nothing on the node while it waits for the lock",
        ]
    );
    assert_eq!(
        explanation.advice,
        [
            "to see what blocks the holder: dogwatch explain node/n1",
            "to stop it (its trigger is then treated as done): dogwatch abort n3",
        ]
    );
}

#[test]
fn a_node_that_a_remediation_holds_is_out_in_the_words_as_in_the_count() {
    let fenced = NodeName::new("n1").unwrap();
    let remedy = HeldLockLease {
        lease: "dogwatch-remedy-n1".into(),
        resource_version: "1".into(),
        slot: None,
        holder: HolderId::new("remedy").unwrap(),
        node: Some(fenced),
        max: None,
        remediation: Some(RemediationHold {
            group: Some(GroupName::default_group()),
            control_plane: false,
            since: None,
        }),
    };
    let mut fleet = fleet(vec![node("n1"), waiting("n2", 10)], vec![free(0)]);
    fleet.remediation_leases = vec![remedy];
    let budget = fleet.budget_of_node(&fleet.nodes[1]);
    assert!(!budget.has_room(), "{budget:?}");
    let says = "at most 1 of 2 in group default may be unavailable (if --max-unavailable has its default); unavailable now: n1 (holds dogwatch-remedy-n1)";
    assert_eq!(budget.to_sentence(), says);
    // Its Node is deleted, and the machine boots.
    let mut deleted = fleet.clone();
    deleted.nodes.remove(0);
    let budget = deleted.budget_of_node(&deleted.nodes[0]);
    assert_eq!(budget.to_sentence(), says.replace("of 2 in", "of 1 in"));
    fleet.remediation_leases.clear();
    assert!(fleet.budget_of_node(&fleet.nodes[1]).has_room());
}

#[test]
fn a_drain_names_its_deadline_and_how_to_call_it_off() {
    let explanation = explained("n1", vec![blocked_holder()], vec![held(0, "n1", 20)]);
    let lines = text(&explanation);
    assert!(lines.contains(&"lock: holds dogwatch-default-0 since 1970-01-01 00:00:20Z (50s), at most 1 of group default at once".to_owned()), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line
            .starts_with("deadline: at 1970-01-01 01:00:20Z (in 59m), if --drain-timeout")),
        "{lines:#?}"
    );
    assert_eq!(
        explanation.advice,
        [
            "to stop it (Dogwatch undoes the drain and treats the trigger as done): dogwatch abort n1",
            "to undo the drain and queue again after a pause: kubectl uncordon n1",
        ]
    );
}

#[test]
fn a_lock_without_a_node_behind_it_is_said_to_be_so() {
    let mut foreign = free(1);
    foreign.lease.holder = HolderId::new("api/host-7").ok();
    let leases = vec![held(0, "gone", 5), foreign];
    let explanation = explained("n2", vec![waiting("n2", 10)], leases);
    assert_eq!(
        explanation.advice[0],
        "to see what is known about the holder of dogwatch-default-1: dogwatch unlock dogwatch-default-1"
    );
    let lines = text(&explanation);
    assert!(
        lines[3].ends_with("Node gone does not exist: the next waiting node frees the lock"),
        "{lines:#?}"
    );
    assert!(
        lines[4].ends_with("dogwatch-default-1 is held by api/host-7, which is not a Node"),
        "{lines:#?}"
    );
}

#[test]
fn a_reboot_that_failed_says_what_only_a_person_can_do() {
    let said = ("RebootFailed", "no new boot after 2 attempts");
    let explanation = explained(
        "n1",
        vec![in_phase("n1", RebootPhase::Rebooting, 20, said)],
        vec![held(0, "n1", 20)],
    );
    assert!(
        explanation.advice[0].contains("by hand"),
        "{explanation:#?}"
    );
    let lines = text(&explanation);
    assert!(
        lines.contains(
            &"boot: old-boot, which the reboot ends; the kubelet has not reported a newer boot yet"
                .to_owned()
        ),
        "{lines:#?}"
    );
}

#[test]
fn an_idle_node_tells_what_is_known_and_how_to_ask() {
    let mut idle = node("n1");
    idle.unschedulable = true;
    idle.last_reboot = ParsedAnnotation::Is(LastReboot {
        outcome: RebootOutcome::Rebooted,
        planned: at(10),
        finished: at(40),
        old_boot_id: boot("a"),
        new_boot_id: boot("b"),
        trigger: RebootTrigger {
            source: "request".into(),
            reason: "new kernel".into(),
            requester: None,
            ..RebootTrigger::default()
        },
        fingerprints: std::collections::BTreeMap::new(),
        began: std::collections::BTreeMap::new(),
        rebooted: None,
        soft: false,
    });
    let explanation = explained("n1", vec![idle], vec![]);
    assert_eq!(explanation.summary, "n1: nothing is under way");
    assert_eq!(
        text(&explanation),
        [
            "asked: nothing that this command can see (only the node's coordinator sees sentinels)",
            "boot: old-boot (reported by the kubelet)",
            "cordon: somebody else cordoned the node: Dogwatch will not uncordon it",
            "last: Rebooted at 1970-01-01 00:00:40Z, 30s after it was requested (\"new kernel\"); boot a → b",
        ]
    );
    assert_eq!(
        explanation.advice,
        ["to reboot it: dogwatch reboot n1 --reason …"]
    );
}

#[test]
fn a_request_without_a_coordinator_points_at_the_coordinator() {
    let mut asked = node("n1");
    asked.request = ParsedAnnotation::Is(RebootRequest {
        reason: String::new(),
        requester: "ann".into(),
        not_before: None,
        ..RebootRequest::default()
    });
    let mut seen = view("n1", fleet(vec![asked], vec![]));
    seen.coordinator = ObservedCoordinator::NoPod;
    let explanation = explain_node(&seen, now(70)).unwrap();
    assert_eq!(
        explanation.summary,
        "n1: a reboot is requested, and its coordinator has not accepted the request"
    );
    assert!(
        explanation.advice[0].starts_with("no coordinator runs on this node"),
        "{explanation:#?}"
    );
    seen.coordinator = ObservedCoordinator::NoDaemonSet;
    let explanation = explain_node(&seen, now(70)).unwrap();
    assert!(
        explanation.advice[0].contains("is --namespace right?"),
        "{explanation:#?}"
    );
    // Another coordinator has written on its Node: coordinators run without a DaemonSet.
    seen.fleet.nodes.push(Arc::new(waiting("n2", 10)));
    let explanation = explain_node(&seen, now(70)).unwrap();
    assert!(
        explanation.advice[0].contains("log of this node's coordinator"),
        "{explanation:#?}"
    );
}

#[test]
fn an_annotation_that_cannot_be_read_is_named_with_the_way_to_remove_it() {
    for (key, record) in [
        ("dogwatch.dev/reboot", true),
        ("dogwatch.dev/reboot-requested", false),
    ] {
        let mut broken = node("n1");
        if record {
            broken.record = ParsedAnnotation::Bad {
                why: "expected value".into(),
            };
        } else {
            broken.request = ParsedAnnotation::Bad {
                why: "expected value".into(),
            };
        }
        let explanation = explained("n1", vec![broken], vec![]);
        let line = format!("annotation {key} cannot be read: expected value");
        assert!(
            explanation.chain.iter().any(|l| l.text == line),
            "{explanation:#?}"
        );
        let remove = format!("kubectl annotate node n1 {key}-");
        assert!(explanation.advice[0].contains(&remove), "{explanation:#?}");
    }
}

#[test]
fn a_group_without_leases_and_a_lease_given_back_are_told_apart() {
    let none = text(&explained("n2", vec![waiting("n2", 10)], vec![]));
    assert!(
        none.contains(&"lock: group default has no Lease yet".to_owned()),
        "{none:#?}"
    );
    let mut back = free(0);
    back.lease.yield_count = 3;
    let lines = text(&explained("n2", vec![waiting("n2", 10)], vec![back]));
    assert!(
        lines[3].contains("the last 3 holders found too many nodes unavailable"),
        "{lines:#?}"
    );
}

#[test]
fn a_stop_that_nobody_served_yet_and_a_lock_by_the_api_are_told() {
    let mut node = blocked_holder();
    node.api_lock = true;
    node.abort = ParsedAnnotation::Is(crate::reboot::AbortRequest {
        reason: "not now".into(),
        requester: "ann".into(),
    });
    let lines = text(&explained("n1", vec![node], vec![held(0, "n1", 20)]));
    assert_eq!(lines[1], "asked: abort requested by ann: \"not now\"");
    assert!(
        lines.contains(
            &"lock: the lock API has taken this node out of service; the node's coordinator waits until it is unlocked"
                .to_owned()
        ),
        "{lines:#?}"
    );
}

/// A Node that a caller of the lock API holds, and its Lease.
fn locked_by_api(name: &str) -> (ObservedNode, LeaseRow) {
    let locked = ObservedNode {
        unschedulable: true,
        api_lock: true,
        ..node(name)
    };
    let mut row = held(0, name, 20);
    row.lease.holder = Some(HolderId::for_api_host(name));
    (locked, row)
}

#[test]
fn a_node_locked_through_the_lock_api_says_who_has_it_and_that_unlock_uncordons_it() {
    let (locked, row) = locked_by_api("n1");
    let explanation = explained("n1", vec![locked.clone()], vec![row.clone()]);
    assert_eq!(explanation.summary, "n1: locked through the lock API");
    let lines = text(&explanation).join("\n");
    assert!(
        lines.contains("api/n1 holds dogwatch-default-0")
            && lines.contains("through the lock API; an unlock call releases it"),
        "{lines}"
    );
    assert!(
        lines.contains("unlock uncordons it") && !lines.contains("somebody else"),
        "{lines}"
    );
    let advice = explanation.advice.join("\n");
    assert!(
        advice.contains("dogwatch unlock dogwatch-default-0"),
        "{advice}"
    );
    let table = super::fleet_status(&fleet(vec![locked], vec![row]), now(100));
    assert_eq!(table.nodes[0].lock.as_deref(), Some("dogwatch-default-0"));
    assert_eq!(table.nodes[0].reason.as_deref(), Some("LockedThroughApi"));
}

#[test]
fn a_caller_that_has_the_lock_by_now_is_not_shown_as_one_that_waits() {
    let (locked, row) = locked_by_api("n1");
    let mut fleet = fleet(vec![locked], vec![row]);
    fleet.waiting_hosts = vec![WaitingHost {
        holder: HolderId::for_api_host("n1"),
        group: Some(GroupName::default_group()),
        node: Some(NodeName::new("n1").unwrap()),
        since: at(10),
        reason: "OutsideWindow".into(),
        message: "outside the windows".into(),
    }];
    assert_eq!(super::fleet_status(&fleet, now(100)).waiting, []);
    let explanation = explain_node(&view("n1", fleet), now(100)).unwrap();
    assert_eq!(explanation.summary, "n1: locked through the lock API");
}

#[test]
fn a_caller_that_waits_at_the_lock_api_is_shown_with_its_reason() {
    let mut fleet = fleet(vec![node("n1")], vec![]);
    let message = "outside the windows of RebootPolicy nights; opens at 2026-01-05T22:00:00Z";
    let host = |name: &str, second, of: Option<&str>| WaitingHost {
        holder: HolderId::for_api_host(name),
        group: Some(GroupName::default_group()),
        node: of.map(|node| NodeName::new(node).unwrap()),
        since: at(second),
        reason: "OutsideWindow".into(),
        message: message.into(),
    };
    fleet.waiting_hosts = vec![host("storage", 30, None), host("n1", 10, Some("n1"))];
    let table = super::fleet_status(&fleet, now(100));
    let callers: Vec<&str> = table
        .waiting
        .iter()
        .map(|row| row.caller.as_str())
        .collect();
    assert_eq!(callers, ["api/n1", "api/storage"]);
    assert_eq!(table.nodes[0].reason.as_deref(), Some("OutsideWindow"));
    assert_eq!(table.nodes[0].message.as_deref(), Some(message));
    let explanation = explain_node(&view("n1", fleet), now(100)).unwrap();
    assert_eq!(
        explanation.summary,
        "n1: a lock call over HTTP has waited for 90s: OutsideWindow"
    );
    let lines = text(&explanation).join("\n");
    assert!(
        lines.contains("api/n1 requested the lock over HTTP") && lines.contains(message),
        "{lines}"
    );
}

#[test]
fn many_slots_and_names_are_cut() {
    let leases = (0..9)
        .map(|slot| held(slot, &format!("h{slot}"), 5))
        .collect();
    let nodes = (0..9).map(|n| waiting(&format!("w{n}"), n)).collect();
    let lines = text(&explained("w8", nodes, leases));
    assert!(
        lines.contains(&"lock: and 4 more slots".to_owned()),
        "{lines:#?}"
    );
    assert!(
        lines.contains(
            &"order: 9th of 9 that wait; before it: w0, w1, w2, w3, w4, and 3 more".to_owned()
        ),
        "{lines:#?}"
    );
}

#[test]
fn another_groups_queue_and_slots_are_left_out() {
    let mut other = waiting("cp", 1);
    other.labels.insert(
        "node-role.kubernetes.io/control-plane".into(),
        String::new(),
    );
    let lines = text(&explained(
        "n2",
        vec![waiting("n2", 10), other],
        vec![free(0)],
    ));
    assert!(
        lines.contains(&"order: 1st of 1 that wait".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn a_lease_that_outlived_its_record_is_named_with_the_way_to_free_it() {
    let explanation = explained("n1", vec![node("n1")], vec![held(0, "n1", 5)]);
    let advice = &explanation.advice[0];
    assert!(
        advice.starts_with("Lease dogwatch-default-0 is held although no reboot is under way"),
        "{advice}"
    );
    assert!(
        advice.ends_with("dogwatch unlock dogwatch-default-0"),
        "{advice}"
    );
    let under_way = explained("n1", vec![blocked_holder()], vec![held(0, "n1", 5)]);
    assert!(
        !under_way.advice[0].contains("dogwatch unlock"),
        "{under_way:#?}"
    );
}

#[test]
fn a_node_that_is_not_there_is_not_explained() {
    assert_eq!(
        explain_node(&view("n9", fleet(vec![node("n1")], vec![])), now(0)),
        None
    );
}

#[test]
fn a_remediation_whose_group_no_policy_makes_any_more_is_out_in_the_words_as_in_the_count() {
    let group = GroupName::new("vanished").unwrap();
    let remedy = HeldLockLease {
        lease: "dogwatch-remedy-n1".into(),
        resource_version: "1".into(),
        slot: None,
        holder: HolderId::new("remedy").unwrap(),
        node: NodeName::new("n1").ok(),
        max: None,
        remediation: Some(RemediationHold {
            group: Some(group.clone()),
            control_plane: false,
            since: None,
        }),
    };
    let mut fleet = fleet(vec![waiting("n2", 10)], vec![free(0)]);
    fleet.remediation_leases = vec![remedy];
    assert!(!fleet.budget_of_node(&fleet.nodes[0]).has_room());
    let mut policy = crate::policy::Policy::without_rules(group);
    policy.selector.match_labels = [("pool".to_owned(), "b".to_owned())].into();
    fleet.policies = crate::policy::ClusterPolicies::Known(vec![policy]);
    assert!(fleet.budget_of_node(&fleet.nodes[0]).has_room());
}

#[test]
fn beside_a_remediation_nobody_is_told_that_nothing_is_under_way_or_to_reboot() {
    let told = |under_way| RemediationExplanation {
        subject: "machine/machines/m1".into(),
        node: Some("n1".into()),
        host: None,
        under_way,
        summary: String::new(),
        chain: Vec::new(),
        timeline: Vec::new(),
        advice: Vec::new(),
    };
    let idle = || explained("n1", vec![node("n1")], vec![]);
    let beside = idle().beside_remediations(&[told(true)]);
    assert_eq!(beside.summary, "n1: no planned reboot is under way");
    assert_eq!(beside.advice, [""; 0]);
    assert_eq!(idle().beside_remediations(&[told(false)]), idle());
}

#[test]
fn what_a_drain_says_of_itself_is_told_with_its_age() {
    let mut holder = blocked_holder();
    holder.conditions[0].last_heartbeat = Some(at(40));
    let lines = text(&explained("n1", vec![holder.clone()], vec![])).join("\n");
    assert!(lines.contains("(written 30s ago)"), "{lines}");
    holder.conditions[0].last_heartbeat = Some(at(66));
    let lines = text(&explained("n1", vec![holder], vec![])).join("\n");
    assert!(!lines.contains("ago)"), "{lines}");
}

#[test]
fn what_stayed_although_it_should_go_is_told_while_the_node_reboots() {
    let mut holder = in_phase("n1", RebootPhase::Rebooting, 20, ("Rebooting", ""));
    if let ParsedAnnotation::Is(record) = &mut holder.record {
        record.message =
            "drained; volumes are still attached after 2m; the reboot continues: csi-1".into();
    }
    let lines = text(&explained("n1", vec![holder], vec![])).join("\n");
    assert!(
        lines.contains("; volumes are still attached after 2m"),
        "{lines}"
    );
}

#[test]
fn who_reads_an_explanation_is_not_sent_to_read_it() {
    let said = ("LockHeldByOther", crate::reboot::WAITS_FOR_LOCK_MESSAGE);
    let waits = in_phase("n1", RebootPhase::Waiting, 10, said);
    let lines = text(&explained("n1", vec![waits], vec![held(0, "n2", 5)])).join("\n");
    assert!(
        lines.contains("LockHeldByOther: waits for the lock"),
        "{lines}"
    );
    assert!(!lines.contains("dogwatch explain"), "{lines}");
}

#[test]
fn who_waits_at_the_lock_api_for_a_policys_group_is_in_the_policys_row() {
    let mut fleet = fleet(vec![node("n1")], vec![]);
    let group = GroupName::new("nights").unwrap();
    fleet.policies =
        crate::policy::ClusterPolicies::Known(vec![crate::policy::Policy::without_rules(
            group.clone(),
        )]);
    let host = |name: &str, group: GroupName, reason: &str| WaitingHost {
        holder: HolderId::for_api_host(name),
        group: Some(group),
        node: None,
        since: at(10),
        reason: reason.into(),
        message: String::new(),
    };
    fleet.waiting_hosts = vec![
        host("storage", group.clone(), "OutsideWindow"),
        host("drains", group, "Draining"),
        host("other", GroupName::default_group(), "OutsideWindow"),
    ];
    let table = super::fleet_status(&fleet, now(100));
    assert_eq!(table.policies[0].waiting, ["api/storage"]);
}
