//! Follows a node until it is held, or until it is back from a hold.

use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_api::node_reboot::NodeRebootPhase;
use dogwatch_core::explain::{self, FleetSnapshot, NodeStatusRow};
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::is_past_joining;
use dogwatch_core::reboot::{ObservedNode, ParsedAnnotation, RebootPhase};
use dogwatch_k8s::Error;
use dogwatch_k8s::fleet::FleetWatch;

use super::super::reboot::request_watch::{RequestState, RequestWatch};
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::follow::{FollowedRequest, ProgressLine, SignalListener, follow_until_done};
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowGoal {
    Held,
    Released,
}

/// A watch that was started before the request, so that it misses no step.
pub struct HoldFollower {
    followed: FollowedHold,
    interrupts: SignalListener,
}

struct FollowedHold {
    watch: FleetWatch,
    node: NodeName,
    goal: FollowGoal,
    progress: ProgressLine,
    /// The NodeReboot that asks for the hold; `None`: an annotation does.
    node_reboot: Option<FollowedObject>,
    /// The node was seen with the annotation of a request.
    has_request: bool,
}

enum FollowEnd {
    Held,
    NotHeld(String),
    Returned,
}

struct FollowedObject {
    name: String,
    watch: RequestWatch,
}

impl HoldFollower {
    pub async fn start_watching(
        connected: &ConnectedCluster,
        node: &NodeName,
        goal: FollowGoal,
    ) -> Result<Self, CommandFailure> {
        let interrupts = SignalListener::listen_for_signals()?;
        let mut watch = connected.fleet.watch_fleet();
        while watch.current_fleet().is_none() {
            let changed = watch.wait_for_change().await;
            changed.map_err(|error| connected.api_failure("watch Nodes and Leases", &error))?;
        }
        let followed = FollowedHold {
            watch,
            node: node.clone(),
            goal,
            progress: ProgressLine::default(),
            node_reboot: None,
            has_request: false,
        };
        Ok(Self {
            followed,
            interrupts,
        })
    }

    /// The hold is that of this NodeReboot, and no other's.
    pub fn follow_node_reboot(&mut self, connected: &ConnectedCluster, name: String) {
        let watch = RequestWatch::start_watching(connected);
        self.followed.node_reboot = Some(FollowedObject { name, watch });
    }

    /// Prints each step.
    pub async fn follow_until_done(
        mut self,
        connected: &ConnectedCluster,
        timeout: Option<Duration>,
    ) -> Result<(), CommandFailure> {
        follow_until_done(connected, &mut self.followed, timeout, self.interrupts).await
    }
}

impl FollowedRequest for FollowedHold {
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        let objects = self.node_reboot.as_mut().map(|object| &mut object.watch);
        tokio::select! {
            () = RequestWatch::wait_for_change(objects) => Ok(()),
            changed = self.watch.wait_for_change() => {
                changed.map_err(|error| ("watch Nodes and Leases".to_owned(), error))
            }
        }
    }

    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure> {
        if let Some(object) = &mut self.node_reboot {
            object.watch.report_error();
        }
        match self.watch.current_fleet() {
            Some(fleet) => self.observe_node(&fleet),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let length = dogwatch_core::duration::format_duration(timeout);
        let (node, state) = (&self.node, printable_text(self.progress.last_state()));
        let text = match self.goal {
            FollowGoal::Held => {
                format!("node {node} is not held within {length}; the request stays. {state}")
            }
            FollowGoal::Released => format!("node {node} is not back within {length}. {state}"),
        };
        CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain {node}"))
    }

    fn interrupt_failure(&self) -> CommandFailure {
        let node = &self.node;
        let failure = |text: String| CommandFailure::new(CliExitCode::Interrupted, text);
        match self.goal {
            FollowGoal::Held => failure(format!(
                "stopped following; the request to hold {node} stays"
            ))
            .with_next_step(format!("to withdraw it: dogwatch release {node}")),
            FollowGoal::Released => failure(format!("stopped following; {node} is released")),
        }
    }
}

impl FollowedHold {
    fn observe_node(&mut self, fleet: &FleetSnapshot) -> Result<ControlFlow<()>, CommandFailure> {
        let name = &self.node;
        let Some(node) = fleet.find_node(name) else {
            let text = format!("node {name} was deleted");
            return Err(CommandFailure::new(CliExitCode::Failed, text));
        };
        let is_idle = node.record == ParsedAnnotation::Absent && node.request_fingerprint.is_none();
        let end = match (self.goal, &self.node_reboot) {
            (FollowGoal::Released, _) => is_idle.then_some(FollowEnd::Returned),
            (FollowGoal::Held, Some(object)) => object.find_end(node),
            (FollowGoal::Held, None) if is_held(node) => Some(FollowEnd::Held),
            (FollowGoal::Held, None) => (is_idle && self.has_request)
                .then(|| FollowEnd::NotHeld("the request was withdrawn".to_owned())),
        };
        match end {
            Some(FollowEnd::Held) => {
                print_line(&format!("node/{name} is held"))?;
                return Ok(ControlFlow::Break(()));
            }
            Some(FollowEnd::Returned) => {
                print_line(&format!("node/{name} is back"))?;
                return Ok(ControlFlow::Break(()));
            }
            Some(FollowEnd::NotHeld(why)) => {
                let text = format!("node {name} is not held: {why}");
                return Err(CommandFailure::new(CliExitCode::Failed, text));
            }
            None => {}
        }
        self.has_request |= node.request_fingerprint.is_some();
        let status = explain::fleet_status(fleet, current_time());
        let row = status.nodes.iter().find(|row| row.name == name.as_str());
        self.report_row(row)?;
        Ok(ControlFlow::Continue(()))
    }

    fn report_row(&mut self, row: Option<&NodeStatusRow>) -> Result<(), CommandFailure> {
        let Some((phase, reason)) = row.and_then(|row| Some((row.phase?, row.reason.as_deref()?)))
        else {
            return Ok(());
        };
        let message = row
            .and_then(|row| row.message.as_deref())
            .unwrap_or_default();
        let state = format!("{phase}: {reason}");
        let line = format!("node/{} {state}: {message}", self.node);
        self.progress.print_new(state, &printable_text(&line))
    }
}

impl FollowedObject {
    /// `None` while it goes on.
    fn find_end(&self, node: &ObservedNode) -> Option<FollowEnd> {
        let name = &self.name;
        match self.watch.state_of(name) {
            RequestState::NotListed => None,
            RequestState::Deleted => {
                let text = format!("nodereboot/{name} was deleted");
                Some(FollowEnd::NotHeld(text))
            }
            RequestState::Ended(ended) => {
                let (reason, message) = (&ended.reason, printable_text(&ended.message));
                let text = format!("nodereboot/{name} has ended: {reason}: {message}");
                Some(FollowEnd::NotHeld(text))
            }
            RequestState::Open(hold) => {
                let is_withdrawn = hold.deleting || hold.plan.as_ref().is_ok_and(|it| it.cancel);
                let is_of_object = hold.status.phase == NodeRebootPhase::Held
                    && !is_withdrawn
                    && !is_past_joining(hold, node);
                (is_of_object && is_held(node)).then_some(FollowEnd::Held)
            }
        }
    }
}

fn is_held(node: &ObservedNode) -> bool {
    let phase = node.record.get().map(|record| record.phase);
    phase == Some(RebootPhase::Holding) && node.unschedulable
}
