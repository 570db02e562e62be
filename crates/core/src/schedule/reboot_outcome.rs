//! How the NodeReboots of past occurrences ended.
//!
//! NodeReboots are deleted some time after their end, while others of the same occurrence may still
//! wait. So the counts in the record grow: what ended long ago is settled, and only what ended later
//! is counted from what is there.

use std::time::Duration;

use jiff::SignedDuration;

use super::made_reboot::{MadeNodeReboot, MadeNodeReboots, MadeRebootEnd, first_chars};
use super::record::truncate_to_second;
use super::types::{
    MAX_LISTED_FAILURES, OccurrenceReboots, RebootFailure, ScheduleStatus, SettledReboots,
};
use crate::Now;
use crate::node_reboot::NodeRebootReason;

/// How often NodeReboots that have not ended are read.
pub(super) const FOLLOW_INTERVAL: Duration = Duration::from_mins(1);

/// Ends are settled when the oldest one is older than this. NodeReboots are kept longer.
const SETTLE_AFTER: SignedDuration = SignedDuration::from_hours(12);
/// Ends younger than this are not settled: two controllers' clocks may differ, and another NodeReboot
/// may yet get an end with an earlier time.
const SETTLE_MARGIN: SignedDuration = SignedDuration::from_hours(1);

/// The most failures that a sentence names.
const MAX_NAMED_FAILURES: usize = 3;
/// The longest message of a failure in the status.
const MAX_FAILURE_CHARS: usize = 256;

/// Whether a past occurrence has NodeReboots that have not ended.
pub(super) fn has_open_reboots(status: &ScheduleStatus) -> bool {
    let mut reboots = status
        .history
        .iter()
        .filter_map(|record| record.reboots.as_ref());
    reboots.any(|reboots| reboots.ended.is_none())
}

/// Counts again how the NodeReboots of past occurrences ended.
pub(super) fn follow_reboots(status: &mut ScheduleStatus, made: &MadeNodeReboots, now: Now) {
    let made = match made {
        MadeNodeReboots::Known(made) => made,
        // What cannot be read has not ended.
        MadeNodeReboots::Unavailable(_) | MadeNodeReboots::Unreadable(_) => return,
    };
    for record in &mut status.history {
        let at = record.at;
        if let Some(reboots) = record.reboots.as_mut().filter(|it| it.ended.is_none()) {
            let own = made.values().filter(|one| one.at == Some(at));
            *reboots = count_reboots(reboots, &own.collect::<Vec<_>>(), now);
        }
    }
}

fn count_reboots(
    before: &OccurrenceReboots,
    own: &[&MadeNodeReboot],
    now: Now,
) -> OccurrenceReboots {
    let mut ended: Vec<(&MadeNodeReboot, &MadeRebootEnd)> = own
        .iter()
        .filter_map(|one| Some((*one, one.end.as_ref()?)))
        .collect();
    ended.sort_by_key(|(one, end)| (end.at, &one.name));
    let settled = before.settled.clone().unwrap_or_default();
    let since = |end: &MadeRebootEnd| settled.until.is_none_or(|until| end.at > until);
    let mut total = settled.clone();
    for (_, end) in ended.iter().filter(|(_, end)| since(end)) {
        total.count_end(end);
    }
    let open = count_of(own.len() - ended.len());
    // What was counted once stays counted, also if somebody has deleted it.
    let succeeded = before.succeeded.max(total.succeeded);
    let failed = before.failed.max(total.failed);
    let given_up = before.given_up.max(total.given_up);
    let known = open + succeeded + failed + given_up;
    // A leader that has lost its lead may have made one more, which nobody has counted.
    let made = before.made.max(known);
    OccurrenceReboots {
        made,
        open,
        succeeded,
        failed,
        given_up,
        unknown: made - known,
        failures: list_failures(before, &ended),
        ended: (open == 0).then(|| truncate_to_second(now.wall)),
        settled: if open == 0 {
            None
        } else {
            settle_ends(settled, &ended, now).or_else(|| before.settled.clone())
        },
    }
}

/// `None`: nothing needs to be settled now.
fn settle_ends(
    mut settled: SettledReboots,
    ended: &[(&MadeNodeReboot, &MadeRebootEnd)],
    now: Now,
) -> Option<SettledReboots> {
    let from = settled.until;
    let until = truncate_to_second(now.wall)
        .checked_sub(SETTLE_MARGIN)
        .ok()?;
    let fresh = || {
        ended
            .iter()
            .map(|(_, end)| *end)
            .filter(move |end| from.is_none_or(|from| end.at > from) && end.at <= until)
    };
    let oldest = fresh().map(|end| end.at).min()?;
    if now.wall.duration_since(oldest) < SETTLE_AFTER {
        return None;
    }
    for end in fresh() {
        settled.count_end(end);
    }
    settled.until = Some(until);
    Some(settled)
}

fn list_failures(
    before: &OccurrenceReboots,
    ended: &[(&MadeNodeReboot, &MadeRebootEnd)],
) -> Vec<RebootFailure> {
    let mut failures = before.failures.clone();
    for (one, end) in ended.iter().filter(|(_, end)| !end.is_success) {
        if failures.len() >= MAX_LISTED_FAILURES {
            break;
        }
        if failures.iter().all(|there| there.node_reboot != one.name) {
            failures.push(RebootFailure {
                node: one.node.clone(),
                node_reboot: one.name.clone(),
                reason: end.reason.clone(),
                message: first_chars(&end.message, MAX_FAILURE_CHARS),
            });
        }
    }
    failures
}

impl SettledReboots {
    fn count_end(&mut self, end: &MadeRebootEnd) {
        if end.is_success {
            self.succeeded += 1;
        } else if is_given_up(&end.reason) {
            self.given_up += 1;
        } else {
            self.failed += 1;
        }
    }
}

/// Whether somebody took it back, or nothing had begun by its deadline.
fn is_given_up(reason: &str) -> bool {
    let reason = NodeRebootReason::parse(reason);
    reason.is_some_and(|reason| {
        matches!(
            reason,
            NodeRebootReason::Cancelled
                | NodeRebootReason::DeadlinePassed
                | NodeRebootReason::Aborted
                | NodeRebootReason::RequestRemoved
        )
    })
}

fn count_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The earliest time at which NodeReboots that have not ended are read again.
pub(super) fn next_follow(taken: Option<Duration>, now: Now) -> Duration {
    taken.map_or(now.mono, |taken| taken.saturating_add(FOLLOW_INTERVAL))
}

/// One sentence for people.
pub(crate) fn describe_reboots(reboots: &OccurrenceReboots) -> String {
    let mut parts = vec![format!(
        "{} of {} NodeReboots succeeded",
        reboots.succeeded, reboots.made
    )];
    let counted = [
        (reboots.open, "not ended yet"),
        (reboots.failed, "failed"),
        (reboots.given_up, "given up"),
        (reboots.unknown, "deleted before their end was read"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(counted.map(|(count, what)| format!("{count} {what}")));
    let named = reboots.failures.iter().take(MAX_NAMED_FAILURES);
    parts.extend(named.map(describe_failure));
    parts.join("; ")
}

/// One NodeReboot that did not succeed.
pub(crate) fn describe_failure(failure: &RebootFailure) -> String {
    format!(
        "Node {}: NodeReboot {}: {}: {}",
        failure.node, failure.node_reboot, failure.reason, failure.message
    )
}

/// When the newest NodeReboots are all at their end: whether all succeeded.
pub(super) fn is_all_rebooted(reboots: &OccurrenceReboots) -> bool {
    reboots.failed == 0 && reboots.given_up == 0 && reboots.unknown == 0
}
