//! Orders the writes of several files.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::history::ClusterWrite;

/// Orders writes by their resourceVersions. A write without one gets the newest one of the writes
/// that were not later, and comes after that write.
pub(super) fn order_writes(writes: Vec<ClusterWrite>) -> Vec<ClusterWrite> {
    let mut writes = order_by_time(writes);
    let mut newest = 0;
    for write in &mut writes {
        newest = newest.max(write.version);
        if write.version == 0 {
            write.version = newest;
        }
    }
    // A stable sort: writes of one version stay in the order of their times.
    writes.sort_by_key(|write| write.version);
    writes
}

/// A write whose time cannot be read stays beside the one before it in its file.
fn order_by_time(writes: Vec<ClusterWrite>) -> Vec<ClusterWrite> {
    let mut last: BTreeMap<usize, Timestamp> = BTreeMap::new();
    let mut timed: Vec<(Timestamp, ClusterWrite)> = Vec::with_capacity(writes.len());
    for write in writes {
        let last = last.entry(write.source.file).or_insert(Timestamp::MIN);
        *last = write.source.at.parse().unwrap_or(*last);
        timed.push((*last, write));
    }
    timed.sort_by_key(|(time, _)| *time);
    timed.into_iter().map(|(_, write)| write).collect()
}
