//! Marks nodes under planned reboot for other operators: sets medik8s' maintenance Lease of the
//! node, and the annotation with which Cluster API's health checks skip its Machine. Source:
//! specification §4.4.
//!
//! **For:** one loop while this process leads: watch, decide ([`markers::decide`]), act.
//! **May touch:** what [`MarkerClient`] may.
//! **Promises:** nothing is written while this process does not lead; the next leader's first pass
//! finds the markers that a dead leader left (S6); where no node reboots and no marker is left, no
//! call is made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::backoff::RetryBackoff;
use dogwatch_core::markers::{self, MARKER_REFRESH_INTERVAL, MarkerAction, RebootingNode};
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::WatchedReboots;
use dogwatch_k8s::Error;
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::markers::{MaintenanceMarkers, MarkerClient};
use dogwatch_runtime::health::LoopHeartbeat;
use tracing::{info, warn};

use crate::ControllerContext;
use crate::context::RETRY_PAUSES;
use crate::metrics::{MetricFamily, MetricShape};

/// The shortest time between two passes: with 5,000 nodes something changes many times a second.
const MIN_OBSERVE_INTERVAL: Duration = Duration::from_millis(500);

static MARKED_NODES_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_handshake_nodes",
    help: "Nodes with a planned reboot that carry markers for other health checks.",
    shape: MetricShape::Gauge,
};
static MARKER_ACTIONS_METRIC: MetricFamily = MetricFamily {
    name: "dogwatch_handshake_marks_total",
    help: "Writes of markers, by marker and by result: done, changed or failed.",
    shape: MetricShape::Counter,
};

pub async fn run_maintenance_markers(context: ControllerContext) {
    context
        .run_while_leading(|| MaintenanceMarkerLoop::new(context.clone()).run_as_leader())
        .await;
}

struct MaintenanceMarkerLoop {
    context: ControllerContext,
    client: MarkerClient,
    heart: LoopHeartbeat,
    watched: WatchedReboots,
    /// The nodes that were marked after the last pass. `None` before this leader's first pass, and
    /// after a failed one.
    marked: Option<BTreeMap<NodeName, RebootingNode>>,
    /// When the markers are checked again although nothing changes.
    again: Option<Duration>,
    pace: RetryBackoff,
    forbidden: BTreeMap<&'static str, String>,
}

impl MaintenanceMarkerLoop {
    fn new(context: ControllerContext) -> Self {
        Self {
            client: MarkerClient::new(context.client.clone()),
            heart: context.health.heartbeat_of("handshake"),
            context,
            watched: WatchedReboots::default(),
            marked: None,
            again: None,
            pace: RetryBackoff::default(),
            forbidden: BTreeMap::new(),
        }
    }

    async fn run_as_leader(mut self) {
        let mut cluster = self.context.cluster.clone();
        loop {
            let view = cluster.current_view();
            self.heart.mark_working("handshake");
            let wake = self.reconcile_view(&view).await;
            let now = self.context.clock.now().mono;
            self.heart
                .mark_sleeping(wake.map(|wake| wake.saturating_sub(now)));
            tokio::select! {
                biased;
                _ = cluster.next_view() => {}
                () = self.context.clock.wake_at(wake) => {}
            }
            self.context
                .clock
                .sleep_until(now + MIN_OBSERVE_INTERVAL)
                .await;
        }
    }

    /// Updates the markers if something changed or a check is due. Returns when to call it again.
    async fn reconcile_view(&mut self, view: &ClusterView) -> Option<Duration> {
        // Without the policies the time limit of a reboot is not known.
        if !view.synced || matches!(view.policies, ClusterPolicies::NotYetRead) {
            return None;
        }
        let now = self.context.clock.now();
        self.watched
            .observe_nodes(view.nodes.values().map(AsRef::as_ref), now);
        let flags = &self.context.flags;
        let wanted =
            markers::wanted_markers(&view.nodes, &self.watched, &view.policies, flags, now);
        let ends = wanted.values().map(|told| told.until).min();
        let paused = self.pace.blocked_until(now.mono);
        let settled = self.marked.as_ref() == Some(&wanted);
        let due = !settled || self.again.is_some_and(|again| again <= now.mono);
        if due && paused.is_none() {
            self.update_markers(wanted).await;
        }
        let pace = self.pace.blocked_until(now.mono);
        [ends, self.again, pace].into_iter().flatten().min()
    }

    async fn update_markers(&mut self, wanted: BTreeMap<NodeName, RebootingNode>) {
        let count = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        self.context
            .metrics
            .set_gauge(&MARKED_NODES_METRIC, &[], count.into());
        let done = self.write_markers(&wanted).await;
        let now = self.context.clock.now().mono;
        // While markers are wanted, they are checked now and then, because others may remove them.
        self.again = (!wanted.is_empty()).then_some(now + MARKER_REFRESH_INTERVAL);
        match done {
            Ok(true) => {
                self.pace.reset();
                self.marked = Some(wanted);
            }
            Ok(false) => self.schedule_retry(),
            Err(error) => {
                warn!(
                    error = error.error_chain(),
                    "failed to write the markers of planned reboots; retrying"
                );
                self.schedule_retry();
            }
        }
    }

    fn schedule_retry(&mut self) {
        self.marked = None;
        let now = self.context.clock.now().mono;
        self.pace.record_failure(RETRY_PAUSES, now);
    }

    /// Reads the markers and corrects them. `false`: an object had changed meanwhile.
    async fn write_markers(
        &mut self,
        wanted: &BTreeMap<NodeName, RebootingNode>,
    ) -> Result<bool, Error> {
        let nodes: BTreeSet<NodeName> = wanted.keys().cloned().collect();
        let marks = self.client.read_markers(&nodes).await?;
        self.log_forbidden(&marks);
        let now = self.context.clock.now();
        let actions = markers::decide(wanted, &marks.machines, marks.leases.as_deref(), now);
        let mut all = true;
        let mut failed = None;
        for action in actions {
            // An error with one marker delays only that marker.
            match self.perform_action(&action).await {
                Ok(done) => all &= done,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    async fn perform_action(&mut self, action: &MarkerAction) -> Result<bool, Error> {
        if self.context.leadership.current_term().is_none() {
            return Ok(false);
        }
        let now = self.context.clock.now().wall;
        let done = self.client.apply_action(action, now).await;
        let result = match &done {
            Ok(true) => "done",
            Ok(false) => "changed",
            Err(_) => "failed",
        };
        let labels = [("mark", describe_action(action)), ("result", result)];
        self.context
            .metrics
            .add_to_counter(&MARKER_ACTIONS_METRIC, &labels, 1);
        info!(
            about = action_object(action),
            result,
            "{}",
            describe_action(action)
        );
        done
    }

    /// Logs a missing right once, at INFO level: where nobody uses these markers, nobody grants the
    /// right.
    fn log_forbidden(&mut self, marks: &MaintenanceMarkers) {
        for (what, why) in &marks.forbidden {
            if self.forbidden.insert(what, why.clone()).is_none() {
                info!(
                    what,
                    why,
                    "Dogwatch may not write the markers of planned reboots here; see deploy/medik8s and deploy/cluster-api"
                );
            }
        }
    }
}

impl Drop for MaintenanceMarkerLoop {
    /// A process that does not lead reports no marked nodes.
    fn drop(&mut self) {
        self.heart.mark_sleeping(None);
        self.context.metrics.replace_gauge(&MARKED_NODES_METRIC, []);
    }
}

fn describe_action(action: &MarkerAction) -> &'static str {
    match action {
        MarkerAction::MarkMachine(_) => "marks a Machine",
        MarkerAction::UnmarkMachine(_) => "removes the mark from a Machine",
        MarkerAction::TakeLease { .. } => "takes a node's Lease",
        MarkerAction::DeleteLease(_) => "releases a node's Lease",
    }
}

fn action_object(action: &MarkerAction) -> String {
    match action {
        MarkerAction::MarkMachine(machine) | MarkerAction::UnmarkMachine(machine) => {
            format!("{}/{}", machine.namespace, machine.name)
        }
        MarkerAction::TakeLease { node, .. } => node.to_string(),
        MarkerAction::DeleteLease(lease) => lease.name.clone(),
    }
}
