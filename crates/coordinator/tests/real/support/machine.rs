//! A machine: a folder for its host's files, a simulated kubelet, and the coordinator's process.
//!
//! Its reboot command is a shell script that writes a line to `commands` and one to the fifo
//! `power`. What the machine does then is [`OnCommand`]; by default it reboots: the coordinator is
//! killed, the boot id is another, the kubelet starts anew, and so does the coordinator.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_core::name::{BootId, NodeName};
use dogwatch_sim::clock::TokioClock;
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::{Actor, Kubelet, KubeletConfig, KubeletHandle};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};

use super::cluster::{is_true, status_of};
use super::coordinator::{Coordinator, Log};
use super::{Cluster, World};

/// What a machine does when its reboot command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnCommand {
    /// What it should.
    Reboots,
    /// Nothing, as with a shutdown that is scheduled for later.
    Nothing,
}

/// How a machine is made.
pub struct Setting {
    /// Flags of its coordinator beside those that every one has; a later one wins.
    pub flags: Vec<String>,
    /// What its reboot command does to it.
    pub on_command: OnCommand,
    /// How long after a boot its Node is Ready.
    pub ready_after: Duration,
    /// Whether its sentinel outlives a boot. Most stand in `/run`, and do not.
    pub sentinel_survives: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            flags: Vec::new(),
            on_command: OnCommand::Reboots,
            ready_after: Duration::from_millis(200),
            sentinel_survives: false,
        }
    }
}

impl Setting {
    pub fn flags<const N: usize>(flags: [&str; N]) -> Self {
        Self { flags: flags.map(str::to_owned).to_vec(), ..Self::default() }
    }

    pub fn on_command(mut self, on_command: OnCommand) -> Self {
        self.on_command = on_command;
        self
    }
}

/// A machine of a test. Dropped, it is gone with all that ran on it.
pub struct Machine {
    inner: Arc<Inner>,
    _power: Actor,
}

struct Inner {
    name: String,
    folder: TempDir,
    kubeconfig: PathBuf,
    setting: Setting,
    kubelet: KubeletHandle,
    coordinator: Mutex<Option<Coordinator>>,
    on_command: watch::Sender<OnCommand>,
    commands: watch::Sender<u32>,
    log: Log,
    world: World,
    api: super::api::Api,
}

impl Machine {
    /// Boots it and waits until its Node is Ready.
    pub(super) async fn install(cluster: &Cluster, name: &str, setting: Setting) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for directory in ["run", "boot"] {
            fs::create_dir(folder.path().join(directory)).expect("a new folder");
        }
        let power = folder.path().join("power");
        mkfifoat(CWD, &power, Mode::RUSR | Mode::WUSR).expect("a fifo");
        let script = format!(
            "echo reboot >>{0}/commands\necho reboot >{0}/power\n",
            folder.path().display()
        );
        fs::write(folder.path().join("reboot.sh"), script).expect("a file");
        let inner = Arc::new(Inner {
            kubelet: kubelet(cluster, name, &setting),
            name: name.to_owned(),
            kubeconfig: cluster.kubeconfig.clone(),
            coordinator: Mutex::new(None),
            on_command: watch::Sender::new(setting.on_command),
            setting,
            commands: watch::Sender::new(0),
            log: Log::new(),
            world: cluster.world.clone(),
            api: cluster.api.clone(),
            folder,
        });
        let receiver = pipe::OpenOptions::new().read_write(true).open_receiver(power).expect("a fifo");
        let machine = Self { _power: Actor::spawn(obey(Arc::clone(&inner), receiver)), inner };
        let boot = loop {
            let mut power = machine.inner.kubelet.power();
            if let dogwatch_sim::world::kubelet::Power::On(boot) = &*power.borrow_and_update() {
                break boot.clone();
            }
        };
        machine.inner.write_boot_id(&boot);
        machine.until("Ready", |node| is_true(node, "Ready").then_some(())).await;
        machine
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub fn log(&self) -> &Log {
        &self.inner.log
    }

    /// A file of its host.
    pub fn file(&self, name: &str) -> PathBuf {
        self.inner.folder.path().join(name)
    }

    pub async fn start_coordinator(&self) {
        *self.inner.coordinator.lock().await = Some(self.inner.start());
    }

    /// `kill -9` of the coordinator.
    pub async fn kill_coordinator(&self) {
        self.inner.kill().await;
    }

    /// Takes the running coordinator out, to look after it oneself.
    pub async fn take_coordinator(&self) -> Coordinator {
        self.inner.coordinator.lock().await.take().expect("it was started")
    }

    /// Whether its coordinator runs.
    pub async fn coordinator_runs(&self) -> bool {
        self.inner.coordinator.lock().await.as_mut().is_some_and(Coordinator::runs)
    }

    /// Makes the sentinel, or makes it anew.
    pub fn touch(&self, reason: &str) {
        let new = self.file("run/.new");
        fs::write(&new, reason).expect("a file");
        fs::rename(new, self.file("run/reboot-needed")).expect("a file");
    }

    pub fn remove_sentinel(&self) {
        fs::remove_file(self.file("run/reboot-needed")).expect("it is there");
    }

    pub fn on_command(&self, what: OnCommand) {
        self.inner.on_command.send_replace(what);
    }

    /// How many times the reboot command has run.
    pub fn commands(&self) -> u32 {
        *self.inner.commands.borrow()
    }

    /// Waits until the reboot command has run so many times.
    pub async fn until_commands(&self, count: u32) {
        let mut commands = self.inner.commands.subscribe();
        let wait = commands.wait_for(|run| *run >= count);
        if tokio::time::timeout(super::PATIENCE, wait).await.is_err() {
            panic!("no {count} reboot commands; the log:\n{}", self.log().text());
        }
    }

    /// The host goes down and comes up again, its coordinator with it.
    pub async fn reboot(&self) {
        self.inner.reboot().await;
    }

    /// The boot id that the host shows.
    pub fn boot_id(&self) -> String {
        fs::read_to_string(self.file("boot/id")).expect("it is there").trim().to_owned()
    }

    /// Waits for something about its Node.
    pub async fn until<T>(&self, what: &str, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        let name = self.name();
        let wait = self.inner.world.until(what, |seen| found(seen.node(name)?));
        // The log says more than a panic from within could.
        let guard = LogOnPanic(&self.inner);
        let answer = wait.await;
        drop(guard);
        answer
    }

    /// Waits for a phase in the record; the record.
    pub async fn until_phase(&self, phase: &str) -> Value {
        let found = |node: &Value| record(node).filter(|record| record["phase"] == phase);
        self.until(&format!("phase {phase} of {}", self.name()), found).await
    }

    /// Waits for a condition with this status and reason; its message.
    pub async fn until_condition(&self, kind: &str, status: &str, reason: &str) -> String {
        let found = |node: &Value| {
            let there = super::cluster::condition(node, kind)?;
            (there["status"] == status && there["reason"] == reason).then(|| there["message"].as_str().unwrap_or_default().to_owned())
        };
        self.until(&format!("{kind}={status} ({reason}) on {}", self.name()), found).await
    }

    /// Waits for an Event with this reason whose message has these words; the message.
    pub async fn until_event(&self, reason: &str, words: &[&str]) -> String {
        let guard = LogOnPanic(&self.inner);
        let what = format!("Event {reason} with {words:?} about {}", self.name());
        let answer = self.inner.world.until(&what, |seen| {
            let events = seen.events_of(self.name()).into_iter();
            events.filter(|(there, _)| there == reason).map(|(_, message)| message).find(|message| words.iter().all(|word| message.contains(word)))
        });
        let answer = answer.await;
        drop(guard);
        answer
    }

    /// Waits until everything of a finished reboot is in place; what is kept of it.
    pub async fn until_back(&self) -> Value {
        let last = self.until_finished().await;
        let node = self.node().await;
        assert_ne!(node["spec"]["unschedulable"], true, "our cordon is left behind");
        last
    }

    /// The same, but whoever cordoned the Node is not asked.
    pub async fn until_finished(&self) -> Value {
        let what = format!("{} back in service", self.name());
        self.until(&what, |node| {
            let last = annotation(node, "dogwatch.dev/last-reboot")?;
            let this_boot = last["newBootId"] == *self.boot_id() && last["outcome"] == "Rebooted";
            (this_boot && is_quiet(node)).then_some(last)
        })
        .await
    }

    /// Waits until an attempt was given up and its traces are gone: the record that waits on.
    pub async fn until_undone(&self) -> Value {
        let waits = |node: &Value| {
            let record = record(node)?;
            let waits = record["phase"] == "waiting" && record["retryAfter"].is_string();
            (waits && node["spec"]["unschedulable"] != true).then_some(record)
        };
        let record = self.until(&format!("{} queues again later", self.name()), waits).await;
        self.inner.world.until("the Lease is free", |seen| is_free(seen.lease("dogwatch-default-0")?).then_some(())).await;
        record
    }

    /// How many attempts any of its records ever counted.
    pub fn most_attempts(&self) -> u64 {
        self.inner.world.now(|seen| {
            let mine = seen.history.iter().filter(|change| change.kind == "nodes" && change.name == self.name());
            let attempts = mine.filter_map(|change| record(change.object.as_ref()?)?["attempts"].as_u64());
            attempts.max().unwrap_or(0)
        })
    }

    /// Changes its Node as the administrator.
    pub async fn patch_node(&self, patch: &Value) {
        self.inner.api.merge(&format!("/api/v1/nodes/{}", self.name()), patch).await;
    }

    pub async fn cordon(&self, on: bool) {
        self.patch_node(&json!({ "spec": { "unschedulable": on } })).await;
    }

    /// The Node as the API server has it now.
    pub async fn node(&self) -> Value {
        self.inner.api.get(&format!("/api/v1/nodes/{}", self.name())).await.expect("the Node is there")
    }
}

/// Prints the coordinators' log where a wait inside ends in a panic.
struct LogOnPanic<'a>(&'a Inner);

impl Drop for LogOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the coordinators of {}:\n{}", self.0.name, self.0.log.text());
        }
    }
}

fn kubelet(cluster: &Cluster, name: &str, setting: &Setting) -> KubeletHandle {
    static SEEDS: AtomicU32 = AtomicU32::new(1);
    let seed = Seed(u64::from(SEEDS.fetch_add(1, Ordering::Relaxed)));
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    let node = NodeName::new(name).expect("a name of ours");
    let mut config = KubeletConfig::new(node, seed, clock);
    config.ready_after = setting.ready_after;
    config.starts_after = Duration::from_millis(50);
    config.stops_after = Duration::from_millis(100);
    Kubelet::start(cluster.api.0.clone(), config)
}

/// The machine's firmware.
async fn obey(machine: Arc<Inner>, power: pipe::Receiver) {
    let mut lines = BufReader::new(power).lines();
    while let Ok(Some(_)) = lines.next_line().await {
        machine.commands.send_modify(|count| *count += 1);
        let what = *machine.on_command.borrow();
        match what {
            OnCommand::Reboots => machine.reboot().await,
            OnCommand::Nothing => {}
        }
    }
}

impl Inner {
    fn start(&self) -> Coordinator {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let mut arguments: Vec<String> = [
            ("--node-name", self.name.clone()),
            ("--sentinel", file("run/reboot-needed")),
            ("--boot-id-file", file("boot/id")),
            ("--reboot-command", format!("sh {}", file("reboot.sh"))),
            ("--settle", "200ms".to_owned()),
            ("--listen", "off".to_owned()),
        ]
        .into_iter()
        .filter(|(flag, _)| !self.setting.flags.iter().any(|given| given.starts_with(&format!("{flag}="))))
        .map(|(flag, value)| format!("{flag}={value}"))
        .collect();
        arguments.extend(self.setting.flags.iter().map(|flag| flag.replace("{host}", &self.folder.path().display().to_string())));
        Coordinator::start(&self.kubeconfig, &arguments, &self.log)
    }

    async fn kill(&self) {
        if let Some(coordinator) = self.coordinator.lock().await.take() {
            coordinator.kill().await;
        }
    }

    async fn reboot(&self) {
        self.kill().await;
        self.boot();
        *self.coordinator.lock().await = Some(self.start());
    }

    fn boot(&self) {
        static BOOTS: AtomicU32 = AtomicU32::new(0);
        let number = BOOTS.fetch_add(1, Ordering::Relaxed);
        let boot = BootId::new(format!("00000000-0000-4000-8000-{number:012x}")).expect("a UUID");
        self.write_boot_id(&boot);
        if !self.setting.sentinel_survives {
            // It may not be there: a request asks without one.
            let _ = fs::remove_file(self.folder.path().join("run/reboot-needed"));
        }
        self.kubelet.power_on(boot);
    }

    fn write_boot_id(&self, boot: &BootId) {
        fs::write(self.folder.path().join("boot/id"), format!("{boot}\n")).expect("a file");
    }
}

/// An annotation that holds JSON.
pub fn annotation(object: &Value, name: &str) -> Option<Value> {
    serde_json::from_str(object["metadata"]["annotations"][name].as_str()?).ok()
}

/// The record on a Node.
pub fn record(node: &Value) -> Option<Value> {
    annotation(node, "dogwatch.dev/reboot")
}

/// Whether a Node shows nothing of a reboot under way, and is Ready.
fn is_quiet(node: &Value) -> bool {
    let label = &node["metadata"]["labels"]["dogwatch.dev/reboot"];
    let kinds = ["MaintenancePlanned", "DrainInProgress", "Drained", "MaintenanceInProgress"];
    let off = |kind: &&str| status_of(node, kind).is_none_or(|status| status == "False");
    record(node).is_none() && label.is_null() && is_true(node, "Ready") && kinds.iter().all(off)
}

/// Whether a Lease has neither holder nor anything of one.
pub fn is_free(lease: &Value) -> bool {
    lease["spec"]["holderIdentity"].is_null() && lease["metadata"]["annotations"]["dogwatch.dev/holder"].is_null()
}
