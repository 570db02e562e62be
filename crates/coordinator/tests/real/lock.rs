//! Who may reboot, and who has to wait. Source: specification §2.2; promises S1, S3, S6.

use serde_json::json;

use crate::support::read::is_free;
use crate::support::{Cluster, Setting};

#[tokio::test]
async fn a_lock_whose_holders_node_was_deleted_is_broken_by_the_one_who_waits() {
    // With the policies, only the controller may break it: see `admission`.
    let cluster = Cluster::without_policies().await;
    let machines = cluster.machines_whose_holder_is_gone().await;
    machines[1]
        .until_event("BreakingLock", &[machines[0].name(), "does not exist"])
        .await;
    machines[1].until_back().await;
    assert_eq!((machines[0].commands(), machines[1].commands()), (0, 1));
}

#[tokio::test]
async fn who_may_not_break_a_lock_leaves_it_to_the_controller_and_goes_on_bidding() {
    let cluster = Cluster::new().await;
    cluster.plane.expect_refusals();
    let machines = cluster.machines_whose_holder_is_gone().await;
    machines[1]
        .log()
        .until(&["leaves a lock whose holder no longer exists to the controller"])
        .await;
    // No controller runs here: a person deletes it.
    cluster.break_by_hand("S1");
    cluster.delete_lease("dogwatch-default-0").await;
    machines[1].until_back().await;
    assert_eq!((machines[0].commands(), machines[1].commands()), (0, 1));
}

#[tokio::test]
async fn of_two_coordinators_of_one_node_the_older_stops() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    let mut older = machine.take_coordinator().await;
    machine.start_coordinator().await;
    assert_eq!(older.ended().await.code(), Some(1));
    machine
        .log()
        .until(&["has taken over", "run only one coordinator per node"])
        .await;
    cluster.unblock().await;
    machine.until_back().await;
    assert_eq!((machine.commands(), machine.most_attempts()), (1, 1));
}

#[tokio::test]
async fn a_node_that_is_out_for_another_reason_counts_and_nobody_goes() {
    let cluster = Cluster::new().await;
    let machines = cluster.machines(2).await;
    machines[0].cordon(true).await;
    machines[1].touch("new kernel");
    machines[1]
        .until_event("OverBudget", &[machines[0].name()])
        .await;
    cluster
        .world
        .until("the lock was given back", |seen| {
            is_free(seen.lease("dogwatch-default-0")?).then_some(())
        })
        .await;
    assert_ne!(machines[1].node().await["spec"]["unschedulable"], true);
    machines[0].cordon(false).await;
    machines[1].until_back().await;
    cluster.assert_never_more_out_than(1);
}

#[tokio::test]
async fn a_node_that_is_to_be_ignored_counts_for_nothing() {
    let cluster = Cluster::new().await;
    let machines = cluster.machines(2).await;
    let ignored = json!({ "metadata": { "labels": { "dogwatch.dev/ignore": "true" } }, "spec": { "unschedulable": true } });
    machines[0].patch_node(&ignored).await;
    machines[1].touch("new kernel");
    machines[1].until_back().await;
}

#[tokio::test]
async fn a_control_plane_node_waits_for_its_own_group_only() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    machine
        .patch_node(
            &json!({ "metadata": { "labels": { "node-role.kubernetes.io/control-plane": "" } } }),
        )
        .await;
    cluster.hold_lock().await;
    machine.touch("new kernel");
    machine.until_back().await;
    machine
        .until_event("Draining", &["dogwatch-control-plane-0"])
        .await;
}

#[tokio::test]
async fn a_slot_that_somebody_deletes_is_made_again() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.hold_lock().await;
    machine.touch("new kernel");
    machine
        .until_condition("MaintenancePlanned", "False", "LockHeldByOther")
        .await;
    cluster.break_by_hand("S1");
    cluster.delete_lease("dogwatch-default-0").await;
    machine.until_back().await;
}
