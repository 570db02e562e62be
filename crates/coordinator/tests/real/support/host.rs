//! A host: a folder for its files, a simulated kubelet, and the coordinator's process.
//!
//! Its reboot command is a shell script that writes a line to the FIFO `power`. [`OnCommand`]
//! decides what the host does then; by default it reboots: the coordinator is killed, the boot id
//! changes, kubelet and coordinator start again.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::kubelet::MachinePower;
use dogwatch_kubesim::world::{KubeletConfig, KubeletHandle, SimulatedKubelet};
use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};

use super::Cluster;
use super::coordinator::{Coordinator, Log};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnCommand {
    Reboots,
    /// Nothing, as with a shutdown that is scheduled for later.
    Nothing,
}

pub struct Setting {
    /// Flags of its coordinator, which add to or override the common ones. `{host}` is the folder
    /// of the host's files.
    pub flags: Vec<String>,
    pub on_command: OnCommand,
    /// Whether its sentinel survives a boot. Most are in `/run`, and do not.
    pub sentinel_survives: bool,
    /// User of its coordinator; by default the user who runs the test.
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

/// A running host. Its methods act on the host itself, not over the API.
pub struct Host {
    pub name: String,
    pub folder: TempDir,
    pub coordinator: Mutex<Option<Coordinator>>,
    pub on_command: watch::Sender<OnCommand>,
    /// How many times the reboot command has run.
    pub commands: watch::Sender<u32>,
    pub log: Log,
    /// The kubeconfig of its coordinator.
    pub kubeconfig: OnceLock<PathBuf>,
    setting: Setting,
    kubelet: KubeletHandle,
}

impl Host {
    /// Boots the host without starting the coordinator.
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
        let MachinePower::On(boot) = host.kubelet.watch_power().borrow().clone() else {
            unreachable!("a kubelet starts with its machine running");
        };
        host.write_boot_id(&boot);
        host
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The firmware: obeys the reboot command for ever.
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
        // Without root, this folder cannot be written.
        let log = ("--decision-log", file("decisions.ndjson"));
        let own = own
            .into_iter()
            .chain(self.setting.uid.is_none().then_some(log));
        let given = |flag: &str| {
            self.setting
                .flags
                .iter()
                .any(|given| given.starts_with(&format!("{flag}=")))
        };
        let own = own
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

    /// Shuts the host down and boots it.
    pub async fn reboot(&self) {
        static BOOTS: AtomicU32 = AtomicU32::new(0);
        self.kill().await;
        let number = BOOTS.fetch_add(1, Ordering::Relaxed);
        let boot = format!("00000000-0000-4000-8000-{number:012x}");
        self.write_boot_id(&boot);
        if !self.setting.sentinel_survives {
            // The file may be missing: a reboot request needs no sentinel.
            let _ = fs::remove_file(self.file("run/reboot-needed"));
        }
        self.kubelet.power_on(boot);
        *self.coordinator.lock().await = Some(self.start());
    }

    fn write_boot_id(&self, boot: &str) {
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

/// A kubelet without delays.
fn kubelet(cluster: &Cluster, name: &str) -> KubeletHandle {
    static SEEDS: AtomicU32 = AtomicU32::new(1);
    let seed = SimulationSeed(u64::from(SEEDS.fetch_add(1, Ordering::Relaxed)));
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    let mut config = KubeletConfig::new(name, seed, clock);
    config.ready_after = Duration::from_millis(200);
    config.starts_after = Duration::from_millis(50);
    config.stops_after = Duration::from_millis(100);
    SimulatedKubelet::start_machine(cluster.api.0.clone(), config)
}
