//! After a stop at any moment, the next run continues. Source: specification §2.4, §2.5; promise
//! S5.

use rustix::process::Signal;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Cluster, Machine, OnCommand, PATIENCE, Setting, objects};

/// Long enough to see a restarted coordinator wait, and short enough for a test: a run that finds a
/// command of an earlier run waits the whole time on its own clock, however old the record is.
const REBOOT_TIMEOUT: &str = "--reboot-timeout=15s";

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
            let status = coordinator.terminate().await;
            assert_eq!(status.code(), Some(0), "{}", machine.log().text());
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
    let [audited, _] = cluster.recount_history(&[machine]).await;
    assert_eq!(audited, 1);
}

#[tokio::test]
async fn killed_in_every_phase_it_carries_on_and_reboots_once() {
    through_every_phase(By::Kill).await;
}

#[tokio::test]
async fn told_to_stop_in_every_phase_it_ends_with_success_and_the_next_run_carries_on() {
    through_every_phase(By::Terminate).await;
}

#[tokio::test]
async fn killed_after_the_command_it_runs_the_next_attempt_only_after_the_timeout() {
    let cluster = Cluster::new().await;
    let setting = Setting::flags([REBOOT_TIMEOUT]).on_command(OnCommand::Nothing);
    let machine = cluster.machine(setting).await;
    machine.touch("new kernel");
    machine.until_commands(1).await;
    machine.kill_coordinator().await;
    // The wall clock in the record does not prove how much time has passed.
    machine
        .age_record(jiff::SignedDuration::from_mins(31))
        .await;
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
    let machine = cluster.machine(Setting::flags([REBOOT_TIMEOUT])).await;
    cluster.block_drain_of(&machine).await;
    machine.touch("new kernel");
    machine
        .until_condition("DrainInProgress", "True", "DrainBlocked")
        .await;
    let gate = Gate::before_rebooting(&cluster).await;
    cluster.unblock().await;
    // The record is sent but not stored yet: the sender is blocked until it is killed, and gets no
    // answer.
    let held = gate.reached().await;
    machine.signal_coordinator(Signal::STOP).await;
    drop(held);
    machine.until_phase("rebooting").await;
    machine.kill_coordinator().await;
    gate.end(&cluster).await;
    assert_eq!(machine.commands(), 0);

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

/// A webhook that delays the write of the record of a reboot that is about to begin, until the test
/// lets it pass.
struct Gate {
    listener: TcpListener,
}

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Matches the record, and a Node that nobody creates: the test uses it to see that the webhook is
/// in force.
const HELD: &str = "object.metadata.name == 'probe' || (has(object.metadata.annotations) \
    && 'dogwatch.dev/reboot' in object.metadata.annotations \
    && object.metadata.annotations['dogwatch.dev/reboot'].contains('\"phase\":\"rebooting\"'))";

impl Gate {
    /// An admission webhook that accepts the connection and sends nothing. When it ends, the write
    /// is not refused.
    async fn before_rebooting(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let webhook = json!({
            "metadata": { "name": "gate" },
            "webhooks": [{
                "name": "gate.dogwatch.dev",
                "clientConfig": { "url": format!("https://{address}/") },
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["nodes"] }],
                "matchConditions": [{ "name": "held", "expression": HELD }],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "admissionReviewVersions": ["v1"],
            }],
        });
        cluster.api.create(WEBHOOKS, &webhook).await;
        let gate = Self { listener };
        tokio::time::timeout(PATIENCE, gate.in_force(cluster))
            .await
            .expect("the API server takes it in");
        gate
    }

    /// An API server does not report when a new webhook takes effect: the test sends requests until
    /// one reaches us.
    async fn in_force(&self, cluster: &Cluster) {
        let node = json!({ "metadata": { "name": "probe" } });
        loop {
            let probe = cluster.api.create("/api/v1/nodes?dryRun=All", &node);
            tokio::pin!(probe);
            tokio::select! {
                asked = self.listener.accept() => {
                    drop(asked.expect("a connection"));
                    probe.await;
                    return;
                }
                _ = &mut probe => {}
            }
        }
    }

    /// Waits until the API server asks whether the record may be stored. The write is blocked while
    /// the stream is held.
    async fn reached(&self) -> TcpStream {
        let asked = tokio::time::timeout(PATIENCE, self.listener.accept()).await;
        asked
            .expect("the record is written")
            .expect("a connection")
            .0
    }

    async fn end(self, cluster: &Cluster) {
        cluster.api.delete(&format!("{WEBHOOKS}/gate")).await;
    }
}
