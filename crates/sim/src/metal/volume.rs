//! A pretend volume: whoever has mounted it writes until the boot of its machine ends, whatever becomes of
//! the kubelet. That is what a released Node must not be able to do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dogwatch_core::name::BootId;

use crate::bmc::Machine;
use crate::world::Actor;

/// A volume that any number of processes can write to. Dropped, nobody writes any more.
#[derive(Debug)]
pub struct Volume {
    shared: Arc<Mutex<Shared>>,
    _writing: Actor,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Writes {
    /// How many, by machine.
    pub by: BTreeMap<String, u64>,
    /// How often processes of two boots wrote in one moment: each is a volume that is damaged.
    pub doubles: u64,
}

#[derive(Debug, Default)]
struct Shared {
    writers: Vec<Writer>,
    writes: Writes,
}

/// A process in one boot of a machine.
#[derive(Debug)]
struct Writer {
    name: String,
    machine: Machine,
    boot: BootId,
}

impl Volume {
    /// Each writer writes so often.
    pub fn open(every: Duration) -> Self {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let written = Arc::clone(&shared);
        let writing = Actor::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                lock(&written).write();
            }
        });
        Self {
            shared,
            _writing: writing,
        }
    }

    /// Starts a process on this machine that writes. Whether it could: on a machine that does not run
    /// nothing starts.
    pub fn mount(&self, name: &str, machine: &Machine) -> bool {
        let boot = machine.state().living().cloned();
        let writer = boot.map(|boot| Writer {
            name: name.to_owned(),
            machine: machine.clone(),
            boot,
        });
        let started = writer.is_some();
        lock(&self.shared).writers.extend(writer);
        started
    }

    /// What was written until now.
    pub fn writes(&self) -> Writes {
        lock(&self.shared).writes.clone()
    }
}

impl Shared {
    fn write(&mut self) {
        self.writers.retain(Writer::lives);
        for writer in &self.writers {
            *self.writes.by.entry(writer.name.clone()).or_default() += 1;
        }
        if self.writers.len() > 1 {
            self.writes.doubles += 1;
        }
    }
}

impl Writer {
    fn lives(&self) -> bool {
        self.machine.state().living() == Some(&self.boot)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bmc::{Cause, MachineSpec};
    use crate::clock::TokioClock;
    use crate::seed::Seed;

    const EVERY: Duration = Duration::from_millis(10);

    fn machine(name: &str) -> Machine {
        let clock = Arc::new(TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH));
        Machine::running(MachineSpec::new(name, Seed(1), clock))
    }

    #[tokio::test(start_paused = true)]
    async fn two_that_write_at_once_are_counted_and_one_after_the_other_are_not() {
        let volume = Volume::open(EVERY);
        let (first, second) = (machine("s1"), machine("s2"));
        assert!(volume.mount("s1", &first));
        tokio::time::sleep(EVERY * 10).await;
        first.cut(Cause::Hand);
        assert!(!volume.mount("s1", &first), "nothing starts on it");
        assert!(volume.mount("s2", &second));
        tokio::time::sleep(EVERY * 10).await;
        let writes = volume.writes();
        assert!(writes.by["s1"] >= 9 && writes.by["s2"] >= 9, "{writes:?}");
        assert_eq!(writes.doubles, 0);
        let third = machine("s3");
        assert!(volume.mount("s3", &third));
        tokio::time::sleep(EVERY * 10).await;
        assert!(volume.writes().doubles >= 9);
    }
}
