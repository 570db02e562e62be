//! What `/metrics` shows of schedules.

use dogwatch_core::schedule::{Outcome, Schedule};
use jiff::Timestamp;

use super::job::{Asked, Done};
use crate::metrics::{Family, Labels, Metrics, Shape};

static OCCURRENCES: Family = Family {
    name: "dogwatch_schedule_occurrences_total",
    help: "Past occurrences of schedules, by how they ended.",
    shape: Shape::Counter,
};
static REQUESTS: Family = Family {
    name: "dogwatch_schedule_requests_total",
    help: "What came of the targets of schedules: requested, already_requested, changed or failed.",
    shape: Shape::Counter,
};
static NEXT: Family = Family {
    name: "dogwatch_schedule_next_timestamp_seconds",
    help: "When each schedule issues next.",
    shape: Shape::Gauge,
};
static LAST_ISSUED: Family = Family {
    name: "dogwatch_schedule_last_occurrence_issued",
    help: "0 while the last occurrence of a schedule did not reach everybody.",
    shape: Shape::Gauge,
};
static ACCEPTED: Family = Family {
    name: "dogwatch_schedule_accepted",
    help: "0 for a schedule that cannot be understood: nothing of it is issued.",
    shape: Shape::Gauge,
};

/// All schedules there are.
pub(super) fn schedules<'a>(metrics: &Metrics, all: impl Iterator<Item = &'a Schedule>) {
    let (mut next, mut issued, mut accepted) = (Vec::new(), Vec::new(), Vec::new());
    for schedule in all {
        let labels = || -> Labels {
            let name = &schedule.name;
            vec![
                ("namespace", name.namespace.clone()),
                ("name", name.name.clone()),
            ]
        };
        let status = &schedule.status;
        next.extend(status.next.map(|at| (labels(), seconds(at))));
        let last = status.history.first();
        issued.extend(last.map(|record| {
            // A person's own doing is nothing to be alarmed at.
            let fine = matches!(record.outcome, Outcome::Requested | Outcome::Cancelled);
            (labels(), f64::from(u8::from(fine)))
        }));
        accepted.push((labels(), f64::from(u8::from(schedule.plan.is_ok()))));
    }
    metrics.replace(&NEXT, next);
    metrics.replace(&LAST_ISSUED, issued);
    metrics.replace(&ACCEPTED, accepted);
}

fn seconds(at: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 seconds")]
    let seconds = at.as_second() as f64;
    seconds
}

/// What came of a job.
pub(super) fn done(metrics: &Metrics, done: &Done) {
    for outcome in &done.ended {
        metrics.add(&OCCURRENCES, &[("outcome", outcome.as_str())], 1);
    }
    for (target, asked) in &done.asked {
        let result = match asked {
            Asked::Is { noted: true, .. } => "already_requested",
            Asked::Is { noted: false, .. } => "requested",
            Asked::Changed => "changed",
            Asked::Failed(_) => "failed",
        };
        let kind = target.kind.as_str();
        metrics.add(&REQUESTS, &[("kind", kind), ("result", result)], 1);
    }
}
