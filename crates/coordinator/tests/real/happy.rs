//! Reboots without failures. Source: specification §2.2, §2.5; promises S1, S3, S4, S5.

use serde_json::json;

use crate::support::read::is_free;
use crate::support::{Cluster, Machine, OnCommand, Setting, objects};

#[tokio::test]
async fn three_nodes_that_want_it_at_once_reboot_one_after_the_other() {
    let cluster = Cluster::new().await;
    let machines = cluster.machines(3).await;
    for machine in &machines {
        cluster
            .pod(&objects::pod(
                &format!("web-{}", machine.name()),
                machine.name(),
                "web",
            ))
            .await;
    }
    let boots: Vec<String> = machines.iter().map(Machine::boot_id).collect();
    for machine in &machines {
        machine.touch("new kernel");
    }
    for (machine, old) in machines.iter().zip(boots) {
        let last = machine.until_back().await;
        assert_eq!(
            (last["oldBootId"].clone(), last["newBootId"].clone()),
            (json!(old), json!(machine.boot_id()))
        );
        assert_eq!(last["trigger"]["reason"], "new kernel");
        assert_eq!((machine.commands(), machine.most_attempts()), (1, 1));
        let pod = format!("web-{}", machine.name());
        cluster
            .world
            .until("the pod is gone", |seen| {
                seen.pod(&pod).is_none().then_some(())
            })
            .await;
    }
    cluster
        .world
        .until("the lock is free", |seen| {
            is_free(seen.lease("dogwatch-default-0")?).then_some(())
        })
        .await;
    assert_eq!(cluster.world.now(|seen| seen.all("leases").count()), 1);
    cluster.assert_never_more_out_than(1);
    for machine in &machines {
        // A coordinator that ends has written its last line.
        machine.take_coordinator().await.terminate().await;
    }
    assert_eq!(cluster.recount_history(&machines).await, [3, 3]);
}

#[tokio::test]
async fn each_transition_is_an_event() {
    let cluster = Cluster::new().await;
    // The reboot does not wait for a slow report, so this host waits until the Event is written.
    let setting = Setting::default().on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    machine.touch("new kernel");
    machine
        .until_event("RebootPlanned", &["run/reboot-needed", "new kernel"])
        .await;
    machine
        .until_event("Draining", &["dogwatch-default-0"])
        .await;
    machine.until_event("Rebooting", &["attempt 1"]).await;
    machine.until_commands(1).await;
    machine.reboot().await;
    machine.until_back().await;
    machine.until_event("NewBoot", &[&machine.boot_id()]).await;
    machine.until_event("Rebooted", &[&machine.boot_id()]).await;
    // A condition that was true too briefly to be written is not written as false either.
    for kind in ["MaintenancePlanned", "MaintenanceInProgress"] {
        machine.until_condition(kind, "False", "Rebooted").await;
    }
}

#[tokio::test]
async fn an_administrators_cordon_stays() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    machine.cordon(true).await;
    machine.touch("new kernel");
    machine.until_finished().await;
    assert_eq!(machine.node().await["spec"]["unschedulable"], true);
}

#[tokio::test]
async fn our_cordon_stays_where_somebody_asked_to_keep_it() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    machine
        .patch_node(
            &json!({ "metadata": { "annotations": { "dogwatch.dev/keep-cordoned": "true" } } }),
        )
        .await;
    machine.touch("new kernel");
    machine.until_finished().await;
    assert_eq!(machine.node().await["spec"]["unschedulable"], true);
}

#[tokio::test]
async fn our_cordon_stays_on_a_node_that_nvsentinel_has_quarantined() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    machine
        .patch_node(&json!({ "metadata": { "annotations": { "quarantineHealthEvent": "[]" } } }))
        .await;
    machine.touch("new kernel");
    machine.until_finished().await;
    assert_eq!(machine.node().await["spec"]["unschedulable"], true);
}

#[tokio::test]
async fn as_many_go_at_once_as_the_budget_allows_and_no_more() {
    let cluster = Cluster::new().await;
    let mut machines = Vec::new();
    for _ in 0..3 {
        machines.push(
            cluster
                .machine(Setting::flags(["--max-unavailable=2"]))
                .await,
        );
    }
    // The drains of the first two are blocked, which shows that both are out of service together.
    cluster.budget(&objects::budget("db", "db", 3), 0).await;
    for machine in &machines {
        cluster
            .pod(&objects::pod(
                &format!("db-{}", machine.name()),
                machine.name(),
                "db",
            ))
            .await;
        machine.touch("new kernel");
    }
    cluster
        .world
        .until("two drain at the same time", |seen| {
            let out = seen
                .all("nodes")
                .filter(|node| node["spec"]["unschedulable"] == true)
                .count();
            (out == 2).then_some(())
        })
        .await;
    cluster.unblock().await;
    for machine in &machines {
        machine.until_back().await;
        assert_eq!(machine.commands(), 1);
    }
    cluster.assert_never_more_out_than(2);
}
