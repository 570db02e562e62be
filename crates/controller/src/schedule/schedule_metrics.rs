//! The metrics of schedules.

use dogwatch_core::schedule::{
    OccurrenceOutcome, OccurrenceRecord, Schedule, ScheduleAction, ScheduleStatus,
    ScheduleTargetKind,
};
use dogwatch_runtime::reconcile::CallEnd;
use jiff::Timestamp;

use super::perform::ScheduleAnswer;
use crate::metrics::{MetricFamily, MetricLabels, MetricShape, MetricsRegistry};

static SCHEDULE_OCCURRENCES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_schedule_occurrences_total",
    help: "Past occurrences of schedules, by result.",
    shape: MetricShape::Counter,
};
static SCHEDULE_REQUESTS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_schedule_requests_total",
    help: "Requests to the targets of schedules, by result: requested, already_requested, changed or failed.",
    shape: MetricShape::Counter,
};
static SCHEDULE_NEXT_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_schedule_next_timestamp_seconds",
    help: "When each schedule issues its next requests.",
    shape: MetricShape::Gauge,
};
static SCHEDULE_LAST_ISSUED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_schedule_last_occurrence_issued",
    help: "0 while the last occurrence of a schedule has not reached all its targets.",
    shape: MetricShape::Gauge,
};
static SCHEDULE_LAST_REBOOTED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_schedule_last_occurrence_rebooted",
    help: "0 if a NodeReboot of a schedule's last occurrence that has ended failed; 1 if none did.",
    shape: MetricShape::Gauge,
};
static SCHEDULE_ACCEPTED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_schedule_accepted",
    help: "0 for an invalid schedule: it issues no requests.",
    shape: MetricShape::Gauge,
};

/// Publishes the gauges of all schedules.
pub(super) fn publish_schedules<'a>(
    metrics: &MetricsRegistry,
    all: impl Iterator<Item = &'a Schedule>,
) {
    let (mut next, mut issued, mut accepted) = (Vec::new(), Vec::new(), Vec::new());
    let mut rebooted = Vec::new();
    for schedule in all {
        let labels = || -> MetricLabels {
            let name = &schedule.name;
            vec![
                ("namespace", name.namespace.clone()),
                ("name", name.name.clone()),
            ]
        };
        let status = &schedule.status;
        next.extend(status.next.map(|at| (labels(), unix_seconds(at))));
        let last = status.history.first();
        issued.extend(last.map(|record| {
            // A cancellation is a person's decision and no reason for an alarm.
            let fine = matches!(
                record.outcome,
                OccurrenceOutcome::Requested | OccurrenceOutcome::Cancelled
            );
            (labels(), f64::from(u8::from(fine)))
        }));
        let mut reboots = status
            .history
            .iter()
            .filter_map(|record| record.reboots.as_ref());
        let last = reboots.find(|reboots| reboots.ended.is_some());
        rebooted.extend(last.map(|reboots| (labels(), f64::from(u8::from(reboots.failed == 0)))));
        accepted.push((labels(), f64::from(u8::from(schedule.plan.is_ok()))));
    }
    metrics.replace_gauge(&SCHEDULE_NEXT_METRIC, next);
    metrics.replace_gauge(&SCHEDULE_LAST_ISSUED_METRIC, issued);
    metrics.replace_gauge(&SCHEDULE_LAST_REBOOTED_METRIC, rebooted);
    metrics.replace_gauge(&SCHEDULE_ACCEPTED_METRIC, accepted);
}

fn unix_seconds(at: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 seconds")]
    let seconds = at.as_second() as f64;
    seconds
}

pub(super) fn record_action_end(
    metrics: &MetricsRegistry,
    before: &Schedule,
    action: &ScheduleAction,
    end: &CallEnd<ScheduleAnswer>,
) {
    match action {
        ScheduleAction::WriteStatus(status) => {
            if matches!(end, CallEnd::Done(_)) {
                record_outcomes(metrics, before, status);
            }
        }
        ScheduleAction::CreateReboot(draft) => {
            let is_refused = matches!(end, CallEnd::Done(ScheduleAnswer::Refused(_)));
            let done = if is_refused { "changed" } else { "requested" };
            count_request(metrics, draft.target.kind, end, done);
        }
        ScheduleAction::Ask(ask) => {
            let is_mark = ask.marks.get(&before.uid);
            let is_mark = is_mark.is_some_and(|mark| mark.node_reboot.is_some() && !mark.noted);
            let done = match ask.request {
                Some(_) => "requested",
                None => "already_requested",
            };
            // The creation of the NodeReboot was counted.
            if !is_mark || !matches!(end, CallEnd::Done(_)) {
                count_request(metrics, ask.target.kind, end, done);
            }
        }
    }
}

fn count_request(
    metrics: &MetricsRegistry,
    kind: ScheduleTargetKind,
    end: &CallEnd<ScheduleAnswer>,
    done: &str,
) {
    let result = match end {
        CallEnd::Done(_) => done,
        CallEnd::Changed => "changed",
        CallEnd::Failed(_) => "failed",
    };
    let labels = [("kind", kind.as_str()), ("result", result)];
    metrics.add_to_counter(&SCHEDULE_REQUESTS_METRIC, &labels, 1);
}

/// Counts the occurrences whose records are new in the status.
fn record_outcomes(metrics: &MetricsRegistry, before: &Schedule, status: &ScheduleStatus) {
    let known = &before.status.history;
    let is_known = |record: &&OccurrenceRecord| known.iter().any(|one| one.at == record.at);
    let new = status.history.iter().filter(|record| !is_known(record));
    for record in new {
        let labels = [("outcome", record.outcome.as_str())];
        metrics.add_to_counter(&SCHEDULE_OCCURRENCES_METRIC, &labels, 1);
    }
}
