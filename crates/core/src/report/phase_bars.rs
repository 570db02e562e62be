//! The phases of one reboot on a time axis.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::PhaseBar;
use crate::reboot::{LastReboot, RebootPhase, RebootRecord};

/// The phases so far; the last has no end.
pub(super) fn bars_under_way(record: &RebootRecord) -> Vec<PhaseBar> {
    let mut began = record.began.clone();
    began.insert(record.phase, record.since);
    // An undone attempt leaves the times of phases that a later attempt has not reached.
    began.retain(|_, at| *at <= record.since);
    phase_bars(&began, record.planned, None)
}

/// The phases of a reboot that has ended.
pub(super) fn bars_of_last(last: &LastReboot) -> Vec<PhaseBar> {
    phase_bars(&last.began, last.planned, Some(last.finished))
}

fn phase_bars(
    began: &BTreeMap<RebootPhase, Timestamp>,
    planned: Timestamp,
    ended: Option<Timestamp>,
) -> Vec<PhaseBar> {
    let mut begins: Vec<(Timestamp, RebootPhase)> =
        began.iter().map(|(phase, at)| (*at, *phase)).collect();
    begins.sort();
    if begins.first().is_none_or(|(first, _)| *first > planned) {
        begins.insert(0, (planned, RebootPhase::Waiting));
    }
    let ends = begins.iter().skip(1).map(|(at, _)| Some(*at));
    let ends: Vec<Option<Timestamp>> = ends.chain([ended]).collect();
    let bars = begins.iter().zip(ends);
    bars.map(|((from, phase), until)| PhaseBar {
        phase: phase.as_str(),
        from: *from,
        // A clock that was set back between the phases.
        until: until.map(|until| until.max(*from)),
    })
    .collect()
}
