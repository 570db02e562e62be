//! Writes into each policy's status what the policy governs.
//!
//! **For:** `kubectl get rebootpolicies`, and whoever wants to know why a group does not move.
//! **May touch:** the status of RebootPolicies.
//! **Promises:** only the leader writes, at most once per policy in [`MIN_STATUS_WRITE_INTERVAL`],
//! and the last state is always written. A status that is already correct is not written, so that
//! the loop never wakes itself. How far a rollout is does not wait for that interval: nodes wait
//! for it, and begin nothing beyond it.

mod halt_events;
mod write_schedule;

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::reboot_policy::RebootPolicyStatus;
use dogwatch_core::Now;
use dogwatch_core::policy::rollout::{RolloutAdvance, is_urgent_change};
use dogwatch_core::policy::{self, ClusterPolicies, PolicyStatus};
use dogwatch_k8s::ApiErrorKind;
use dogwatch_k8s::cluster::{ClusterView, PolicyObjectState};
use dogwatch_k8s::policy::{status_to_write, write_status};
use tracing::warn;

use self::halt_events::HaltEventWriter;
use self::write_schedule::StatusWriteSchedule;
use crate::ControllerContext;
use crate::metrics::{MetricFamily, MetricLabels, MetricShape};

/// The shortest time between two writes of one policy.
pub const MIN_STATUS_WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two passes: with 5,000 nodes something changes many times a second,
/// and a pass over them takes milliseconds.
const MIN_OBSERVE_INTERVAL: Duration = Duration::from_secs(1);

static POLICY_NODES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_policy_nodes",
    help: "Nodes of each policy: governed, ready, unavailable because of Dogwatch, waiting, and blocked by the policy.",
    shape: MetricShape::Gauge,
};
static POLICY_BLOCKED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_policy_blocked",
    help: "1 while nodes of the policy wait and none of them may begin a reboot, by the reason of the node that has waited longest. A wait for a window, the end of a pause or minInterval does not count.",
    shape: MetricShape::Gauge,
};
static POLICY_ACCEPTED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_policy_accepted",
    help: "0 for an invalid policy: no reboot of its nodes begins.",
    shape: MetricShape::Gauge,
};
static POLICY_HALTED_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_policy_halted",
    help: "1 while the policy's rollout is halted after too many failures, until somebody runs `dogwatch resume`; 0 while it goes on. Only of policies with a rollout.",
    shape: MetricShape::Gauge,
};
static POLICY_STATUS_WRITES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_policy_status_writes_total",
    help: "Writes of a policy's status, by result: written, changed or failed.",
    shape: MetricShape::Counter,
};

/// Keeps all statuses up to date while this process leads.
pub async fn run_policy_status(context: ControllerContext) {
    context
        .run_while_leading(|| run_as_leader(context.clone()))
        .await;
}

async fn run_as_leader(context: ControllerContext) {
    let _shown = PublishedMetricsGuard(&context);
    let heart = context.health.heartbeat_of("policy status");
    let mut cluster = context.cluster.clone();
    let mut pace = StatusWriteSchedule::default();
    let mut halts = HaltEventWriter::default();
    let mut view = cluster.current_view();
    loop {
        heart.mark_working("the status of policies");
        let next = reconcile_statuses(&context, &view, &mut pace).await;
        halts.write_halt_events(&context, &view).await;
        let again = context.clock.now().mono + MIN_OBSERVE_INTERVAL;
        heart.mark_sleeping(next.map(|next| next.saturating_sub(context.clock.now().mono)));
        // Wakes at a change, or when a policy that had to wait may be written.
        tokio::select! {
            biased;
            changed = cluster.next_view() => view = changed,
            () = context.clock.wake_at(next) => {}
        }
        context.clock.sleep_until(again).await;
        view = newest_synced_view(&cluster, view);
    }
}

fn newest_synced_view(
    cluster: &crate::cluster_views::ClusterViewReceiver,
    view: Arc<ClusterView>,
) -> Arc<ClusterView> {
    let now = cluster.current_view();
    if now.synced { now } else { view }
}

/// Computes all statuses and writes those that differ. Returns when a policy that has to wait may
/// be written.
async fn reconcile_statuses(
    context: &ControllerContext,
    view: &ClusterView,
    pace: &mut StatusWriteSchedule,
) -> Option<Duration> {
    let ClusterPolicies::Known(policies) = &view.policies else {
        return None;
    };
    if !view.synced {
        return None;
    }
    let nodes = || view.nodes.values().map(AsRef::as_ref);
    let now = context.clock.now();
    let statuses = policy::policy_statuses(policies, nodes(), &view.list_remediation_leases());
    let rollouts = policy::advance_rollouts(policies, nodes(), now.wall);
    let mut next = next_rollout_wake(&rollouts, now);
    let each = policies.iter().zip(statuses).zip(rollouts);
    let statuses: Vec<PolicyStatus> = each
        .map(|((policy, status), rollout)| status.with_rollout(policy, rollout.state))
        .collect();
    publish_metrics(context, policies, &statuses);
    pace.retain_existing(|name| view.policy_objects.contains_key(name));
    let policies_by_name = view.policy_objects.iter().zip(policies);
    for (((name, standing), policy), status) in policies_by_name.zip(&statuses) {
        let now = context.clock.now().wall;
        let Some(wanted) = status_to_write(status, policies, standing, now) else {
            continue;
        };
        let before = policy.rollout.state.as_ref();
        let is_urgent = is_urgent_change(before, wanted.rollout.as_ref());
        let due = pace.due_at(name);
        if !is_urgent && context.clock.now().mono < due {
            next = Some(earlier_of(next, due));
            continue;
        }
        context.leadership.current_term()?;
        write_policy_status(context, name, standing, &wanted).await;
        let due = context.clock.now().mono + pause_after_write(view.nodes.len());
        pace.record_write(name, due);
        // The watch brings the result; if the write failed, this is when it is tried again.
        next = Some(earlier_of(next, due));
    }
    next
}

/// How often the wall clock is read while a rollout waits for a time of day.
const ROLLOUT_CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// When time alone may change one of the rollouts.
fn next_rollout_wake(rollouts: &[RolloutAdvance], now: Now) -> Option<Duration> {
    let wakes = rollouts.iter().filter_map(|rollout| rollout.wake);
    let wakes = wakes.map(|at| now.recheck_time_of(at, ROLLOUT_CLOCK_CHECK_INTERVAL));
    wakes.min()
}

fn earlier_of(next: Option<Duration>, due: Duration) -> Duration {
    next.map_or(due, |next| next.min(due))
}

async fn write_policy_status(
    context: &ControllerContext,
    name: &str,
    standing: &PolicyObjectState,
    wanted: &RebootPolicyStatus,
) {
    let ended = match write_status(&context.client, name, standing, wanted).await {
        Ok(()) => "written",
        // Another writer was first: the watch shows its version.
        Err(error)
            if matches!(
                error.kind(),
                ApiErrorKind::Conflict | ApiErrorKind::NotFound
            ) =>
        {
            "changed"
        }
        Err(error) => {
            warn!(
                policy = name,
                error = error.error_chain(),
                "failed to write the status of a policy"
            );
            "failed"
        }
    };
    context
        .metrics
        .add_to_counter(&POLICY_STATUS_WRITES_METRIC, &[("ended", ended)], 1);
}

fn publish_metrics(
    context: &ControllerContext,
    policies: &[policy::Policy],
    statuses: &[PolicyStatus],
) {
    let mut nodes: Vec<(MetricLabels, f64)> = Vec::new();
    let mut blocked: Vec<(MetricLabels, f64)> = Vec::new();
    let mut accepted: Vec<(MetricLabels, f64)> = Vec::new();
    let mut halted: Vec<(MetricLabels, f64)> = Vec::new();
    for (policy, status) in policies.iter().zip(statuses) {
        let label = || ("policy", policy.name.to_string());
        for (state, count) in node_counts_of(status) {
            nodes.push((vec![label(), ("state", state.to_owned())], f64::from(count)));
        }
        if let Some(reason) = &status.stuck {
            blocked.push((vec![label(), ("reason", reason.clone())], 1.0));
        }
        let is_accepted = policy.problems.is_empty();
        accepted.push((vec![label()], f64::from(u8::from(is_accepted))));
        if let Some(rollout) = &status.rollout {
            let is_halted = rollout.halted.is_some();
            halted.push((vec![label()], f64::from(u8::from(is_halted))));
        }
    }
    context.metrics.replace_gauge(&POLICY_HALTED_METRIC, halted);
    context.metrics.replace_gauge(&POLICY_NODES_METRIC, nodes);
    context
        .metrics
        .replace_gauge(&POLICY_BLOCKED_METRIC, blocked);
    context
        .metrics
        .replace_gauge(&POLICY_ACCEPTED_METRIC, accepted);
}

fn node_counts_of(status: &PolicyStatus) -> [(&'static str, u32); 5] {
    [
        ("governed", status.nodes),
        ("ready", status.ready),
        ("out", count_items(&status.out)),
        ("waiting", count_items(&status.waiting)),
        ("blocked", status.blocked),
    ]
}

fn count_items<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// The pause after a write of one policy. Each write goes to every node's coordinator, so that
/// 5,000 nodes get one in 30 s and not in 5 s.
fn pause_after_write(nodes: usize) -> Duration {
    MIN_STATUS_WRITE_INTERVAL + Duration::from_millis(5) * u32::try_from(nodes).unwrap_or(u32::MAX)
}

/// Removes the policies' metrics when it is dropped, at the end of the lead: two replicas would
/// count everything twice.
struct PublishedMetricsGuard<'a>(&'a ControllerContext);

impl Drop for PublishedMetricsGuard<'_> {
    fn drop(&mut self) {
        for family in [
            &POLICY_NODES_METRIC,
            &POLICY_BLOCKED_METRIC,
            &POLICY_ACCEPTED_METRIC,
            &POLICY_HALTED_METRIC,
        ] {
            self.0.metrics.replace_gauge(family, []);
        }
    }
}
