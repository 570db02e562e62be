//! What is left of an occurrence.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::due::Missed;
use super::report;
use super::seen::Seen;
use super::stand::Stand;
use super::target::{Target, end};
use super::types::{
    Current, HISTORY, Outcome, Record, Status, TARGETS_LISTED, TargetEnd, TargetResult,
};
use crate::Now;

/// Of an occurrence that ends now, where its targets stand so.
pub(super) fn finished(
    seen: &Seen,
    current: Current,
    stands: BTreeMap<Target, Stand>,
    ends: Option<(Outcome, &'static str)>,
    now: Now,
) -> Record {
    let late = ends.map_or("", |(_, why)| why);
    let targets = stands.into_iter().map(|(target, stand)| match stand {
        Stand::Settled(result, message) => end(&target, result, message),
        Stand::Open(_) => {
            let why = seen.trouble.get(&target).map_or(late, String::as_str);
            end(&target, TargetResult::Failed, why.to_owned())
        }
        Stand::Blocked(why) => end(&target, TargetResult::Failed, why),
    });
    let targets: Vec<TargetEnd> = targets.collect();
    let cancelled = ends.filter(|(outcome, _)| *outcome == Outcome::Cancelled);
    summary(
        targets,
        cancelled,
        record(current.at, Outcome::Requested, now),
    )
}

fn summary(
    mut targets: Vec<TargetEnd>,
    cancelled: Option<(Outcome, &'static str)>,
    mut record: Record,
) -> Record {
    let count = |result| {
        let of_it = targets.iter().filter(|target| target.result == result);
        u32::try_from(of_it.count()).unwrap_or(u32::MAX)
    };
    record.asked = count(TargetResult::Requested);
    record.noted = count(TargetResult::Noted);
    record.failed = count(TargetResult::Failed);
    record.outcome = match (record.asked + record.noted, record.failed) {
        _ if cancelled.is_some() => Outcome::Cancelled,
        (0, 0) => Outcome::NoTargets,
        (0, _) => Outcome::Failed,
        (_, 0) => Outcome::Requested,
        (_, _) => Outcome::PartlyRequested,
    };
    targets.sort_by(|a, b| (a.result, a.kind, &a.name).cmp(&(b.result, b.kind, &b.name)));
    record.message = report::sentence(&record, &targets, cancelled.map(|(_, why)| why));
    targets.truncate(TARGETS_LISTED);
    record.targets = targets;
    record
}

/// One that says nothing yet.
pub(super) fn record(at: Timestamp, outcome: Outcome, now: Now) -> Record {
    Record {
        at,
        ended: whole_second(now.wall),
        outcome,
        asked: 0,
        noted: 0,
        failed: 0,
        targets: Vec::new(),
        message: String::new(),
    }
}

/// Fractions say nothing here.
pub(super) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Puts it before the others.
pub(super) fn remember(status: &mut Status, record: Record) {
    status.last = Some(record.at);
    status.history.insert(0, record);
    status.history.truncate(HISTORY);
}

/// Of occurrences that nobody issued.
pub(super) fn missed_record(missed: Missed, now: Now) -> Record {
    Record {
        message: report::missed(missed),
        ..record(missed.newest, Outcome::Missed, now)
    }
}
