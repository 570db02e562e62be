//! Who had the processors meanwhile: the controller, this bench with its BMCs, or others (the API server,
//! etcd, whatever else the machine does).

use std::path::Path;
use std::time::Instant;

use super::controller::Controller;
use super::table::note;

/// Linux counts the machine's processor time so.
const TICKS_EACH_SECOND: f64 = 100.0;

/// Seconds so far.
pub struct Effort {
    at: Instant,
    ran: f64,
    waited: f64,
    bench: f64,
    machine: f64,
}

impl Effort {
    /// Until now.
    pub fn of(controller: &Controller) -> Self {
        let (ran, waited) = controller.ran_and_waited();
        Self {
            at: Instant::now(),
            ran,
            waited,
            bench: ran_and_waited(Path::new("/proc/self")).0,
            machine: machine(),
        }
    }

    /// Says what was spent since, of it by the controller for each of `fences`.
    pub fn tell(&self, controller: &Controller, fences: usize) {
        let now = Self::of(controller);
        let (ran, waited) = (now.ran - self.ran, now.waited - self.waited);
        let bench = now.bench - self.bench;
        let others = (now.machine - self.machine - ran - bench).max(0.0);
        note(
            "processor meanwhile",
            &format!(
                "{:.1} s: controller ran {ran:.2} s ({:.1} ms each) and waited {waited:.2} s; bench and BMCs {bench:.2} s; API server and others {others:.2} s",
                now.at.duration_since(self.at).as_secs_f64(),
                1_000.0 * ran / fences as f64
            ),
        );
    }
}

/// The seconds that a process' threads ran, and those that they could have run and had no processor: what
/// takes long on a busy machine, and is not the program's.
pub fn ran_and_waited(process: &Path) -> (f64, f64) {
    let tasks = std::fs::read_dir(process.join("task")).unwrap();
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    stats.fold((0.0, 0.0), |(ran, waited), stat| {
        let nanos: Vec<f64> = stat.split(' ').flat_map(str::parse).collect();
        (ran + nanos[0] / 1e9, waited + nanos[1] / 1e9)
    })
}

/// Of all processors together, whoever had them.
fn machine() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all = stat.lines().next().unwrap();
    let ticks: Vec<f64> = all.split_whitespace().flat_map(str::parse).collect();
    // user, nice, system; then idle, waiting for disks; then interrupts and what was stolen.
    (ticks[..3].iter().sum::<f64>() + ticks[5..8].iter().sum::<f64>()) / TICKS_EACH_SECOND
}
