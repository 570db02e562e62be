//! How a remediation is asked for, and the steps that it takes then.

use serde_json::Value;

/// How it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A Machine is marked.
    Machine,
    /// A Node is marked that its host names.
    Node,
    /// A `PowerRemediation` that deletes the Node.
    Delete,
    /// A `PowerRemediation` that taints it.
    Taint,
}

use Form::{Delete, Machine, Node, Taint};

/// A step: what a leader says right before it.
#[derive(Clone, Copy)]
pub struct Step {
    says: &'static str,
    command: Option<&'static str>,
}

/// The last step of a request that is taken away.
pub const LETS_GO: &str = "takes the finalizer from a request";

const REQUESTS: &[Form] = &[Delete, Taint];
const DELETES: &[Form] = &[Machine, Node, Delete];
const ALL: &[Form] = &[Machine, Node, Delete, Taint];

/// More or less in this order, and who takes them.
const STEPS: [(Step, &[Form]); 17] = [
    (says("puts the finalizer on a request"), REQUESTS),
    (says("writes a request's status"), REQUESTS),
    (
        says("takes the Lease of a node that is to be remediated"),
        ALL,
    ),
    (says("marks a Node as being fenced"), ALL),
    (says("adds a reboot key: the host goes off"), ALL),
    (says("writes what it is about to command"), ALL),
    (commands("PowerOff"), ALL),
    (says("keeps what has to come back on a Node"), DELETES),
    (
        says("releases the workloads of a node that is proved off"),
        ALL,
    ),
    (
        says("removes the need of remediation from a Machine"),
        &[Machine],
    ),
    (says("removes a reboot key: the host comes back"), ALL),
    (commands("PowerOn"), ALL),
    (says("brings back what was on a Node"), DELETES),
    (says("drops what was kept of a Node"), DELETES),
    (says("lifts the taint out-of-service"), &[Taint]),
    (says("writes down a step of a remediation"), ALL),
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
        says: "commands a BMC",
        command: Some(command),
    }
}

impl Step {
    /// Whether this line of a leader's log says it. One that has read no power yet first lets go of a node that is
    /// not held off: that is no step.
    pub fn is_said(&self, line: &Value) -> bool {
        let commands = |command| line["command"] == command;
        let is_it = line["message"] == self.says && self.command.is_none_or(commands);
        is_it && line["reason"] != "PowerUnknown"
    }
}

impl Form {
    /// Its steps, in their order.
    pub fn steps(self) -> Vec<Step> {
        let of_it = STEPS.iter().filter(|(_, forms)| forms.contains(&self));
        of_it.map(|(step, _)| *step).collect()
    }

    pub fn is_request(self) -> bool {
        REQUESTS.contains(&self)
    }

    /// Whether the Node stays, and is tainted.
    pub fn taints(self) -> bool {
        self == Taint
    }
}
