//! The metrics of the estimate.

use super::EstimateState;
use crate::metrics::{MetricFamily, MetricShape, MetricsRegistry};

pub(super) static ESTIMATED_FINISH_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_rollout_estimated_finish_timestamp_seconds",
    help: "When the last node of a group that waits or is out is back in service, by an estimate; quantile 0.5 and 0.9.",
    shape: MetricShape::Gauge,
};

/// Replaces all samples: a group whose end is not known has none.
pub(super) fn publish_finish(metrics: &MetricsRegistry, state: &EstimateState) {
    let groups = match state {
        EstimateState::Made(estimate) => Some(&estimate.groups),
        EstimateState::NotMade | EstimateState::NothingKnown => None,
    };
    let rows = groups.into_iter().flatten().flat_map(|(group, times)| {
        [("0.5", times.finish), ("0.9", times.latest_finish)].map(|(quantile, at)| {
            let labels = vec![("group", group.clone()), ("quantile", quantile.to_owned())];
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
            let seconds = at.as_second() as f64;
            (labels, seconds)
        })
    });
    metrics.replace_gauge(&ESTIMATED_FINISH_METRIC, rows);
}
