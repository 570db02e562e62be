//! The metrics of the power controller. The families are listed in `docs/controller.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::ConditionStatus;
use dogwatch_core::power::{
    BmcFault, HostSnapshot, HostStatus, PowerDecision, PowerReason, PowerSnapshot, PowerState,
};
use dogwatch_runtime::mutex::lock_ignoring_poison;

use super::bmc_concurrency::Priority;
use crate::metrics::{MetricFamily, MetricShape, MetricsRegistry};

static POWER_HOSTS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_hosts",
    help: "Hosts that this process controls, by power state.",
    shape: MetricShape::Gauge,
};
static POWER_DECISIONS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_decisions",
    help: "Hosts that this process controls, by the reason of the last decision.",
    shape: MetricShape::Gauge,
};
static CONTROL_NOT_READY_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_control_not_ready",
    help: "Hosts whose power control does not work now, by reason. Alert on it: it shows the fault before power control is needed.",
    shape: MetricShape::Gauge,
};
static OFF_PENDING_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_off_pending",
    help: "Hosts that must be off and are not yet proved off.",
    shape: MetricShape::Gauge,
};
static OFF_PENDING_OLDEST_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_off_pending_oldest_timestamp_seconds",
    help: "Unix time since which the host that has waited longest waits for the proof that it is off; 0 if no host waits.",
    shape: MetricShape::Gauge,
};
static OFF_CONFIRM_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_off_confirm_seconds",
    help: "Time from the request that a host be off to the proof that it is off.",
    shape: MetricShape::Seconds(&[
        1.0, 5.0, 6.0, 8.0, 10.0, 15.0, 30.0, 60.0, 180.0, 300.0, 900.0,
    ]),
};
static BMC_CALLS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_bmc_calls_total",
    help: "Calls to the BMCs of one level, by kind of call and by result: answered, or the reason of the failure.",
    shape: MetricShape::Counter,
};
static QUEUE_WAIT_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_queue_seconds",
    help: "How long calls to BMCs waited in the queue: urgent ones (commands, and readings that a power-off waits for) and routine ones.",
    shape: MetricShape::Seconds(&[0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0]),
};
static UNTRUSTED_LEADERS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_leaders_not_believed",
    help: "Leases named baremetal-operator outside --metal3-namespaces, which Dogwatch ignores.",
    shape: MetricShape::Gauge,
};
static HOST_WRITES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_power_host_writes_total",
    help: "Writes of a host's status or annotations that the API server answered.",
    shape: MetricShape::Counter,
};

#[derive(Debug, Clone)]
pub(super) struct PowerMetrics {
    metrics: MetricsRegistry,
    counts: Arc<Mutex<PowerCounts>>,
}

#[derive(Debug, Default)]
struct PowerCounts {
    gauges: BTreeMap<(&'static str, String), usize>,
    /// Waiting since (Unix seconds), and the number of hosts that must be off and wait since then.
    pending: BTreeMap<i64, usize>,
}

/// One host's part of the counts; subtracted when it is dropped.
#[derive(Debug)]
pub(super) struct HostMetrics {
    tally: PowerMetrics,
    summary: Option<HostMetricsState>,
    /// Since when the host must be off.
    since: Option<(Duration, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostMetricsState {
    state: &'static str,
    because: PowerReason,
    not_ready: Option<String>,
    pending: Option<i64>,
}

impl PowerMetrics {
    pub(super) fn new(metrics: MetricsRegistry) -> Self {
        let tally = Self {
            metrics,
            counts: Arc::default(),
        };
        tally.metrics.set_gauge(&OFF_PENDING_METRIC, &[], 0.0);
        tally
            .metrics
            .set_gauge(&OFF_PENDING_OLDEST_METRIC, &[], 0.0);
        tally.metrics.set_gauge(&UNTRUSTED_LEADERS_METRIC, &[], 0.0);
        tally
    }

    pub(super) fn host_metrics(&self) -> HostMetrics {
        HostMetrics {
            tally: self.clone(),
            summary: None,
            since: None,
        }
    }

    pub(super) fn record_call(&self, what: &str, fault: Option<&BmcFault>) {
        let end = fault.map_or("answered", |fault| fault.class.power_reason().as_str());
        self.metrics
            .add_to_counter(&BMC_CALLS_METRIC, &[("call", what), ("end", end)], 1);
    }

    /// The number of Leases that look like metal3's leader Lease and are not trusted.
    pub(super) fn set_untrusted_leaders(&self, leases: usize) {
        self.metrics
            .set_gauge(&UNTRUSTED_LEADERS_METRIC, &[], count_as_float(leases));
    }

    /// Records how long a call waited for its permit.
    pub(super) fn record_wait(&self, errand: Priority, waited: Duration) {
        let lane = match errand {
            Priority::Urgent => "urgent",
            Priority::Routine => "routine",
        };
        self.metrics
            .observe_duration(&QUEUE_WAIT_METRIC, &[("lane", lane)], waited);
    }

    fn move_counts(&self, before: Option<&HostMetricsState>, after: Option<&HostMetricsState>) {
        let mut counts = lock_ignoring_poison(&self.counts);
        for (summary, is_in) in [(before, false), (after, true)] {
            let Some(summary) = summary else { continue };
            self.update_gauge(
                &mut counts,
                &POWER_HOSTS_METRIC,
                "state",
                summary.state,
                is_in,
            );
            self.update_gauge(
                &mut counts,
                &POWER_DECISIONS_METRIC,
                "reason",
                summary.because.as_str(),
                is_in,
            );
            if let Some(reason) = &summary.not_ready {
                self.update_gauge(
                    &mut counts,
                    &CONTROL_NOT_READY_METRIC,
                    "reason",
                    reason,
                    is_in,
                );
            }
            if let Some(since) = summary.pending {
                move_one(&mut counts.pending, since, is_in);
            }
        }
        let pending: usize = counts.pending.values().sum();
        let oldest = counts.pending.keys().next().copied().unwrap_or_default();
        self.metrics
            .set_gauge(&OFF_PENDING_METRIC, &[], count_as_float(pending));
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        self.metrics
            .set_gauge(&OFF_PENDING_OLDEST_METRIC, &[], oldest as f64);
    }

    fn update_gauge(
        &self,
        counts: &mut PowerCounts,
        family: &'static MetricFamily,
        label: &'static str,
        value: &str,
        is_in: bool,
    ) {
        let count = move_one(&mut counts.gauges, (family.name, value.to_owned()), is_in);
        self.metrics
            .set_gauge(family, &[(label, value)], count_as_float(count));
    }
}

impl HostMetrics {
    pub(super) fn record_decision(
        &mut self,
        seen: &PowerSnapshot,
        decision: &PowerDecision,
        now: Now,
    ) {
        let must_be_off = is_off_pending(&seen.host.status);
        self.since = match (must_be_off, self.since) {
            (false, _) => None,
            (true, Some(since)) => Some(since),
            (true, None) => Some((now.mono, now.wall.as_second())),
        };
        let ready = decision.report.conditions.iter();
        let mut ready = ready.filter(|condition| condition.kind == "PowerControlReady");
        let not_ready = ready
            .next()
            .filter(|ready| ready.status == ConditionStatus::False);
        let summary = HostMetricsState {
            state: state_label(&seen.host.status),
            because: decision.cause.reason,
            not_ready: not_ready.map(|ready| ready.reason.clone()),
            pending: self.since.map(|(_, since)| since),
        };
        if self.summary.as_ref() != Some(&summary) {
            self.tally
                .move_counts(self.summary.as_ref(), Some(&summary));
            self.summary = Some(summary);
        }
    }

    pub(super) fn record_write(&self, before: &HostSnapshot, after: &HostSnapshot, now: Duration) {
        self.tally
            .metrics
            .add_to_counter(&HOST_WRITES_METRIC, &[], 1);
        let confirmed = |host: &HostSnapshot| host.status.power.off_confirmed_at.is_some();
        if let Some((since, _)) = self
            .since
            .filter(|_| !confirmed(before) && confirmed(after))
        {
            let took = now.saturating_sub(since);
            self.tally
                .metrics
                .observe_duration(&OFF_CONFIRM_METRIC, &[], took);
        }
    }
}

impl Drop for HostMetrics {
    /// Subtracts the host.
    fn drop(&mut self) {
        self.tally.move_counts(self.summary.as_ref(), None);
    }
}

/// Whether a power-off is under way without a proof: a reboot is pending, or the newest command is
/// a power-off.
fn is_off_pending(status: &HostStatus) -> bool {
    let command = status.power.command.as_ref();
    let is_commanded = command.is_some_and(|command| command.command.is_power_off());
    let is_rebooting = status.pending_reboot_since > status.last_powered_on;
    status.power.off_confirmed_at.is_none() && (is_commanded || is_rebooting)
}

fn state_label(status: &HostStatus) -> &'static str {
    status.power.state.unwrap_or(PowerState::Unknown).as_str()
}

/// Adds or removes one of this key. Returns the new count.
fn move_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K, is_in: bool) -> usize {
    if is_in {
        let count = counts.entry(key).or_default();
        *count += 1;
        return *count;
    }
    let Some(count) = counts.get_mut(&key) else {
        return 0;
    };
    *count = count.saturating_sub(1);
    let left = *count;
    if left == 0 {
        counts.remove(&key);
    }
    left
}

fn count_as_float(count: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
    let count = count as f64;
    count
}
