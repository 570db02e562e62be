//! Writes the coordinator's decisions and accepted writes as lines of a decision log
//! ([`dogwatch_core::verify::trace`]), beside the sink that it had.

use std::path::Path;
use std::sync::Mutex;

use dogwatch_core::lock::ObservedLease;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{
    LastReboot, ObservedNode, OwnNodeState, RebootAction, RebootDecision, RebootSnapshot,
};
use dogwatch_core::verify::trace::{REBOOT_DOMAIN, TraceEvent, TraceSeen, lease_state, node_state};
use dogwatch_runtime::decision_log::DecisionLogWriter;
use dogwatch_runtime::mutex::lock_ignoring_poison;

use crate::agent::DecisionSink;
use crate::clock::ProcessClock;

/// A sink that writes lines, and passes everything on to another sink.
pub struct LoggedDecisions<S> {
    inner: S,
    file: DecisionLogWriter,
    /// `node/NAME`.
    key: String,
    /// The last decision: only changes are written.
    last: Mutex<Option<TraceEvent>>,
}

impl<S: DecisionSink> LoggedDecisions<S> {
    pub fn open(
        inner: S,
        path: &Path,
        clock: ProcessClock,
        run: String,
        node: &NodeName,
    ) -> std::io::Result<Self> {
        let file = DecisionLogWriter::open(path, clock, run)?;
        Ok(Self {
            inner,
            file,
            key: format!("node/{node}"),
            last: Mutex::new(None),
        })
    }

    fn push_event(&self, event: TraceEvent) {
        self.file.push_event(REBOOT_DOMAIN, &self.key, event);
    }
}

impl<S: DecisionSink> DecisionSink for LoggedDecisions<S> {
    fn on_decision(&self, seen: &RebootSnapshot, decision: &RebootDecision) {
        let event = TraceEvent::Decided {
            reason: decision.cause.reason.to_string(),
            actions: decision.actions.iter().map(name_action).collect(),
            seen: trace_seen(seen),
        };
        let mut last = lock_ignoring_poison(&self.last);
        if last.as_ref() != Some(&event) {
            *last = Some(event.clone());
            self.push_event(event);
        }
        drop(last);
        self.inner.on_decision(seen, decision);
    }

    fn on_api_error(&self, error: &dogwatch_k8s::Error) {
        self.inner.on_api_error(error);
    }

    fn on_reboot_finished(&self, last: &LastReboot) {
        self.inner.on_reboot_finished(last);
    }

    fn on_node_written(&self, before: &ObservedNode, after: &ObservedNode) {
        self.push_event(TraceEvent::NodeWritten {
            name: after.name.to_string(),
            on: before.resource_version.clone(),
            made: after.resource_version.clone(),
            after: Box::new(node_state(after)),
        });
        self.inner.on_node_written(before, after);
    }

    fn on_lease_written(&self, before: &ObservedLease, after: &ObservedLease) {
        self.push_event(TraceEvent::LeaseWritten {
            name: after.name.clone(),
            on: before.resource_version.clone(),
            made: after.resource_version.clone(),
            after: Box::new(lease_state(after)),
        });
        self.inner.on_lease_written(before, after);
    }

    fn on_command_starting(&self, seen: &RebootSnapshot, attempt: u32) {
        let boot_id = seen.host.boot_id.as_ref();
        self.push_event(TraceEvent::CommandStarted {
            attempt,
            boot_id: boot_id.map(ToString::to_string).unwrap_or_default(),
        });
        self.inner.on_command_starting(seen, attempt);
    }
}

fn name_action(action: &RebootAction) -> String {
    let name = match action {
        RebootAction::PatchNode(_) => "patchNode",
        RebootAction::Bid { .. } => "bid",
        RebootAction::Release { .. } => "release",
        RebootAction::Break { .. } => "break",
        RebootAction::Reboot { .. } => "reboot",
        RebootAction::Stop { .. } => "stop",
    };
    name.to_owned()
}

fn trace_seen(seen: &RebootSnapshot) -> TraceSeen {
    let node = match &seen.node {
        OwnNodeState::There(node) => Some(node),
        OwnNodeState::NotYet | OwnNodeState::Gone => None,
    };
    let record = node.and_then(|node| node.record.get());
    let leases = seen.lock.leases.iter().flatten();
    let lease = |lease: &ObservedLease| {
        let holder = lease.holder.as_ref().map(ToString::to_string);
        (lease.name.clone(), lease.resource_version.clone(), holder)
    };
    let count = seen.lock.count.as_ref();
    TraceSeen {
        node_version: node.map(|node| node.resource_version.clone()),
        boot_id: seen.host.boot_id.as_ref().ok().map(ToString::to_string),
        phase: record.map(|record| record.phase.as_str().to_owned()),
        leases: leases.map(lease).collect(),
        counted_for: count.map(|count| count.count.for_resource_version.clone()),
    }
}
