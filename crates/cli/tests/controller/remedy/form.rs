//! The ways to request a remediation, and the steps of each.

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A Machine is marked.
    Machine,
    /// A Node is marked whose host names it.
    Node,
    /// A `PowerRemediation` that deletes the Node.
    Delete,
    /// A `PowerRemediation` that taints the Node.
    Taint,
}

use Form::{Delete, Machine, Node, Taint};

/// A step: the message that a leader logs right before it.
#[derive(Clone, Copy)]
pub struct Step {
    says: &'static str,
    command: Option<&'static str>,
}

/// The last step after a request was deleted.
pub const LETS_GO: &str = "removes the finalizer from a request";

const REQUESTS: &[Form] = &[Delete, Taint];
const DELETES: &[Form] = &[Machine, Node, Delete];
const ALL: &[Form] = &[Machine, Node, Delete, Taint];

/// The steps in roughly this order, and the forms that have them.
const STEPS: [(Step, &[Form]); 17] = [
    (says("adds the finalizer to a request"), REQUESTS),
    (says("writes a request's status"), REQUESTS),
    (
        says("takes the Lease of a node that is to be remediated"),
        ALL,
    ),
    (says("marks a Node as being fenced"), ALL),
    (says("adds a key: the host is powered off"), ALL),
    (says("writes the pending command before it is sent"), ALL),
    (commands("PowerOff"), ALL),
    (
        says("saves the labels and annotations to restore on a Node"),
        DELETES,
    ),
    (
        says("releases the workloads of a node whose host is proved off"),
        ALL,
    ),
    (
        says("removes the request for remediation from a Machine"),
        &[Machine],
    ),
    (says("removes a key: the host is powered on"), ALL),
    (commands("PowerOn"), ALL),
    (says("restores labels and annotations of a Node"), DELETES),
    (
        says("deletes the saved labels and annotations of a Node"),
        DELETES,
    ),
    (says("removes the taint out-of-service"), &[Taint]),
    (says("records a step of a remediation"), ALL),
    (says("frees the Lease of a node"), ALL),
];

const fn says(says: &'static str) -> Step {
    Step {
        says,
        command: None,
    }
}

const fn commands(command: &'static str) -> Step {
    Step {
        says: "sends a power command to a BMC",
        command: Some(command),
    }
}

impl Step {
    /// Whether this log line announces the step. A leader that has read no power yet may first log
    /// that it releases a node that is not held off; that is no step.
    pub fn is_said(&self, line: &Value) -> bool {
        let commands = |command| line["command"] == command;
        let is_it = line["message"] == self.says && self.command.is_none_or(commands);
        is_it && line["reason"] != "PowerUnknown"
    }
}

impl Form {
    /// The steps of this form, in their order.
    pub fn steps(self) -> Vec<Step> {
        let of_it = STEPS.iter().filter(|(_, forms)| forms.contains(&self));
        of_it.map(|(step, _)| *step).collect()
    }

    pub fn is_request(self) -> bool {
        REQUESTS.contains(&self)
    }

    /// Whether the Node stays and gets a taint.
    pub fn taints(self) -> bool {
        self == Taint
    }
}
