//! Implements `dogwatch reboot --wait`: follows the nodes from the request until they are back.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_core::explain::{self, FleetSnapshot, NodeStatusRow};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{
    LastReboot, ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase, RebootReason,
};
use dogwatch_k8s::Error;
use dogwatch_k8s::fleet::FleetWatch;

use super::ask::AskedNode;
use super::request_watch::{RequestState, RequestWatch};
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::follow::{FollowedRequest, ProgressLine, SignalListener, follow_until_done};
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

const MAX_NAMED_NODES: usize = 5;

/// Watches the fleet and remembers how each node's last reboot ended before the request.
pub struct RebootFollower {
    watch: FleetWatch,
    before: BTreeMap<NodeName, Option<LastReboot>>,
    /// Listened to before the first request: a Ctrl-C right after it would otherwise end the
    /// program without a message.
    interrupts: SignalListener,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NodeRebootEnd {
    Returned,
    NotRebooted(String),
}

impl RebootFollower {
    /// Starts the watch and waits for its first list.
    pub async fn start_watching(connected: &ConnectedCluster) -> Result<Self, CommandFailure> {
        let mut watch = connected.fleet.watch_fleet();
        let interrupts = SignalListener::listen_for_signals()?;
        loop {
            watch
                .wait_for_change()
                .await
                .map_err(|error| connected.api_failure("watch Nodes and Leases", &error))?;
            if let Some(fleet) = watch.current_fleet() {
                let last =
                    |node: &ObservedNode| (node.name.clone(), node.last_reboot.get().cloned());
                let before = fleet.iter_nodes().map(last).collect();
                return Ok(Self {
                    watch,
                    before,
                    interrupts,
                });
            }
        }
    }

    /// Prints each step of these nodes until all reboots have ended.
    pub async fn follow_until_done(
        self,
        connected: &ConnectedCluster,
        asked: Vec<AskedNode>,
        timeout: Option<Duration>,
    ) -> Result<(), CommandFailure> {
        let has_objects = asked.iter().any(|one| one.node_reboot.is_some());
        let open = asked.into_iter().map(|asked| {
            let progress = NodeProgress {
                node_reboot: asked.node_reboot,
                ..NodeProgress::default()
            };
            (asked.node, progress)
        });
        let mut reboots = FollowedReboots {
            watch: self.watch,
            objects: has_objects.then(|| RequestWatch::start_watching(connected)),
            before: self.before,
            open: open.collect(),
            failed: Vec::new(),
        };
        follow_until_done(connected, &mut reboots, timeout, self.interrupts).await
    }
}

struct FollowedReboots {
    watch: FleetWatch,
    /// If a node was asked by a NodeReboot.
    objects: Option<RequestWatch>,
    before: BTreeMap<NodeName, Option<LastReboot>>,
    /// The nodes whose reboot has not ended.
    open: BTreeMap<NodeName, NodeProgress>,
    failed: Vec<String>,
}

/// What was last printed about a node, and whether any part of its reboot was observed.
#[derive(Debug, Default)]
struct NodeProgress {
    line: ProgressLine,
    why: Option<String>,
    begun: bool,
    /// Its newest phase; the record with the phase goes before the reboot counts as ended.
    last_phase: Option<&'static str>,
    /// The NodeReboot that tells how it ended.
    node_reboot: Option<String>,
}

impl FollowedRequest for FollowedReboots {
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        tokio::select! {
            () = RequestWatch::wait_for_change(self.objects.as_mut()) => Ok(()),
            changed = self.watch.wait_for_change() => {
                changed.map_err(|error| ("watch Nodes and Leases".to_owned(), error))
            }
        }
    }

    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure> {
        if let Some(objects) = &mut self.objects {
            objects.report_error();
        }
        if let Some(fleet) = self.watch.current_fleet() {
            self.observe_nodes(&fleet)?;
        }
        if !self.open.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if self.failed.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        let text = format!("not rebooted: {}", self.failed.join(", "));
        Err(CommandFailure::new(CliExitCode::Failed, text))
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let length = dogwatch_core::duration::format_duration(timeout);
        let why: Vec<String> = self
            .open
            .iter()
            .take(MAX_NAMED_NODES)
            .map(|(name, told)| {
                let why = told
                    .why
                    .as_deref()
                    .unwrap_or("no coordinator has accepted the request");
                format!("{name}: {}", printable_text(why))
            })
            .collect();
        let text = format!(
            "not all nodes were rebooted within {length}; the requests stay. {}",
            why.join("; ")
        );
        let first = self.open.keys().next().map(NodeName::as_str);
        CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain {}", first.unwrap_or("NODE")))
    }

    fn interrupt_failure(&self) -> CommandFailure {
        let names: Vec<String> = self.open.keys().map(ToString::to_string).collect();
        let names = explain::join_first_names(&names, MAX_NAMED_NODES);
        let text = format!("stopped following; the reboot requests stay: {names}");
        let next_step = match &self.objects {
            Some(_) => "to cancel what has not begun: dogwatch reboot NODE --cancel",
            None => "to remove a request: dogwatch abort NODE",
        };
        CommandFailure::new(CliExitCode::Interrupted, text).with_next_step(next_step)
    }
}

impl FollowedReboots {
    fn observe_nodes(&mut self, fleet: &FleetSnapshot) -> Result<(), CommandFailure> {
        let status = explain::fleet_status(fleet, current_time());
        let objects = self.objects.as_ref();
        let mut ended = Vec::new();
        for (name, told) in &mut self.open {
            let last = self.before.get(name).and_then(Option::as_ref);
            let end = match (objects, &told.node_reboot) {
                (Some(objects), Some(asked)) => object_end(objects, asked),
                (_, None) | (None, Some(_)) => reboot_end(fleet.find_node(name), last, told.begun),
            };
            match end {
                Some(NodeRebootEnd::Returned) => {
                    print_line(&format!("node/{name} is back"))?;
                    ended.push(name.clone());
                }
                Some(NodeRebootEnd::NotRebooted(why)) => {
                    print_line(&format!("node/{name} {why}"))?;
                    self.failed.push(name.to_string());
                    ended.push(name.clone());
                }
                None => {
                    let row = status.nodes.iter().find(|row| row.name == name.as_str());
                    report_node(name, row, told)?;
                }
            }
        }
        self.open.retain(|name, _| !ended.contains(name));
        Ok(())
    }
}

/// How the NodeReboot ended; `None` while it goes on.
fn object_end(objects: &RequestWatch, name: &str) -> Option<NodeRebootEnd> {
    match objects.state_of(name) {
        RequestState::NotListed | RequestState::Open(_) => None,
        RequestState::Deleted => {
            let text = format!("was not rebooted: nodereboot/{name} was deleted");
            Some(NodeRebootEnd::NotRebooted(text))
        }
        RequestState::Ended(ended) if ended.status == "True" => Some(NodeRebootEnd::Returned),
        RequestState::Ended(ended) => Some(NodeRebootEnd::NotRebooted(format!(
            "was not rebooted: {}: {}",
            ended.reason,
            printable_text(&ended.message)
        ))),
    }
}

/// Returns `None` while the reboot goes on. `begun`: the request or a record was observed on the
/// node since the request was written.
fn reboot_end(
    node: Option<&ObservedNode>,
    before: Option<&LastReboot>,
    begun: bool,
) -> Option<NodeRebootEnd> {
    let Some(node) = node else {
        return Some(NodeRebootEnd::NotRebooted("was deleted".into()));
    };
    if node.record != ParsedAnnotation::Absent || node.request_fingerprint.is_some() {
        return None;
    }
    match node.last_reboot.get() {
        Some(last) if Some(last) != before => Some(match last.outcome {
            RebootOutcome::Rebooted => NodeRebootEnd::Returned,
            RebootOutcome::TriggerGone => {
                NodeRebootEnd::NotRebooted("was not rebooted: the request was removed".into())
            }
            RebootOutcome::Released => {
                NodeRebootEnd::NotRebooted("was not rebooted: it was held, and is back".into())
            }
            RebootOutcome::Aborted => NodeRebootEnd::NotRebooted(
                "was not rebooted: somebody aborted the reboot (dogwatch abort)".into(),
            ),
        }),
        // The list may be older than our request. Once the request was observed, its absence means
        // something.
        Some(_) | None => begun.then(|| {
            NodeRebootEnd::NotRebooted("was not rebooted: the request was removed".into())
        }),
    }
}

fn report_node(
    name: &NodeName,
    row: Option<&NodeStatusRow>,
    told: &mut NodeProgress,
) -> Result<(), CommandFailure> {
    let Some(row) = row else {
        return Ok(());
    };
    let reason = row.reason.as_deref();
    let is_requested = reason.and_then(RebootReason::parse) == Some(RebootReason::RebootRequested);
    told.begun |= row.phase.is_some() || is_requested;
    let stage = describe_stage(row.phase, told.last_phase, is_requested);
    told.last_phase = row.phase.or(told.last_phase);
    let Some(reason) = reason.filter(|_| told.begun) else {
        return Ok(());
    };
    let message = row.message.as_deref().unwrap_or_default();
    told.why = Some(format!("{reason}: {message}"));
    let place = row
        .place
        .map(|place| format!(", {} in the queue", explain::format_ordinal(place)));
    let text = format!("{stage}: {reason}{}", place.unwrap_or_default());
    // The message counts pods, so it is printed with each new reason only.
    let line = format!("node/{name} {text}: {message}");
    told.line.print_new(text, &line)
}

/// How far the node is: its phase, or what the absence of a phase means after the last one. A node
/// without a record was not begun, or is back in service.
fn describe_stage(
    phase: Option<&'static str>,
    last_phase: Option<&str>,
    is_requested: bool,
) -> &'static str {
    let was_out = last_phase.is_some_and(|last| last != RebootPhase::Waiting.as_str());
    match phase {
        Some(phase) => phase,
        None if was_out && !is_requested => "back",
        None => "requested",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_whose_record_is_gone_is_back_and_not_requested_again() {
        let [waiting, returning] = [RebootPhase::Waiting, RebootPhase::Returning];
        let [waiting, returning] = [waiting.as_str(), returning.as_str()];
        assert_eq!(describe_stage(None, None, true), "requested");
        assert_eq!(describe_stage(Some(waiting), None, true), waiting);
        assert_eq!(describe_stage(None, Some(waiting), false), "requested");
        assert_eq!(describe_stage(None, Some(returning), false), "back");
        // The second attempt of a NodeReboot.
        assert_eq!(describe_stage(None, Some(returning), true), "requested");
    }
}
