//! Follows a node until its reboot is aborted.

use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::explain;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation, RebootOutcome, RebootPhase};
use dogwatch_k8s::Error;
use dogwatch_k8s::fleet::NodeWatch;

use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::follow::{FollowedRequest, ProgressLine, SignalListener, follow_until_done};
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

/// Waits until the coordinator has aborted the reboot; if the coordinator is dead, the healer does
/// it.
pub async fn wait_for_abort(
    connected: &ConnectedCluster,
    node: &NodeName,
    before: &ObservedNode,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let mut abort = FollowedAbort {
        watch: connected.fleet.watch_node(node),
        node,
        before,
        newest: NodeSight::NotListed,
        progress: ProgressLine::default(),
    };
    follow_until_done(
        connected,
        &mut abort,
        Some(timeout),
        SignalListener::listen_for_signals()?,
    )
    .await
}

struct FollowedAbort<'a> {
    watch: NodeWatch,
    node: &'a NodeName,
    before: &'a ObservedNode,
    newest: NodeSight,
    progress: ProgressLine,
}

/// What the watch has shown of the Node.
enum NodeSight {
    NotListed,
    Deleted,
    Found(Box<ObservedNode>),
}

impl FollowedRequest for FollowedAbort<'_> {
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        let next = self.watch.next_state().await;
        let next = next.map_err(|error| (format!("watch node {}", self.node), error))?;
        self.newest = next.map_or(NodeSight::Deleted, |node| NodeSight::Found(Box::new(node)));
        Ok(())
    }

    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure> {
        match &self.newest {
            NodeSight::NotListed => Ok(ControlFlow::Continue(())),
            NodeSight::Deleted => {
                let text = format!("Node {} has been deleted", self.node);
                Err(CommandFailure::new(CliExitCode::NotFound, text))
            }
            NodeSight::Found(seen) if is_abort_served(self.before, seen) => {
                report_aborted(self.before, seen)?;
                Ok(ControlFlow::Break(()))
            }
            NodeSight::Found(seen) => {
                let state = reboot_state_text(seen);
                self.progress.print_new(state.clone(), &state)?;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let (node, length) = (self.node, duration::format_duration(timeout));
        let text = format!("the reboot of node {node} was not aborted within {length}");
        CommandFailure::new(CliExitCode::Failed, text).with_next_step(format!(
            "the abort request stays on the Node: its coordinator acts on it at once, the healer of `dogwatch controller` after 30s; check that one of them is running: dogwatch explain {node}"
        ))
    }

    fn interrupt_failure(&self) -> CommandFailure {
        let node = self.node;
        let text = format!("stopped waiting; the abort request stays on node {node}");
        CommandFailure::new(CliExitCode::Interrupted, text)
    }
}

/// Whether the reboot that was under way is gone. A list from before our write still shows it.
fn is_abort_served(before: &ObservedNode, seen: &ObservedNode) -> bool {
    let planned = |node: &ObservedNode| node.record.get().map(|record| record.planned);
    let gone = seen.record == ParsedAnnotation::Absent
        || (planned(before).is_some() && planned(seen) != planned(before));
    gone && seen.abort == ParsedAnnotation::Absent
}

fn reboot_state_text(seen: &ObservedNode) -> String {
    let phase = seen.record.get().map_or("", |record| record.phase.as_str());
    let said = explain::leading_condition(seen).map(|condition| format!(": {}", condition.reason));
    format!("node/{} {phase}{}", seen.name, said.unwrap_or_default())
}

fn report_aborted(before: &ObservedNode, after: &ObservedNode) -> Result<(), CommandFailure> {
    let name = &after.name;
    let rebooted =
        after.last_reboot.get().map(|last| last.outcome) == Some(RebootOutcome::Rebooted);
    if rebooted && before.record.get().map(|record| record.phase) == Some(RebootPhase::Returning) {
        print_line(&format!(
            "node/{name} had rebooted already; Dogwatch no longer waits for its return gates"
        ))?;
    } else {
        print_line(&format!("node/{name}: the reboot was aborted"))?;
    }
    for line in describe_undone_work(before, after) {
        print_line(&format!("  {line}"))?;
    }
    Ok(())
}

fn describe_undone_work(before: &ObservedNode, after: &ObservedNode) -> Vec<String> {
    let Some(record) = before.record.get() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    match (record.cordoned_by_us, after.unschedulable) {
        (true, false) => {
            lines.push("uncordoned; evicted pods stay on their new nodes".into());
        }
        (true, true) => {
            lines.push("still cordoned, because somebody else has cordoned it too".into());
        }
        (false, true) => lines.push("still cordoned, because somebody else had cordoned it".into()),
        (false, false) => {}
    }
    if let Some(lease) = &record.lease {
        lines.push(format!("Lease {lease} was released"));
    }
    lines.push(match record.trigger.source.as_str() {
        "request" => format!(
            "the request was removed; to ask again: dogwatch reboot {}",
            after.name
        ),
        source => format!(
            "{} was treated as done; touch it again to request another reboot",
            printable_text(source)
        ),
    });
    lines
}
