//! What blocks a drain, and what ends it. Source: specification §2.3.

use crate::support::read::{is_free, record};
use crate::support::world::Seen;
use crate::support::{Cluster, Setting, objects};

#[tokio::test]
async fn a_budget_holds_up_its_own_pod_only_and_is_named_with_its_numbers() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    cluster
        .pod(&objects::pod("web", machine.name(), "web"))
        .await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    cluster
        .world
        .until("the other pod goes", |seen| {
            seen.pod("web").is_none().then_some(())
        })
        .await;
    let named = format!(
        "PodDisruptionBudget {}/db (1 healthy of 1 desired, 0 disruptions allowed)",
        cluster.namespace
    );
    machine
        .until_told("DrainInProgress", "True", "DrainBlocked", &named)
        .await;
    machine
        .until_event(
            "DrainBlocked",
            &["disruption budget db needs 1 healthy pods and has 1"],
        )
        .await;
    assert!(cluster.world.now(|seen| seen.pod("db").is_some()));

    cluster.unblock().await;
    machine.until_back().await;
    cluster
        .world
        .until("the pod is gone", |seen| {
            seen.pod("db").is_none().then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_daemon_sets_pod_stays_on_its_node_through_drain_and_boot() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    let name = cluster
        .daemon_pod(&objects::daemon_set("agent", "100ms"), &machine)
        .await;
    let uid = |seen: &Seen| seen.pod(&name).map(|pod| pod["metadata"]["uid"].clone());
    let before = cluster.world.now(uid);
    machine.touch("new kernel");
    machine.until_back().await;
    assert_eq!(cluster.world.now(uid), before);
}

#[tokio::test]
async fn an_uncordon_by_somebody_else_is_a_veto() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    machine.cordon(false).await;
    let record = machine.until_undone().await;
    assert_eq!(record["failures"], 1);
    machine.until_event("UncordonedByOther", &["veto"]).await;
    assert_eq!(machine.commands(), 0);
}

#[tokio::test]
async fn past_its_deadline_a_drain_is_undone_first_and_the_lock_released_then() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::flags(["--drain-timeout=10s"]))
        .await;
    // The pods must be listed by then: the message names the remaining ones.
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    let record = machine.until_undone().await;
    assert_eq!(record["failures"], 1);
    let pause = |field: &str| {
        record[field]
            .as_str()
            .and_then(|time| time.parse::<jiff::Timestamp>().ok())
            .expect("a time")
    };
    assert_eq!(
        pause("retryAfter").duration_since(pause("since")).as_secs(),
        60
    );
    let event = machine.until_event("DrainTimedOut", &["10s"]).await;
    assert!(event.contains("db"), "{event}");
    let (uncordoned, released) = cluster.world.now(|seen| {
        let version = |object: &serde_json::Value| {
            object["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|text| text.parse::<u64>().ok())
                .expect("a number")
        };
        let node = seen
            .history
            .iter()
            .filter(|change| change.name == machine.name() && change.kind == "nodes");
        let undone = |node: &&serde_json::Value| {
            record_failed(node) && node["spec"]["unschedulable"] != true
        };
        let uncordoned = node
            .filter_map(|change| change.object.as_ref())
            .find(undone)
            .map(version);
        let lease = seen.history.iter().filter(|change| change.kind == "leases");
        let released = lease
            .filter_map(|change| change.object.as_ref())
            .rfind(|lease| is_free(lease))
            .map(version);
        (
            uncordoned.expect("seen above"),
            released.expect("seen above"),
        )
    });
    // etcd's revisions are one sequence for all kinds.
    assert!(uncordoned < released, "{uncordoned} < {released}");
    assert_eq!(machine.commands(), 0);
}

fn record_failed(node: &serde_json::Value) -> bool {
    record(node).is_some_and(|record| record["failures"] == 1)
}

#[tokio::test]
async fn past_its_deadline_the_rest_is_deleted_where_that_was_chosen() {
    let cluster = Cluster::new().await;
    let setting = Setting::flags(["--drain-timeout=2s", "--on-drain-timeout=delete"]);
    let machine = cluster.machine(setting).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    cluster
        .world
        .until("the pod is deleted", |seen| {
            seen.pod("db").is_none().then_some(())
        })
        .await;
    // The PodDisruptionBudget is short now, and the return waits for it.
    machine
        .until_condition("MaintenanceInProgress", "True", "ReturnGatesShut")
        .await;
    cluster.unblock().await;
    machine.until_back().await;
    assert_eq!(machine.commands(), 1);
}

#[tokio::test]
async fn past_its_deadline_the_node_reboots_anyway_where_that_was_chosen() {
    let cluster = Cluster::new().await;
    let setting = Setting::flags(["--drain-timeout=2s", "--on-drain-timeout=force"]);
    let machine = cluster.machine(setting).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine.until_back().await;
    assert!(cluster.world.now(|seen| seen.pod("db").is_some()));
}

#[tokio::test]
async fn a_sentinel_that_goes_away_during_the_drain_takes_the_reboot_back() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    machine.remove_sentinel();
    machine
        .until_condition("MaintenancePlanned", "False", "TriggerGone")
        .await;
    machine
        .until("uncordoned, without a record", |node| {
            (record(node).is_none() && node["spec"]["unschedulable"] != true).then_some(())
        })
        .await;
    cluster
        .world
        .until("the Lease is free", |seen| {
            is_free(seen.lease("dogwatch-default-0")?).then_some(())
        })
        .await;
    assert_eq!(machine.commands(), 0);
}
