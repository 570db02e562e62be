//! A thousand viewers at once. A program of its own: it counts the memory of its process.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod support;

use std::time::Duration;

use dogwatch_web::{DashboardAccess, DashboardLimits};
use jiff::Timestamp;
use support::fleet::fleet_of;
use support::{EventReader, Rig};

const STREAMS: usize = 1_000;
/// Some 200 KB of view: a copy for each stream would be seen at once.
const NODES: usize = 500;
/// Source: issue 14, "1,000 open streams ≤ 32 MiB". Both ends are in this process.
const MAX_GROWTH_KIB: u64 = 32 * 1024;

#[tokio::test]
async fn a_thousand_open_streams_cost_less_than_32_mib() {
    // The viewers' ends.
    dogwatch_runtime::open_files::raise_open_file_limit(2 * STREAMS);
    // The viewers read one after the other.
    let limits = DashboardLimits {
        write_timeout: Duration::from_mins(10),
        ..DashboardLimits::default()
    };
    let view = fleet_of(NODES, Timestamp::now());
    let rig = Rig::start_with(DashboardAccess::ReadOnly, view, limits, 0).await;
    let mut first = EventReader::open(&rig, &[]).await;
    first.skip_view().await;
    let before = resident_kib();
    let mut readers = Vec::new();
    for _ in 1..STREAMS {
        let mut reader = EventReader::open(&rig, &[]).await;
        reader.skip_view().await;
        readers.push(reader);
    }
    let mut next = fleet_of(NODES, Timestamp::now());
    next.sentence = "Another sentence.".into();
    rig.show(next);
    for reader in &mut readers {
        reader.skip_view().await;
    }
    let growth = resident_kib().saturating_sub(before);
    eprintln!("{STREAMS} streams: {growth} KiB more");
    assert!(growth <= MAX_GROWTH_KIB, "{growth} KiB");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
