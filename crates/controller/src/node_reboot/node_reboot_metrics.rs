//! The metrics of NodeReboots.

use std::sync::Arc;

use dogwatch_api::node_reboot::NodeRebootPhase;
use dogwatch_core::node_reboot::ObservedNodeReboot;

use crate::metrics::{MetricFamily, MetricShape, MetricsRegistry};

static NODE_REBOOTS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_node_reboots",
    help: "NodeReboots that exist, by phase.",
    shape: MetricShape::Gauge,
};
static NODE_REBOOTS_FINISHED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_node_reboots_finished_total",
    help: "NodeReboots that have ended, by condition Succeeded and by reason.",
    shape: MetricShape::Counter,
};

pub(super) fn publish_phases<'a>(
    metrics: &MetricsRegistry,
    all: impl Iterator<Item = &'a Arc<ObservedNodeReboot>>,
) {
    let mut counts = NodeRebootPhase::ALL.map(|phase| (phase, 0_u32));
    let mut is_any = false;
    for reboot in all {
        is_any = true;
        let mut counts = counts.iter_mut();
        if let Some((_, count)) = counts.find(|(phase, _)| *phase == reboot.status.phase) {
            *count += 1;
        }
    }
    let counts = counts.iter().filter(|_| is_any);
    let rows = counts.map(|(phase, count)| {
        let labels = vec![("phase", phase.as_str().to_owned())];
        (labels, f64::from(*count))
    });
    metrics.replace_gauge(&NODE_REBOOTS_METRIC, rows);
}

/// Counts a NodeReboot whose end was just written.
pub(super) fn record_end(
    metrics: &MetricsRegistry,
    before: &ObservedNodeReboot,
    after: &ObservedNodeReboot,
) {
    let Some(ended) = after.final_condition().filter(|_| !before.is_final()) else {
        return;
    };
    let labels = [
        ("succeeded", ended.status.as_str()),
        ("reason", ended.reason.as_str()),
    ];
    metrics.add_to_counter(&NODE_REBOOTS_FINISHED_METRIC, &labels, 1);
}
