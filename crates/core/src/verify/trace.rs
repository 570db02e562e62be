//! The decision log: one JSON object a line, written by each process, read by `dogwatch
//! verify-trace`.

use dogwatch_api::label;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::audit::MAX_LINE_BYTES;
use super::history::{ClusterWrite, LeaseState, NodeState, WriteSource, WrittenObject};
use crate::lock::ObservedLease;
use crate::reboot::ObservedNode;

/// The version of the line format. A reader refuses lines of a newer one. 2 added the controller's
/// lines.
pub const TRACE_VERSION: u32 = 2;

/// Decisions of a coordinator about its node.
pub const REBOOT_DOMAIN: &str = "reboot";
/// Decisions of the controller about a host's power.
pub const POWER_DOMAIN: &str = "power";
/// Decisions of the controller about a remediation.
pub const REMEDIATION_DOMAIN: &str = "remediation";

/// One line of a decision log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceLine {
    #[serde(rename = "v")]
    pub version: u32,
    /// By the process's wall clock.
    pub at: Timestamp,
    /// Seconds by its monotonic clock.
    pub mono: f64,
    /// The process: a coordinator's run id, or the controller's process.
    pub run: String,
    /// What decided: [`REBOOT_DOMAIN`], [`POWER_DOMAIN`] or [`REMEDIATION_DOMAIN`].
    pub domain: String,
    /// What it decided about: `node/NAME`, `host/NAMESPACE/NAME`, or a remediation.
    pub key: String,
    #[serde(flatten)]
    pub event: TraceEvent,
}

impl TraceLine {
    /// The line as it is written, without its end.
    ///
    /// # Panics
    /// Never: a line has only texts and finite numbers.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and finite numbers")
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "event",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum TraceEvent {
    /// A decision that differs from the one before.
    Decided {
        reason: String,
        /// What it does, one word for each action.
        actions: Vec<String>,
        /// What it was made from.
        seen: TraceSeen,
    },
    /// The API server has accepted a write of the Node.
    NodeWritten {
        name: String,
        /// The resourceVersion that the write relied on.
        on: String,
        /// The resourceVersion that it made.
        made: String,
        after: Box<NodeState>,
    },
    /// The API server has accepted a write of a Lease.
    LeaseWritten {
        name: String,
        on: String,
        made: String,
        after: Box<LeaseState>,
    },
    /// The reboot command is started.
    CommandStarted { attempt: u32, boot_id: String },
    /// The controller controls the power of all hosts from now on. What it logged before belongs to
    /// an earlier term.
    TermBegun {
        /// `--power-confirm-interval`, in seconds.
        confirm_interval: f64,
    },
    /// A reading of a level of a host's BMCs: each one that says off, and each that differs from the
    /// one before.
    PowerRead {
        level: usize,
        /// When the BMC was asked, by the process's monotonic clock.
        asked: f64,
        /// `On`, `PoweringOn`, `PoweringOff`, `Off`, or the class of the fault.
        reading: String,
    },
    /// The API server has accepted a host's status with this power command.
    PowerCommandWritten { id: String },
    /// A power command is sent to a BMC.
    PowerCommandSent {
        id: String,
        /// As in the host's status.
        command: String,
        level: usize,
    },
    /// A power command was answered, or has failed.
    PowerCommandEnded { id: String, end: String },
    /// The controller releases a Node: it deletes it, or taints it as out of service.
    ReleaseBegun {
        /// `host/NAMESPACE/NAME`.
        host: String,
        node: String,
        node_uid: String,
        /// Who switched the host off, or confirms it, as in a request's status.
        proof: String,
    },
    /// Lines that were lost because the disk was slower than the decisions.
    Dropped { lines: u64 },
}

/// The proof of a release that a person confirms.
pub(super) const PROOF_BY_PERSON: &str = "Person";

/// What the rules need of what a coordinator sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceSeen {
    pub node_version: Option<String>,
    pub boot_id: Option<String>,
    pub phase: Option<String>,
    /// Each Lease with its resourceVersion and holder.
    pub leases: Vec<(String, String, Option<String>)>,
    /// The resourceVersion of the Lease that the count was made for.
    pub counted_for: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceLineError {
    #[error("line {line} is no line of a decision log: {why}")]
    Unreadable { line: usize, why: String },
    #[error(
        "line {line} has version {version} of the format; this program knows up to {TRACE_VERSION}: use a newer one"
    )]
    NewerFormat { line: usize, version: u64 },
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes: this is no decision log")]
    TooLong { line: usize },
}

/// Reads one line; `None` for an empty one.
pub fn read_trace_line(line: usize, text: &str) -> Result<Option<TraceLine>, TraceLineError> {
    if text.len() > MAX_LINE_BYTES {
        return Err(TraceLineError::TooLong { line });
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let unreadable = |error: serde_json::Error| TraceLineError::Unreadable {
        line,
        why: error.to_string(),
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(unreadable)?;
    let version = value
        .get("v")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0);
    if version > u64::from(TRACE_VERSION) {
        return Err(TraceLineError::NewerFormat { line, version });
    }
    serde_json::from_value(value).map(Some).map_err(unreadable)
}

/// The write that a line tells of.
pub fn write_of_trace_line(file: usize, line: usize, trace: &TraceLine) -> Option<ClusterWrite> {
    let (on, made, object) = match &trace.event {
        TraceEvent::NodeWritten {
            name,
            on,
            made,
            after,
        } => {
            let (name, after) = (name.clone(), Some(after.clone()));
            (on, made, WrittenObject::Node { name, after })
        }
        TraceEvent::LeaseWritten {
            name,
            on,
            made,
            after,
        } => {
            let (name, after) = (name.clone(), Some(after.clone()));
            (on, made, WrittenObject::Lease { name, after })
        }
        TraceEvent::Decided { .. }
        | TraceEvent::CommandStarted { .. }
        | TraceEvent::TermBegun { .. }
        | TraceEvent::PowerRead { .. }
        | TraceEvent::PowerCommandWritten { .. }
        | TraceEvent::PowerCommandSent { .. }
        | TraceEvent::PowerCommandEnded { .. }
        | TraceEvent::ReleaseBegun { .. }
        | TraceEvent::Dropped { .. } => return None,
    };
    Some(ClusterWrite {
        version: made.parse().ok()?,
        relies_on: Some(on.parse().ok()?),
        from_decision_log: true,
        object,
        source: source_of_trace_line(file, line, trace),
    })
}

pub(super) fn source_of_trace_line(file: usize, line: usize, trace: &TraceLine) -> WriteSource {
    WriteSource {
        file,
        line,
        who: trace.run.clone(),
        at: trace.at.to_string(),
    }
}

/// The part of a Node that the rules need, without texts that people wrote.
pub fn node_state(node: &ObservedNode) -> NodeState {
    let mut record = node.record.get().cloned();
    if let Some(record) = &mut record {
        record.trigger.reason.clear();
        record.message.clear();
    }
    let mut last_reboot = node.last_reboot.get().cloned();
    if let Some(last) = &mut last_reboot {
        last.trigger.reason.clear();
    }
    NodeState {
        uid: node.uid.clone(),
        unschedulable: node.unschedulable,
        boot_id: node.boot_id.as_ref().map(ToString::to_string),
        api_lock: node.api_lock,
        api_lease: None,
        ignored: node
            .labels
            .get(label::IGNORE)
            .is_some_and(|value| value == "true"),
        record,
        last_reboot,
    }
}

pub fn lease_state(lease: &ObservedLease) -> LeaseState {
    LeaseState {
        holder: lease.holder.as_ref().map(ToString::to_string),
        record: lease.record.clone(),
        remediation: None,
    }
}
