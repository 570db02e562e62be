//! Orders the writes of several files, and finds the places at which one is missing.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::history::{ClusterWrite, WrittenObject};

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

/// After which of the ordered writes the same object was written once more, unseen: the next write
/// that the history shows relied on another version.
pub(super) fn find_gaps(writes: &[ClusterWrite]) -> Vec<bool> {
    let mut gaps = vec![false; writes.len()];
    let mut last = BTreeMap::new();
    for (place, write) in writes.iter().enumerate() {
        if matches!(write.object, WrittenObject::Unknown { .. }) {
            continue;
        }
        let before: Option<(usize, u64)> =
            last.insert(write.object.object_key(), (place, write.version));
        if let (Some((before, version)), Some(relies_on)) = (before, write.relies_on) {
            // A line that was given twice relies on the version before its own.
            gaps[before] = version != relies_on && version != write.version;
        }
    }
    gaps
}
