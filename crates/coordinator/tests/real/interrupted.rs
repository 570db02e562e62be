//! Stopped at any moment, the next run carries on. Source: specification §2.4, §2.5; promise S5.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Cluster, Machine, OnCommand, Setting, objects};

/// How the coordinator ends.
#[derive(Clone, Copy)]
enum By {
    Kill,
    Terminate,
}

/// Ends the coordinator, and starts the next one.
async fn restart(machine: &Machine, by: By) {
    let coordinator = machine.take_coordinator().await;
    let lines = machine.log().len();
    match by {
        By::Kill => coordinator.kill().await,
        By::Terminate => {
            let asked = Instant::now();
            let status = coordinator.terminate().await;
            assert_eq!(status.code(), Some(0), "{}", machine.log().text());
            assert!(
                asked.elapsed() < Duration::from_secs(3),
                "it took {:?}",
                asked.elapsed()
            );
        }
    }
    machine.start_coordinator().await;
    machine.log().until_after(lines, &["started"]).await;
}

async fn through_every_phase(by: By) {
    let cluster = Cluster::new().await;
    let setting = Setting::flags(["--settle=2s"]).on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    let old = machine.boot_id();
    machine.log().until(&["started"]).await;
    restart(&machine, by).await;

    cluster.hold_lock().await;
    machine.touch("new kernel");
    machine.until_phase("waiting").await;
    restart(&machine, by).await;

    cluster.block_drain_of(&machine).await;
    cluster.free_lock().await;
    machine.until_phase("draining").await;
    restart(&machine, by).await;

    cluster.unblock().await;
    machine.until_commands(1).await;
    restart(&machine, by).await;
    machine
        .until_condition("MaintenanceInProgress", "True", "AwaitingReboot")
        .await;
    assert_eq!(
        machine.commands(),
        1,
        "whether it ran cannot be known, so it is not run again"
    );

    let lines = machine.log().len();
    machine.reboot().await;
    machine.log().until_after(lines, &["started"]).await;
    let record = machine.until_phase("returning").await;
    assert_eq!(record["cordonedByUs"], true);
    restart(&machine, by).await;

    let last = machine.until_back().await;
    assert_eq!(last["oldBootId"], *old);
    assert_eq!((machine.commands(), machine.most_attempts()), (1, 1));
}

#[tokio::test]
async fn killed_in_every_phase_it_carries_on_and_reboots_once() {
    through_every_phase(By::Kill).await;
}

#[tokio::test]
async fn told_to_stop_in_every_phase_it_ends_at_once_with_success_and_the_next_run_carries_on() {
    through_every_phase(By::Terminate).await;
}

#[tokio::test]
async fn killed_after_the_command_it_runs_the_next_attempt_only_after_the_timeout() {
    let cluster = Cluster::new().await;
    let setting = Setting::flags(["--reboot-timeout=4s"]).on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    machine.touch("new kernel");
    machine.until_commands(1).await;
    machine.kill_coordinator().await;
    machine.start_coordinator().await;
    machine
        .until_condition("MaintenanceInProgress", "True", "AwaitingReboot")
        .await;
    assert_eq!(machine.commands(), 1);
    machine.on_command(OnCommand::Reboots);
    machine.until_back().await;
    assert_eq!((machine.commands(), machine.most_attempts()), (2, 2));
}

#[tokio::test]
async fn killed_before_the_command_it_waits_as_if_it_had_run() {
    let cluster = Cluster::new().await;
    let machine = cluster
        .machine(Setting::flags(["--reboot-timeout=4s"]))
        .await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    // The reboot is announced before the command, for three seconds at the most: nobody takes the
    // announcement in.
    let silence = Silence::over_events(&cluster).await;
    cluster.unblock().await;
    machine.until_phase("rebooting").await;
    machine.kill_coordinator().await;
    silence.end(&cluster).await;
    assert_eq!(
        machine.commands(),
        0,
        "this test is about the moment before the command"
    );

    machine.start_coordinator().await;
    machine
        .until_condition("MaintenanceInProgress", "True", "AwaitingReboot")
        .await;
    assert_eq!(machine.commands(), 0);
    machine.until_back().await;
    assert_eq!((machine.commands(), machine.most_attempts()), (1, 2));
}

#[tokio::test]
async fn killed_between_uncordon_and_release_it_finishes_the_return() {
    let cluster = Cluster::new().await;
    let machine = cluster.machine(Setting::default()).await;
    // A DaemonSet's pod that is not ready again shuts the gate before the release.
    cluster
        .daemon_pod(&objects::daemon_set("agent", "3s"), &machine)
        .await;
    machine.touch("new kernel");
    let uncordoned = |node: &serde_json::Value| {
        let record = crate::support::read::record(node)?;
        (record["phase"] == "returning" && node["spec"]["unschedulable"] != true).then_some(record)
    };
    let record = machine
        .until("uncordoned, the lock still held", uncordoned)
        .await;
    assert_eq!(record["cordonedByUs"], false);
    machine.kill_coordinator().await;
    let holder = cluster.world.now(|seen| {
        seen.lease("dogwatch-default-0")
            .map(|lease| lease["spec"]["holderIdentity"].clone())
    });
    assert_eq!(holder, Some(json!(format!("node/{}", machine.name()))));
    machine.start_coordinator().await;
    machine.until_back().await;
    assert_eq!(machine.commands(), 1);
}

/// Whoever writes an Event gets no answer for as long as this lasts.
struct Silence {
    _listener: TcpListener,
}

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

impl Silence {
    /// An admission webhook that accepts the connection and says nothing.
    async fn over_events(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!(
            "https://127.0.0.1:{}/",
            listener.local_addr().expect("bound").port()
        );
        let webhook = json!({
            "metadata": { "name": "silence" },
            "webhooks": [{
                "name": "silence.dogwatch.dev",
                "clientConfig": { "url": url },
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["events"] }],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "admissionReviewVersions": ["v1"],
            }],
        });
        cluster.api.create(WEBHOOKS, &webhook).await;
        let event = json!({
            "metadata": { "generateName": "probe." },
            "involvedObject": { "kind": "Node", "name": "probe", "namespace": "" },
        });
        let patience = Duration::from_millis(500);
        let probe = || {
            cluster
                .api
                .create("/api/v1/namespaces/default/events", &event)
        };
        while tokio::time::timeout(patience, probe()).await.is_ok() {}
        Self {
            _listener: listener,
        }
    }

    async fn end(self, cluster: &Cluster) {
        cluster.api.delete(&format!("{WEBHOOKS}/silence")).await;
    }
}
