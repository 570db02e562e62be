//! The records of past occurrences.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::due::MissedOccurrences;
use super::report;
use super::snapshot::ScheduleSnapshot;
use super::target::{ScheduleTarget, ScheduleTargetKind, build_target_end};
use super::target_state::TargetState;
use super::types::{
    CurrentOccurrence, MAX_HISTORY_RECORDS, MAX_LISTED_TARGETS, OccurrenceOutcome,
    OccurrenceReboots, OccurrenceRecord, ScheduleStatus, TargetOutcome, TargetResult,
};
use crate::Now;

/// The record of an occurrence that ends now, from the states of its targets.
pub(super) fn finish_occurrence(
    seen: &ScheduleSnapshot,
    current: CurrentOccurrence,
    stands: BTreeMap<ScheduleTarget, TargetState>,
    ends: Option<(OccurrenceOutcome, &'static str)>,
    now: Now,
) -> OccurrenceRecord {
    let late = ends.map_or("", |(_, why)| why);
    let targets = stands.into_iter().map(|(target, stand)| match stand {
        TargetState::Settled(result, message) => build_target_end(&target, result, message, None),
        TargetState::Made { node_reboot, .. } => {
            let result = TargetResult::Requested;
            build_target_end(&target, result, String::new(), Some(node_reboot))
        }
        TargetState::Open(_) => {
            let why = seen
                .request_errors
                .get(&target)
                .map_or(late, String::as_str);
            build_target_end(&target, TargetResult::Failed, why.to_owned(), None)
        }
        TargetState::Blocked(why) => build_target_end(&target, TargetResult::Failed, why, None),
    });
    let targets: Vec<TargetOutcome> = targets.collect();
    let cancelled = ends.filter(|(outcome, _)| *outcome == OccurrenceOutcome::Cancelled);
    let reboots = count_made_reboots(&targets);
    let by_annotation = describe_annotations(seen, &targets);
    let record = empty_record(current.at, OccurrenceOutcome::Requested, now);
    let mut record = summarize_targets(targets, cancelled, record);
    record.reboots = reboots;
    record.message.extend(by_annotation);
    record
}

fn count_made_reboots(targets: &[TargetOutcome]) -> Option<OccurrenceReboots> {
    let made = targets.iter().filter(|target| target.node_reboot.is_some());
    let made = u32::try_from(made.count()).unwrap_or(u32::MAX);
    (made > 0).then(|| OccurrenceReboots {
        made,
        open: made,
        ..OccurrenceReboots::default()
    })
}

/// Why nodes were asked by annotation, if some were.
fn describe_annotations(seen: &ScheduleSnapshot, targets: &[TargetOutcome]) -> Option<String> {
    let why = seen.reboots.as_ref()?.annotation_cause()?;
    let mut nodes = targets.iter().filter(|target| {
        target.kind == ScheduleTargetKind::Node && target.result == TargetResult::Requested
    });
    let is_any = nodes.any(|target| target.node_reboot.is_none());
    is_any.then(|| {
        format!("; nodes were requested by annotation, so their reboots are not recorded: {why}")
    })
}

fn summarize_targets(
    mut targets: Vec<TargetOutcome>,
    cancelled: Option<(OccurrenceOutcome, &'static str)>,
    mut record: OccurrenceRecord,
) -> OccurrenceRecord {
    let count = |result| {
        let of_it = targets.iter().filter(|target| target.result == result);
        u32::try_from(of_it.count()).unwrap_or(u32::MAX)
    };
    record.asked = count(TargetResult::Requested);
    record.noted = count(TargetResult::Noted);
    record.failed = count(TargetResult::Failed);
    record.outcome = match (record.asked + record.noted, record.failed) {
        _ if cancelled.is_some() => OccurrenceOutcome::Cancelled,
        (0, 0) => OccurrenceOutcome::NoTargets,
        (0, _) => OccurrenceOutcome::Failed,
        (_, 0) => OccurrenceOutcome::Requested,
        (_, _) => OccurrenceOutcome::PartlyRequested,
    };
    targets.sort_by(|a, b| (a.result, a.kind, &a.name).cmp(&(b.result, b.kind, &b.name)));
    record.message = report::describe_occurrence(&record, &targets, cancelled.map(|(_, why)| why));
    targets.truncate(MAX_LISTED_TARGETS);
    record.targets = targets;
    record
}

pub(super) fn empty_record(
    at: Timestamp,
    outcome: OccurrenceOutcome,
    now: Now,
) -> OccurrenceRecord {
    OccurrenceRecord {
        at,
        ended: truncate_to_second(now.wall),
        outcome,
        asked: 0,
        noted: 0,
        failed: 0,
        targets: Vec::new(),
        message: String::new(),
        reboots: None,
    }
}

/// Cuts fractions of a second, which mean nothing here.
pub(super) fn truncate_to_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Adds a record as the newest one.
pub(super) fn add_to_history(status: &mut ScheduleStatus, record: OccurrenceRecord) {
    status.last = Some(record.at);
    status.history.insert(0, record);
    status.history.truncate(MAX_HISTORY_RECORDS);
}

/// The record of occurrences that were not issued.
pub(super) fn missed_record(missed: MissedOccurrences, now: Now) -> OccurrenceRecord {
    OccurrenceRecord {
        message: report::describe_missed(missed),
        ..empty_record(missed.newest, OccurrenceOutcome::Missed, now)
    }
}
