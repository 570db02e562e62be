//! A simulated shared volume. A process that has mounted it writes until the boot of its machine
//! ends, whatever happens to the kubelet. A released Node must not be able to do that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_kubesim::machine::SimMachine;
use dogwatch_kubesim::world::ActorTask;

/// A volume to which any number of processes can write. They stop when it is dropped.
#[derive(Debug)]
pub struct SharedVolume {
    shared: Arc<Mutex<VolumeState>>,
    _writing: ActorTask,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeWrites {
    /// Writes per machine.
    pub by: BTreeMap<String, u64>,
    /// How often processes of two boots wrote at the same moment; each time damages the volume.
    pub doubles: u64,
}

#[derive(Debug, Default)]
struct VolumeState {
    writers: Vec<VolumeWriter>,
    writes: VolumeWrites,
}

#[derive(Debug)]
struct VolumeWriter {
    name: String,
    machine: SimMachine,
    boot: String,
}

impl SharedVolume {
    /// Opens a volume on which each writer writes once per `every`.
    pub fn open_volume(every: Duration) -> Self {
        let shared = Arc::new(Mutex::new(VolumeState::default()));
        let written = Arc::clone(&shared);
        let writing = ActorTask::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                lock_volume(&written).write_once();
            }
        });
        Self {
            shared,
            _writing: writing,
        }
    }

    /// Starts a writing process on this machine; returns `false` if the machine does not run.
    pub fn mount_on_machine(&self, name: &str, machine: &SimMachine) -> bool {
        let boot = machine.power_state().running_boot().map(str::to_owned);
        let writer = boot.map(|boot| VolumeWriter {
            name: name.to_owned(),
            machine: machine.clone(),
            boot,
        });
        let started = writer.is_some();
        lock_volume(&self.shared).writers.extend(writer);
        started
    }

    /// Returns the writes so far.
    pub fn count_writes(&self) -> VolumeWrites {
        lock_volume(&self.shared).writes.clone()
    }
}

impl VolumeState {
    fn write_once(&mut self) {
        self.writers.retain(VolumeWriter::is_alive);
        for writer in &self.writers {
            *self.writes.by.entry(writer.name.clone()).or_default() += 1;
        }
        if self.writers.len() > 1 {
            self.writes.doubles += 1;
        }
    }
}

impl VolumeWriter {
    fn is_alive(&self) -> bool {
        self.machine.power_state().running_boot() == Some(self.boot.as_str())
    }
}

fn lock_volume(shared: &Mutex<VolumeState>) -> MutexGuard<'_, VolumeState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_kubesim::clock::TokioClock;
    use dogwatch_kubesim::machine::{MachineSpec, TransitionCause};
    use dogwatch_kubesim::seed::SimulationSeed;

    const EVERY: Duration = Duration::from_millis(10);

    fn machine(name: &str) -> SimMachine {
        let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        SimMachine::running_first_boot(MachineSpec::new(name, SimulationSeed(1), clock))
    }

    #[tokio::test(start_paused = true)]
    async fn two_that_write_at_once_are_counted_and_one_after_the_other_are_not() {
        let volume = SharedVolume::open_volume(EVERY);
        let (first, second) = (machine("s1"), machine("s2"));
        assert!(volume.mount_on_machine("s1", &first));
        tokio::time::sleep(EVERY * 10).await;
        first.cut_power(TransitionCause::Hand);
        assert!(
            !volume.mount_on_machine("s1", &first),
            "nothing starts on it"
        );
        assert!(volume.mount_on_machine("s2", &second));
        tokio::time::sleep(EVERY * 10).await;
        let writes = volume.count_writes();
        assert!(writes.by["s1"] >= 9 && writes.by["s2"] >= 9, "{writes:?}");
        assert_eq!(writes.doubles, 0);
        let third = machine("s3");
        assert!(volume.mount_on_machine("s3", &third));
        tokio::time::sleep(EVERY * 10).await;
        assert!(volume.count_writes().doubles >= 9);
    }
}
