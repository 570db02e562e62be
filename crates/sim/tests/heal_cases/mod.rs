//! Cases of the healer: the same functions run on the embedded and on the real API server. Each
//! case is a sentence of specification §2.4, §2.5 or §2.7.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod events;
mod hosts;
pub mod world;

use dogwatch_core::healer::EscalationRecord;
use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::ApiLock;
use dogwatch_core::name::RunId;
use dogwatch_core::reboot::{
    NodePatch, ParsedAnnotation, RebootOutcome, RebootPhase, RebootRecord, RecordChange,
    TriggerFingerprint,
};
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::node::patch_node;
use serde_json::json;

pub use events::a_warning_is_said_although_somebody_took_its_name_first;
use world::{World, record};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($test:ident) => {
        $test! {
            a_node_that_came_back_is_brought_into_service_and_the_next_is_called
            a_drain_is_undone_before_its_lock_goes_and_its_coordinator_cannot_go_on
            a_healer_that_dies_between_node_and_lease_is_finished_by_the_next
            a_lock_that_is_not_used_goes_to_the_next
            a_lock_without_a_reboot_is_freed
            a_lock_of_a_node_that_is_gone_is_broken
            an_abort_is_served_in_its_coordinators_place
            a_reboot_that_does_not_happen_keeps_cordon_and_lock_and_is_said
            a_request_of_a_gone_process_leaves_and_its_cordon_with_it
            a_reboot_that_does_not_happen_is_handed_over_once_to_the_host_that_names_the_node
            a_warning_is_said_although_somebody_took_its_name_first
            a_reboot_that_does_not_happen_is_handed_over_to_the_host_of_its_machine
        }
    };
}
pub(crate) use every_case;

pub async fn a_node_that_came_back_is_brought_into_service_and_the_next_is_called(world: &World) {
    // A PodDisruptionBudget that no longer exists is not short of pods.
    let mut back = record(RebootPhase::Rebooting);
    back.budgets = vec!["default/gone".into()];
    let back = serde_json::to_string(&back).unwrap();
    let node = world
        .make_node_with("n1", true, &json!({ "dogwatch.dev/reboot": back }))
        .await;
    world.make_waiter("n2").await;
    world.hold(&node).await;
    let _kubelet = world.kubelet("n1", "boot-2");
    let leader = world.leader();
    let lease = world.until_free().await;
    assert_eq!(
        lease.next_waiters,
        [HolderId::for_node(&world.node_name("n2"))]
    );
    world
        .until("record and conditions are put right", || async {
            let node = world.node("n1").await.unwrap();
            let under_way = node.conditions.iter().any(|c| {
                c.kind.starts_with("Maintenance") && (c.status != "False" || c.reason != "Rebooted")
            });
            node.record == ParsedAnnotation::Absent && !under_way
        })
        .await;
    let node = world.node("n1").await.unwrap();
    assert!(!node.unschedulable && !node.waiting_label);
    let last = node.last_reboot.get().unwrap();
    assert_eq!(
        (last.outcome, last.new_boot_id.as_str()),
        (RebootOutcome::Rebooted, "boot-2")
    );
    for reason in ["NewBoot", "Uncordoning", "ReleasingLock"] {
        world.until_said("n1", reason).await;
    }
    assert!(
        leader
            .metrics
            .render_page()
            .contains("dogwatch_healer_actions_total")
    );
}

pub async fn a_drain_is_undone_before_its_lock_goes_and_its_coordinator_cannot_go_on(
    world: &World,
) {
    let before = world.make_node("n1", RebootPhase::Draining).await;
    let lease = world.hold(&before).await;
    let _leader = world.leader();
    world.until_free().await;
    let node = world.node("n1").await.unwrap();
    let undone = node.record.get().unwrap();
    assert_eq!((undone.phase, undone.failures), (RebootPhase::Waiting, 1));
    assert!(!node.unschedulable && undone.retry_after.is_some());
    // A coordinator that was only cut off: its write of the reboot phase was under way all the
    // time.
    let late = NodePatch {
        resource_version: before.resource_version.clone(),
        unschedulable: None,
        record: RecordChange::Set(RebootRecord {
            phase: RebootPhase::Rebooting,
            ..record(RebootPhase::Draining)
        }),
        waiting_label: None,
        mute_label: None,
        last: None,
        remove_labels: Vec::new(),
        remove_request: false,
        remove_abort: false,
    };
    let error = patch_node(&world.client, &before, &late).await.unwrap_err();
    assert_eq!(error.kind(), ApiErrorKind::Conflict);
    assert_ne!(world.lease().await.resource_version, lease.resource_version);
}

pub async fn a_healer_that_dies_between_node_and_lease_is_finished_by_the_next(world: &World) {
    let node = world.make_node("n1", RebootPhase::Draining).await;
    world.hold(&node).await;
    let leader = world.leader_that_cannot_write_leases();
    world
        .until("the Node is written", || async {
            let node = world.node("n1").await.unwrap();
            node.record
                .get()
                .is_some_and(|record| record.phase == RebootPhase::Waiting)
        })
        .await;
    drop(leader);
    assert!(
        world.lease().await.holder.is_some(),
        "killed between its two writes"
    );
    let _next = world.leader();
    world.until_free().await;
    let node = world.node("n1").await.unwrap();
    assert_eq!(node.record.get().unwrap().phase, RebootPhase::Waiting);
    assert!(!node.unschedulable);
}

pub async fn a_lock_that_is_not_used_goes_to_the_next(world: &World) {
    let node = world.make_node("n1", RebootPhase::Waiting).await;
    world.hold(&node).await;
    let _leader = world.leader();
    world.until_free().await;
    let node = world.node("n1").await.unwrap();
    assert!(node.record.get().unwrap().retry_after.is_some());
}

pub async fn a_lock_without_a_reboot_is_freed(world: &World) {
    let node = world.make_node_with("n1", true, &json!({})).await;
    world.hold(&node).await;
    let _leader = world.leader();
    world.until_free().await;
    let node = world.node("n1").await.unwrap();
    assert!(
        node.unschedulable,
        "S3: whose cordon that is nobody can tell"
    );
}

pub async fn a_lock_of_a_node_that_is_gone_is_broken(world: &World) {
    let node = world.make_node("n1", RebootPhase::Rebooting).await;
    world.hold(&node).await;
    world.end().await;
    let _leader = world.leader();
    world.until_free().await;
}

pub async fn an_abort_is_served_in_its_coordinators_place(world: &World) {
    let mut asked = record(RebootPhase::Rebooting);
    asked
        .serves
        .insert("request".into(), TriggerFingerprint("x".into()));
    let asked = serde_json::to_string(&asked).unwrap();
    let annotations = json!({
        "dogwatch.dev/reboot": asked,
        "dogwatch.dev/reboot-requested": r#"{"reason":"kernel","requester":"me"}"#,
        "dogwatch.dev/abort-requested": r#"{"reason":"wrong node","requester":"me"}"#,
    });
    let node = world.make_node_with("n1", true, &annotations).await;
    world.hold(&node).await;
    let _leader = world.leader();
    world.until_free().await;
    world
        .until("the record is gone", || async {
            world.node("n1").await.unwrap().record == ParsedAnnotation::Absent
        })
        .await;
    let node = world.node("n1").await.unwrap();
    assert!(!node.unschedulable);
    assert_eq!(
        (&node.abort, &node.request),
        (&ParsedAnnotation::Absent, &ParsedAnnotation::Absent)
    );
    assert_eq!(
        node.last_reboot.get().unwrap().outcome,
        RebootOutcome::Aborted
    );
}

pub async fn a_reboot_that_does_not_happen_keeps_cordon_and_lock_and_is_said(world: &World) {
    let node = world.make_node("n1", RebootPhase::Rebooting).await;
    let lease = world.hold(&node).await;
    let _kubelet = world.kubelet("n1", "boot-1");
    let leader = world.leader();
    world
        .until("it is said", || async {
            let node = world.node("n1").await.unwrap();
            let mut conditions = node.conditions.iter();
            conditions.any(|c| c.kind == "MaintenanceInProgress" && c.reason == "RebootFailed")
        })
        .await;
    world.until_said("n1", "RebootFailed").await;
    world.time_passes().await;
    let page = leader.metrics.render_page();
    let alerted = "dogwatch_healer_cases{reason=\"RebootFailed\"} 1\n";
    assert!(page.contains(alerted), "{page}");
    assert!(world.node("n1").await.unwrap().unschedulable);
    assert_eq!(world.lease().await, lease);
}

pub async fn a_request_of_a_gone_process_leaves_and_its_cordon_with_it(world: &World) {
    let lock = ApiLock {
        lease: "dogwatch-default-0".into(),
        cordoned_by_us: true,
        since: jiff::Timestamp::UNIX_EPOCH,
        run: RunId::new("api/gone/1").unwrap(),
    };
    let lock = serde_json::to_string(&lock).unwrap();
    let node = world
        .make_node_with("n1", true, &json!({ "dogwatch.dev/api-lock": lock }))
        .await;
    let holder = HolderId::for_api_host(node.name.as_str());
    world.hold_as(holder, Some(&node), "api/gone/1").await;
    world.make_presence("gone").await;
    let _leader = world.leader();
    world.until_free().await;
    let node = world.node("n1").await.unwrap();
    assert!(!node.unschedulable && !node.api_lock);
    world
        .until("its presence goes last", || async {
            !world.is_present("gone").await
        })
        .await;
}

pub async fn a_reboot_that_does_not_happen_is_handed_over_once_to_the_host_that_names_the_node(
    world: &World,
) {
    world.install_kinds().await;
    let node = world.make_node("n1", RebootPhase::Rebooting).await;
    world.hold(&node).await;
    world.escalating_policy_for("n1").await;
    world.make_host("h1", &world.node_name("n1")).await;
    world.make_host("h2", &world.node_name("n2")).await;
    let _kubelet = world.kubelet("n1", "boot-1");
    let leader = world.leader();
    world
        .until("the host is asked", || async {
            world
                .host_annotation("h1", "reboot.metal3.io")
                .await
                .is_some()
        })
        .await;
    let asked = world.host_annotation("h1", "reboot.metal3.io").await;
    assert_eq!(asked.as_deref(), Some(r#"{"mode":"hard"}"#));
    let note = world.annotation("n1", "dogwatch.dev/escalated").await;
    assert_eq!(
        world.host_annotation("h1", "dogwatch.dev/escalated").await,
        note
    );
    let note: EscalationRecord = serde_json::from_str(&note.unwrap()).unwrap();
    assert_eq!(note.host, format!("{}/h1", world.namespace));
    // The host's annotation was obeyed, and the healer dies: the next one does not set it again.
    world.remove_host_annotation("h1", "reboot.metal3.io").await;
    drop(leader);
    let _next = world.leader();
    world.time_passes().await;
    tokio::time::sleep(world.config.flags.reboot_timeout * 3).await;
    assert_eq!(world.host_annotation("h1", "reboot.metal3.io").await, None);
    assert_eq!(world.host_annotation("h2", "reboot.metal3.io").await, None);
    let node = world.node("n1").await.unwrap();
    assert!(node.unschedulable && world.lease().await.holder.is_some());
}

pub async fn a_reboot_that_does_not_happen_is_handed_over_to_the_host_of_its_machine(
    world: &World,
) {
    world.install_kinds().await;
    world.install_machines().await;
    let node = world.make_node("n1", RebootPhase::Rebooting).await;
    world.hold(&node).await;
    world.escalating_policy_for("n1").await;
    world.make_host("h2", &world.node_name("n2")).await;
    world
        .make_host_of_machine("h1", "m1", &world.node_name("n1"))
        .await;
    let _kubelet = world.kubelet("n1", "boot-1");
    let _leader = world.leader();
    world
        .until("the host is asked", || async {
            let asked = world.host_annotation("h1", "reboot.metal3.io").await;
            asked.as_deref() == Some(r#"{"mode":"hard"}"#)
        })
        .await;
    assert_eq!(world.host_annotation("h2", "reboot.metal3.io").await, None);
    world.remove_machines().await;
}
