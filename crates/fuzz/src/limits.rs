//! What the process and the thread have used, as Linux tells it; 0 where it does not.

/// Clock ticks a second of `/proc`, on every architecture that we build for.
const TICKS_PER_SECOND: u64 = 100;

/// Processor time of this thread, in whole seconds: another program on the machine does not count.
pub(crate) fn thread_seconds() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    // The second field is a name in brackets, which may contain spaces. Source: proc_pid_stat(5).
    let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
    let times = fields.split(' ').skip(11).take(2);
    let ticks: u64 = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

/// The most memory that the process has had at once, in bytes.
pub(crate) fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.parse::<u64>().ok())
        .map_or(0, |kib| kib << 10)
}
