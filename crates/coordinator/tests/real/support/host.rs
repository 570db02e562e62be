//! A host: a folder for its files, a simulated kubelet, and the coordinator's process.
//!
//! Its reboot command is a shell script that writes a line to the fifo `power`. What the host does
//! then is [`OnCommand`]; by default it reboots: the coordinator is killed, the boot id is another,
//! the kubelet starts anew, and so does the coordinator.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dogwatch_core::name::{BootId, NodeName};
use dogwatch_sim::clock::TokioClock;
use dogwatch_sim::seed::Seed;
use dogwatch_sim::world::kubelet::Power;
use dogwatch_sim::world::{Kubelet, KubeletConfig, KubeletHandle};
use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};

use super::Cluster;
use super::coordinator::{Coordinator, Log};

/// What a host does when its reboot command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnCommand {
    /// What it should.
    Reboots,
    /// Nothing, as with a shutdown that is scheduled for later.
    Nothing,
}

/// How a host is made.
pub struct Setting {
    /// Flags of its coordinator, beside or instead of those that every one has. `{host}` is the
    /// folder of the host's files.
    pub flags: Vec<String>,
    /// What its reboot command does to it.
    pub on_command: OnCommand,
    /// Whether its sentinel outlives a boot. Most stand in `/run`, and do not.
    pub sentinel_survives: bool,
    /// As whom its coordinator runs; by default as whoever runs the test.
    pub uid: Option<u32>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            flags: Vec::new(),
            on_command: OnCommand::Reboots,
            sentinel_survives: false,
            uid: None,
        }
    }
}

impl Setting {
    pub fn flags<const N: usize>(flags: [&str; N]) -> Self {
        Self {
            flags: flags.map(str::to_owned).to_vec(),
            ..Self::default()
        }
    }

    pub fn on_command(mut self, on_command: OnCommand) -> Self {
        self.on_command = on_command;
        self
    }
}

/// A host that runs. Its methods are what happens on it, not what is asked of it over the API.
pub struct Host {
    pub name: String,
    pub folder: TempDir,
    pub coordinator: Mutex<Option<Coordinator>>,
    pub on_command: watch::Sender<OnCommand>,
    /// How many times the reboot command has run.
    pub commands: watch::Sender<u32>,
    pub log: Log,
    /// What its coordinator reaches the API server with.
    pub kubeconfig: OnceLock<PathBuf>,
    setting: Setting,
    kubelet: KubeletHandle,
}

impl Host {
    /// Boots it. The coordinator is not started.
    pub fn boot_first(cluster: &Cluster, name: &str, setting: Setting) -> Self {
        let host = Self {
            kubelet: kubelet(cluster, name),
            name: name.to_owned(),
            folder: files(),
            kubeconfig: OnceLock::new(),
            coordinator: Mutex::new(None),
            on_command: watch::Sender::new(setting.on_command),
            commands: watch::Sender::new(0),
            log: Log::new(),
            setting,
        };
        let Power::On(boot) = host.kubelet.power().borrow().clone() else {
            unreachable!("a kubelet starts with its machine running");
        };
        host.write_boot_id(&boot);
        host
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The firmware: obeys the reboot command, for ever.
    pub async fn obey(self: Arc<Self>) {
        let power = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(self.file("power"));
        let mut lines = BufReader::new(power.expect("a fifo")).lines();
        while let Ok(Some(_)) = lines.next_line().await {
            self.commands.send_modify(|count| *count += 1);
            let what = *self.on_command.borrow();
            match what {
                OnCommand::Reboots => self.reboot().await,
                OnCommand::Nothing => {}
            }
        }
    }

    /// Starts a coordinator.
    pub fn start(&self) -> Coordinator {
        let file = |name: &str| self.file(name).display().to_string();
        let own = [
            ("--node-name", self.name.clone()),
            ("--sentinel", file("run/reboot-needed")),
            ("--boot-id-file", file("boot/id")),
            ("--reboot-command", format!("sh {}", file("reboot.sh"))),
            ("--settle", "200ms".to_owned()),
            ("--listen", "off".to_owned()),
        ];
        let given = |flag: &str| {
            self.setting
                .flags
                .iter()
                .any(|given| given.starts_with(&format!("{flag}=")))
        };
        let own = own
            .into_iter()
            .filter(|(flag, _)| !given(flag))
            .map(|(flag, value)| format!("{flag}={value}"));
        let more = self
            .setting
            .flags
            .iter()
            .map(|flag| flag.replace("{host}", &self.folder.path().display().to_string()));
        let arguments: Vec<String> = own.chain(more).collect();
        let kubeconfig = self
            .kubeconfig
            .get()
            .expect("it is set once the Node is there");
        Coordinator::start(kubeconfig, &arguments, self.setting.uid, &self.log)
    }

    /// `kill -9` of the coordinator, if one runs.
    pub async fn kill(&self) {
        if let Some(coordinator) = self.coordinator.lock().await.take() {
            coordinator.kill().await;
        }
    }

    /// Goes down and comes up again.
    pub async fn reboot(&self) {
        static BOOTS: AtomicU32 = AtomicU32::new(0);
        self.kill().await;
        let number = BOOTS.fetch_add(1, Ordering::Relaxed);
        let boot = BootId::new(format!("00000000-0000-4000-8000-{number:012x}")).expect("a UUID");
        self.write_boot_id(&boot);
        if !self.setting.sentinel_survives {
            // It may not be there: a request asks without one.
            let _ = fs::remove_file(self.file("run/reboot-needed"));
        }
        self.kubelet.power_on(boot);
        *self.coordinator.lock().await = Some(self.start());
    }

    fn write_boot_id(&self, boot: &BootId) {
        fs::write(self.file("boot/id"), format!("{boot}\n")).expect("a file");
    }
}

fn files() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for directory in ["run", "boot"] {
        fs::create_dir(folder.path().join(directory)).expect("a new folder");
    }
    let power = folder.path().join("power");
    mkfifoat(CWD, &power, Mode::RUSR | Mode::WUSR).expect("a fifo");
    let script = format!("echo reboot >{}\n", power.display());
    fs::write(folder.path().join("reboot.sh"), script).expect("a file");
    folder
}

/// A kubelet that is quick about everything.
fn kubelet(cluster: &Cluster, name: &str) -> KubeletHandle {
    static SEEDS: AtomicU32 = AtomicU32::new(1);
    let seed = Seed(u64::from(SEEDS.fetch_add(1, Ordering::Relaxed)));
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    let node = NodeName::new(name).expect("a name of ours");
    let mut config = KubeletConfig::new(node, seed, clock);
    config.ready_after = Duration::from_millis(200);
    config.starts_after = Duration::from_millis(50);
    config.stops_after = Duration::from_millis(100);
    Kubelet::start(cluster.api.0.clone(), config)
}
