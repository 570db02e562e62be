//! A machine of a test: its host and its Node, and waits for their state.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use dogwatch_kubesim::world::ActorTask;
use jiff::{SignedDuration, Timestamp};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::api::Api;
use super::coordinator::{Coordinator, Log};
use super::host::Host;
use super::read::{annotation, condition, is_free, is_quiet, is_true, record};
use super::{Cluster, OnCommand, Setting, World};

/// A machine of a test. Dropping it stops everything on it.
pub struct Machine {
    host: Arc<Host>,
    world: World,
    api: Api,
    _power: ActorTask,
}

impl Machine {
    /// Boots the machine and waits until its Node is Ready.
    pub(super) async fn install(cluster: &Cluster, name: &str, setting: Setting) -> Self {
        let host = Arc::new(Host::boot_first(cluster, name, setting));
        let machine = Self {
            _power: ActorTask::spawn(Arc::clone(&host).obey()),
            host,
            world: cluster.world.clone(),
            api: cluster.api.clone(),
        };
        machine
            .until("Ready", |node| is_true(node, "Ready").then_some(()))
            .await;
        // The taint is set at creation; the controller that removes it from a Ready Node does not
        // run here.
        machine
            .patch_node(&json!({ "spec": { "taints": null } }))
            .await;
        let kubeconfig = cluster.kubeconfig_on(name).await;
        let set = machine.host.kubeconfig.set(kubeconfig);
        set.expect("a host is installed once");
        machine
    }

    pub fn name(&self) -> &str {
        &self.host.name
    }

    pub fn log(&self) -> &Log {
        &self.host.log
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.host.file(name)
    }

    /// Where the coordinator writes its decisions.
    pub fn decision_log(&self) -> PathBuf {
        self.file("decisions.ndjson")
    }

    pub async fn start_coordinator(&self) {
        *self.host.coordinator.lock().await = Some(self.host.start());
    }

    /// `kill -9` of the coordinator.
    pub async fn kill_coordinator(&self) {
        self.host.kill().await;
    }

    /// Sends a signal to the running coordinator.
    pub async fn signal_coordinator(&self, signal: Signal) {
        let coordinator = self.host.coordinator.lock().await;
        coordinator.as_ref().expect("it was started").signal(signal);
    }

    /// Takes the running coordinator out, for the test to control.
    pub async fn take_coordinator(&self) -> Coordinator {
        self.host
            .coordinator
            .lock()
            .await
            .take()
            .expect("it was started")
    }

    pub async fn coordinator_runs(&self) -> bool {
        self.host
            .coordinator
            .lock()
            .await
            .as_mut()
            .is_some_and(Coordinator::runs)
    }

    /// Creates the sentinel, or replaces it.
    pub fn touch(&self, reason: &str) {
        let new = self.file("run/.new");
        fs::write(&new, reason).expect("a file");
        fs::rename(new, self.file("run/reboot-needed")).expect("a file");
    }

    pub fn remove_sentinel(&self) {
        fs::remove_file(self.file("run/reboot-needed")).expect("it is there");
    }

    pub fn on_command(&self, what: OnCommand) {
        self.host.on_command.send_replace(what);
    }

    /// How many times the reboot command has run.
    pub fn commands(&self) -> u32 {
        *self.host.commands.borrow()
    }

    /// Waits until the reboot command has run this many times.
    pub async fn until_commands(&self, count: u32) {
        let mut commands = self.host.commands.subscribe();
        let wait = commands.wait_for(|run| *run >= count);
        let run = tokio::time::timeout(super::PATIENCE, wait).await;
        assert!(
            run.is_ok(),
            "no {count} reboot commands; the log:\n{}",
            self.log().text()
        );
    }

    /// The host shuts down and boots again, with its coordinator.
    pub async fn reboot(&self) {
        self.host.reboot().await;
    }

    /// Userspace starts anew, in the same boot: `/run` stays, and the kubelet is left out.
    pub async fn restart_userspace(&self) {
        self.kill_coordinator().await;
        self.start_coordinator().await;
    }

    pub fn boot_id(&self) -> String {
        fs::read_to_string(self.file("boot/id"))
            .expect("it is there")
            .trim()
            .to_owned()
    }

    pub async fn until<T>(&self, what: &str, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        let name = self.name();
        let wait = self.world.until(what, |seen| found(seen.node(name)?));
        // On a panic, prints the log, which says more than the panic.
        let guard = LogOnPanic(&self.host);
        let answer = wait.await;
        drop(guard);
        answer
    }

    /// Waits for a phase in the record; returns the record.
    pub async fn until_phase(&self, phase: &str) -> Value {
        let found = |node: &Value| record(node).filter(|record| record["phase"] == phase);
        self.until(&format!("phase {phase} of {}", self.name()), found)
            .await
    }

    /// Waits for a condition with this status and reason; returns its message.
    pub async fn until_condition(&self, kind: &str, status: &str, reason: &str) -> String {
        self.until_told(kind, status, reason, "").await
    }

    /// Like [`Self::until_condition`], for a message with these words: details that are not known
    /// at first come later.
    pub async fn until_told(&self, kind: &str, status: &str, reason: &str, words: &str) -> String {
        let found = |node: &Value| {
            let there = condition(node, kind)?;
            let message = there["message"].as_str().unwrap_or_default();
            let is = there["status"] == status && there["reason"] == reason;
            (is && message.contains(words)).then(|| message.to_owned())
        };
        let what = format!("{kind}={status} ({reason}: {words}) on {}", self.name());
        self.until(&what, found).await
    }

    /// Waits for an Event with this reason whose message has these words; returns the message.
    pub async fn until_event(&self, reason: &str, words: &[&str]) -> String {
        let guard = LogOnPanic(&self.host);
        let what = format!("Event {reason} with {words:?} about {}", self.name());
        let answer = self.world.until(&what, |seen| {
            let events = seen.events_of(self.name()).into_iter();
            events
                .filter(|(there, _)| there == reason)
                .map(|(_, message)| message)
                .find(|message| words.iter().all(|word| message.contains(word)))
        });
        let answer = answer.await;
        drop(guard);
        answer
    }

    /// Waits until a reboot is finished completely; returns its result.
    pub async fn until_back(&self) -> Value {
        let last = self.until_finished().await;
        let node = self.node().await;
        assert_ne!(
            node["spec"]["unschedulable"], true,
            "our cordon is left behind"
        );
        last
    }

    /// Like [`Self::until_back`], whoever has cordoned the Node.
    pub async fn until_finished(&self) -> Value {
        let what = format!("{} back in service", self.name());
        self.until(&what, |node| {
            let last = annotation(node, "dogwatch.dev/last-reboot")?;
            let this_boot = last["newBootId"] == *self.boot_id() && last["outcome"] == "Rebooted";
            (this_boot && is_quiet(node)).then_some(last)
        })
        .await
    }

    /// Waits until an attempt was given up and undone; returns the record that waits again.
    pub async fn until_undone(&self) -> Value {
        let waits = |node: &Value| {
            let record = record(node)?;
            let waits = record["phase"] == "waiting" && record["retryAfter"].is_string();
            (waits && node["spec"]["unschedulable"] != true).then_some(record)
        };
        let record = self
            .until(&format!("{} queues again later", self.name()), waits)
            .await;
        self.world
            .until("the Lease is free", |seen| {
                is_free(seen.lease("dogwatch-default-0")?).then_some(())
            })
            .await;
        record
    }

    /// The highest number of attempts in any of its records.
    pub fn most_attempts(&self) -> u64 {
        self.world.now(|seen| {
            let mine = seen
                .history
                .iter()
                .filter(|change| change.kind == "nodes" && change.name == self.name());
            let attempts =
                mine.filter_map(|change| record(change.object.as_ref()?)?["attempts"].as_u64());
            attempts.max().unwrap_or(0)
        })
    }

    /// Changes its Node as the administrator.
    pub async fn patch_node(&self, patch: &Value) {
        self.api
            .merge(&format!("/api/v1/nodes/{}", self.name()), patch)
            .await;
    }

    /// Changes its Node's status as the administrator: conditions, allocatable resources.
    pub async fn patch_status(&self, status: &Value) {
        let path = format!("/api/v1/nodes/{}/status", self.name());
        let patch = json!({ "status": status });
        self.api.strategic(&path, &patch).await;
    }

    /// Moves the start of the record's phase back by this time.
    pub async fn age_record(&self, by: SignedDuration) {
        let mut record = record(&self.node().await).expect("a record");
        let since = record["since"].as_str().and_then(|time| time.parse().ok());
        let since: Timestamp = since.expect("a time");
        record["since"] = json!((since - by).to_string());
        let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
        self.patch_node(&json!({ "metadata": { "annotations": annotations } }))
            .await;
    }

    pub async fn cordon(&self, on: bool) {
        self.patch_node(&json!({ "spec": { "unschedulable": on } }))
            .await;
    }

    /// The Node from the API server.
    pub async fn node(&self) -> Value {
        self.api
            .get(&format!("/api/v1/nodes/{}", self.name()))
            .await
            .expect("the Node is there")
    }
}

/// Prints the coordinators' log if a wait inside panics.
struct LogOnPanic<'a>(&'a Host);

impl Drop for LogOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "log of the coordinators of {}:\n{}",
                self.0.name,
                self.0.log.text()
            );
        }
    }
}
