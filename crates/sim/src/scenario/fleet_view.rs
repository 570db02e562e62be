//! The view of the fleet and its estimate, as a script shows and expects them.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::duration::format_duration;
use dogwatch_core::explain::{host_rows, remediation_rows, schedule_rows};
use dogwatch_core::reboot::{LastReboot, RebootOutcome};
use dogwatch_core::report::{
    EstimateRollout as _, FleetEstimate, FleetView, FleetViewInput, build_fleet_view,
};
use dogwatch_k8s::fleet::{
    FleetClient, HostsFound, NodesByHost, RemediationsFound, SchedulesFound,
};
use dogwatch_kubesim::clock::ClusterClock as _;
use jiff::Timestamp;

use super::scenario_cluster::ScenarioCluster;
use crate::observer::ObservedKind;
use crate::plan::LivePlanner;

/// The view that `dogwatch top` would show at this moment.
pub(super) async fn read_fleet_view(stage: &ScenarioCluster) -> Result<FleetView, String> {
    let client = FleetClient::new(
        stage.server.client_for_user("admin"),
        dogwatch_api::DEFAULT_NAMESPACE,
    );
    let failed = |error: dogwatch_k8s::Error| error.error_chain();
    let fleet = client.read_fleet().await.map_err(failed)?;
    let hosts = match client.list_hosts(None).await.map_err(failed)? {
        HostsFound::Hosts(hosts) => hosts,
        HostsFound::NoKind => Vec::new(),
    };
    let schedules = match client.list_schedules(None).await.map_err(failed)? {
        SchedulesFound::Schedules(schedules) => schedules,
        SchedulesFound::NoKind => Vec::new(),
    };
    let remediations = client.read_remediations().await.map_err(failed)?;
    let node_reboots = client.list_node_reboots().await.map_err(failed)?;
    let now = Now {
        wall: stage.clock.now(),
        mono: Duration::ZERO,
    };
    let nodes = NodesByHost::of_nodes(fleet.iter_nodes());
    let named = |name: &_| {
        let host = hosts.iter().find(|host| host.name == *name)?;
        nodes.node_of_host(host)
    };
    let input = FleetViewInput {
        hosts: host_rows(&hosts, named),
        schedules: schedule_rows(&schedules, now),
        remediations: match &remediations {
            RemediationsFound::There(input) => remediation_rows(input, now),
            RemediationsFound::NoKind => Vec::new(),
        },
        node_reboots: node_reboots.into_reboots(),
        estimate: LivePlanner.estimate_rollout(&fleet, now),
        ..FleetViewInput::of_fleet(&fleet)
    };
    Ok(build_fleet_view(input, now))
}

/// The view in lines, the sentence first.
pub(super) fn view_lines(view: &FleetView) -> Vec<String> {
    let mut lines = vec![view.sentence.clone()];
    lines.extend(view.needs_person.iter().map(|task| {
        format!(
            "needs you: {} {}: {}",
            task.subject, task.reason, task.message
        )
    }));
    lines.extend(view.out.iter().map(|out| {
        let reason = out.reason.as_deref().unwrap_or("no reason yet");
        format!("out: {} {}: {reason}", out.name, out.phase)
    }));
    lines.extend(view.waiting.iter().map(|waiting| {
        let place = waiting
            .place
            .map_or_else(|| "-".to_owned(), |place| place.to_string());
        let reason = waiting.reason.as_deref().unwrap_or("no reason yet");
        let earliest = waiting.not_before.map(|at| format!(", not before {at}"));
        format!(
            "waits: {place} {}: {reason}{}",
            waiting.name,
            earliest.unwrap_or_default()
        )
    }));
    lines.extend(view.groups.iter().map(|group| {
        let taken = group.taken_by_others.iter();
        let taken: Vec<String> = taken
            .map(|slot| format!("; {} is taken ({})", slot.node, slot.why))
            .collect();
        format!(
            "group {}: {} of at most {} unavailable{}",
            group.name,
            group.used,
            group.allowed,
            taken.join("")
        )
    }));
    lines.extend(
        view.unreadable
            .iter()
            .map(|text| format!("unreadable: {text}")),
    );
    lines
}

/// An estimate to be compared with what comes true.
pub(super) struct NotedEstimate(FleetEstimate);

impl NotedEstimate {
    pub(super) fn of_view(view: &FleetView) -> Result<Self, String> {
        let estimate = view.estimate.clone().ok_or("there is no estimate")?;
        Ok(Self(estimate))
    }

    /// In words, for the timeline.
    pub(super) fn describe_estimate(&self) -> String {
        let ahead = |at: Option<Timestamp>| match at {
            Some(at) => format!(
                "in {}",
                format_duration(round_to_seconds(self.time_until(at)))
            ),
            None => "never".to_owned(),
        };
        format!(
            "estimate: finished {}, at the latest {}; {} nodes",
            ahead(self.0.finish),
            ahead(self.0.latest_finish),
            self.0.nodes.len()
        )
    }

    fn time_until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.0.at)).unwrap_or_default()
    }

    /// Compares the estimated rest of the rollout with the time that it took.
    pub(super) fn judge_estimate(
        &self,
        stage: &ScenarioCluster,
        percent: u32,
    ) -> Result<String, String> {
        let estimated = self.0.finish.ok_or("the estimate had no end")?;
        let finished = last_finished(stage).filter(|at| *at > self.0.at);
        let finished = finished.ok_or("no reboot has ended since the estimate")?;
        let (estimated, took) = (self.time_until(estimated), self.time_until(finished));
        let off = 100.0 * (estimated.as_secs_f64() / took.as_secs_f64() - 1.0);
        let [estimated, took] =
            [estimated, took].map(|time| format_duration(round_to_seconds(time)));
        let said = format!("the estimate was {estimated}, and it took {took}: {off:+.0} %");
        if off.abs() <= f64::from(percent) {
            Ok(said)
        } else {
            Err(said)
        }
    }
}

fn round_to_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// The result of each node's last reboot, if it rebooted the node.
fn list_rebooted(stage: &ScenarioCluster) -> impl Iterator<Item = LastReboot> {
    let nodes = stage.observer.list_objects(ObservedKind::Node);
    let last = nodes.filter_map(|(_, node)| {
        let text = &node["metadata"]["annotations"][dogwatch_api::annotation::LAST_REBOOT];
        serde_json::from_str::<LastReboot>(text.as_str()?).ok()
    });
    last.filter(|last| last.outcome == RebootOutcome::Rebooted)
}

pub(super) fn count_rebooted(stage: &ScenarioCluster) -> usize {
    list_rebooted(stage).count()
}

fn last_finished(stage: &ScenarioCluster) -> Option<Timestamp> {
    list_rebooted(stage).map(|last| last.finished).max()
}
