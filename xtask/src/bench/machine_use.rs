//! What the machine did while a bench ran. A figure taken while others used the processors says nothing about a promise.

use std::{fs, thread, time::Instant};

use anyhow::{Context, Result};

/// Clock ticks a second in `/proc`: the same on every Linux that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;
/// How many processors others may use, on average, before a figure counts as not taken.
const MOST_FOREIGN_PROCESSORS: f64 = 0.15;

/// The counters of the machine at one moment.
pub struct MachineCounters {
    at: Instant,
    /// Processor time of everything since the machine's start, in ticks.
    busy: u64,
    /// Of it, that of this process and of its children that have ended.
    own: u64,
    /// How long at least one process waited for a processor, in microseconds; 0 if the kernel does not say.
    waited: u64,
}

/// What happened between two moments.
pub struct MachineUse {
    pub seconds: f64,
    /// Processors used by the bench and by what it started, on average.
    pub own_processors: f64,
    /// Processors used by others.
    pub foreign_processors: f64,
    /// The share of the time in which something waited for a processor, 0 to 1.
    pub waiting_share: f64,
}

impl MachineCounters {
    pub fn read_counters() -> Result<Self> {
        let stat = read_file("/proc/stat")?;
        let own = read_file("/proc/self/stat")?;
        let pressure = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        Ok(Self {
            at: Instant::now(),
            busy: busy_ticks(&stat).context("/proc/stat has no line \"cpu\"")?,
            own: own_ticks(&own).context("/proc/self/stat is too short")?,
            waited: waited_microseconds(&pressure).unwrap_or_default(),
        })
    }

    /// What happened since then.
    pub fn measure_use(&self) -> Result<MachineUse> {
        let now = Self::read_counters()?;
        let seconds = now.at.duration_since(self.at).as_secs_f64().max(0.001);
        let processors = |ticks: u64| to_float(ticks) / TICKS_PER_SECOND / seconds;
        let own = now.own.saturating_sub(self.own);
        let busy = now.busy.saturating_sub(self.busy);
        let waited = now.waited.saturating_sub(self.waited);
        Ok(MachineUse {
            seconds,
            own_processors: processors(own),
            foreign_processors: processors(busy.saturating_sub(own)),
            waiting_share: to_float(waited) / 1e6 / seconds,
        })
    }
}

impl MachineUse {
    pub fn was_quiet(&self) -> bool {
        self.foreign_processors <= MOST_FOREIGN_PROCESSORS
    }
}

impl std::fmt::Display for MachineUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.0} s; used {:.2} processors, others {:.2}; something waited for a processor in {:.0} % of the time",
            self.seconds,
            self.own_processors,
            self.foreign_processors,
            self.waiting_share * 100.0
        )
    }
}

/// `2 processors (NAME), 24 GiB`
pub fn describe_machine() -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = value_of(&cpu, "model name", ':').unwrap_or("unknown");
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = value_of(&memory, "MemTotal", ':').unwrap_or_default();
    let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    format!(
        "{processors} processors ({model}), {} GiB",
        (kib + (1 << 19)) >> 20
    )
}

fn read_file(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {path}"))
}

fn value_of<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    let lines = text.lines().filter_map(|line| line.split_once(separator));
    lines
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// All time but idle and waiting for disks.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; the rest is part of user.
    let busy = fields.iter().take(8).enumerate();
    Some(
        busy.filter(|(place, _)| *place != 3 && *place != 4)
            .map(|(_, ticks)| ticks)
            .sum(),
    )
}

/// User and system time of a process and of its children that were waited for.
fn own_ticks(stat: &str) -> Option<u64> {
    // The name, in brackets, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Fields 14 to 17 of proc(5), counted from the one after the name, which is the third.
    let times = fields.get(11..15)?;
    Some(
        times
            .iter()
            .filter_map(|time| time.parse::<u64>().ok())
            .sum(),
    )
}

fn waited_microseconds(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a count of ticks or microseconds is far below 2^52"
)]
fn to_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_all_but_idle_and_disk() {
        let stat = "cpu  10 1 20 1000 500 3 4 5 6 7\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy_ticks(stat), Some(43));
        assert_eq!(busy_ticks("intr 1"), None);
    }

    #[test]
    fn children_count_and_a_name_with_spaces_is_skipped() {
        let stat = "17 (a (b) c) S 1 1 1 0 -1 4194304 1 2 3 4 100 20 300 40 20 0 1 0 7 8";
        assert_eq!(own_ticks(stat), Some(460));
    }

    #[test]
    fn the_wait_for_a_processor_is_read() {
        let text = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4567\nfull avg10=0.00 total=0\n";
        assert_eq!(waited_microseconds(text), Some(4567));
        assert_eq!(waited_microseconds(""), None);
    }

    #[test]
    fn a_machine_used_by_others_is_not_quiet() {
        let mut used = MachineUse {
            seconds: 10.0,
            own_processors: 2.0,
            foreign_processors: 0.01,
            waiting_share: 0.5,
        };
        assert!(used.was_quiet());
        used.foreign_processors = 0.5;
        assert!(!used.was_quiet());
    }
}
