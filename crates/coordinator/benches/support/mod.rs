//! What the benches of the coordinator share.
#![allow(dead_code, reason = "each bench uses its part")]

pub mod fleet;
pub mod lock_request;
pub mod pod;
pub mod shipped;

use std::time::Duration;

/// How long a program runs before its memory is read.
pub const LEFT_ALONE: Duration = Duration::from_secs(20);
/// Limit for each wait.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// What a process has in memory, in MiB.
pub struct ProcessMemory {
    pub resident: f64,
    pub anonymous: f64,
}

impl ProcessMemory {
    pub fn of_process(id: u32) -> Self {
        let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup"));
        let rollup = rollup.expect("a process of ours");
        Self {
            resident: read_mebibytes(&rollup, "Rss:"),
            anonymous: read_mebibytes(&rollup, "Anonymous:"),
        }
    }
}

/// One line of `/proc`, converted from kibibytes.
fn read_mebibytes(rollup: &str, field: &str) -> f64 {
    let line = rollup.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    let kibibytes: u32 = kibibytes
        .and_then(|text| text.parse().ok())
        .expect("a number of kibibytes");
    f64::from(kibibytes) / 1024.0
}
