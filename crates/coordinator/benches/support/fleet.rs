//! Machines with simulated kubelets, each with a program that reboots it when a sentinel file is
//! there: a coordinator or kured.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_k8s::Client;
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::{KubeletConfig, KubeletHandle, SimulatedKubelet};
use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::Mutex;

use super::ProcessMemory;
use super::pod::PodCommand;

/// How long a machine is down when it reboots.
const BOOT_TAKES: Duration = Duration::from_secs(5);
/// How long a pod takes to end.
const POD_STOPS_AFTER: Duration = Duration::from_secs(1);

/// Makes the arguments of the program that reboots a machine.
pub type ProgramArguments = fn(&Machine) -> Vec<String>;

pub struct Machine {
    pub name: String,
    folder: TempDir,
    kubelet: KubeletHandle,
    program: Arc<PodCommand>,
    arguments: ProgramArguments,
    child: Mutex<Option<Child>>,
    reboots: AtomicU32,
}

impl Machine {
    /// Boots a machine and starts its program.
    pub async fn boot(
        client: Client,
        name: &str,
        program: &Arc<PodCommand>,
        arguments: ProgramArguments,
    ) -> Arc<Self> {
        let machine = Arc::new(Self {
            name: name.to_owned(),
            folder: make_files(),
            kubelet: start_kubelet(client, name),
            program: Arc::clone(program),
            arguments,
            child: Mutex::new(None),
            reboots: AtomicU32::new(0),
        });
        machine.boot_again().await;
        tokio::spawn(Arc::clone(&machine).obey_reboot_commands());
        machine
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn want_reboot(&self) {
        fs::write(self.file("reboot-needed"), "new kernel").expect("a file");
    }

    pub fn count_reboots(&self) -> u32 {
        self.reboots.load(Ordering::Relaxed)
    }

    pub async fn read_memory(&self) -> ProcessMemory {
        let child = self.child.lock().await;
        let started = child.as_ref().and_then(Child::id).expect("it runs");
        ProcessMemory::of_process(self.program.find_process(started))
    }

    /// The shell command that its program calls to reboot it.
    pub fn reboot_command(&self) -> String {
        format!("/bin/sh {}", self.file("reboot.sh").display())
    }

    async fn obey_reboot_commands(self: Arc<Self>) {
        let power = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(self.file("power"));
        let mut lines = BufReader::new(power.expect("a fifo")).lines();
        while let Ok(Some(_)) = lines.next_line().await {
            self.reboots.fetch_add(1, Ordering::Relaxed);
            self.kubelet.power_off();
            if let Some(mut child) = self.child.lock().await.take() {
                child.kill().await.expect("a child can be killed");
            }
            // A sentinel is in `/run`, which does not survive a boot.
            let _ = fs::remove_file(self.file("reboot-needed"));
            tokio::time::sleep(BOOT_TAKES).await;
            self.boot_again().await;
        }
    }

    async fn boot_again(&self) {
        static BOOTS: AtomicU32 = AtomicU32::new(1);
        let number = BOOTS.fetch_add(1, Ordering::Relaxed);
        let boot = format!("00000000-0000-4000-8000-{number:012x}");
        fs::write(self.file("boot-id"), format!("{boot}\n")).expect("a file");
        self.kubelet.power_on(boot);
        let mut command = self.program.to_command();
        let mut log = fs::File::options();
        let log = log.create(true).append(true).open(self.file("log"));
        let log = log.expect("a file");
        command.args((self.arguments)(self)).stderr(log);
        let child = command.spawn().expect("the program is there");
        *self.child.lock().await = Some(child);
    }
}

fn make_files() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let power = folder.path().join("power");
    mkfifoat(CWD, &power, Mode::RUSR | Mode::WUSR).expect("a fifo");
    let script = format!("echo reboot >{}\n", power.display());
    fs::write(folder.path().join("reboot.sh"), script).expect("a file");
    folder
}

fn start_kubelet(client: Client, name: &str) -> KubeletHandle {
    static SEEDS: AtomicU32 = AtomicU32::new(1);
    let seed = SimulationSeed(u64::from(SEEDS.fetch_add(1, Ordering::Relaxed)));
    let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
    let mut config = KubeletConfig::new(name, seed, clock);
    config.ready_after = Duration::from_secs(1);
    config.starts_after = Duration::from_millis(50);
    config.stops_after = POD_STOPS_AFTER;
    SimulatedKubelet::start_machine(client, config)
}
