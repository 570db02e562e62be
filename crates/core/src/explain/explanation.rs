//! The explanation of a node, and the lines of every explanation.

use serde::Serialize;

use super::RemediationExplanation;
use super::advice::REBOOT_ADVICE_PREFIX;

/// Why a node is in its present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    pub node: String,
    pub summary: String,
    /// From the trigger to what the node waits for.
    pub chain: Vec<ExplanationLine>,
    /// What a person can do; empty when waiting is all.
    pub advice: Vec<String>,
}

impl NodeExplanation {
    /// Adapts the explanation for use below those of the node's remediations: while one is under
    /// way, it covers planned reboots only and gives no advice to begin one.
    #[must_use]
    pub fn beside_remediations(self, remediations: &[RemediationExplanation]) -> Self {
        if !remediations.iter().any(|it| it.under_way) {
            return self;
        }
        let mut planned = self;
        planned.summary = planned
            .summary
            .replace("nothing is under way", "no planned reboot is under way");
        planned
            .advice
            .retain(|text| !text.starts_with(REBOOT_ADVICE_PREFIX));
        planned
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplanationLine {
    pub topic: ExplanationTopic,
    pub text: String,
}

/// What a line of an explanation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExplanationTopic {
    /// The trigger or request of the reboot.
    Asked,
    Phase,
    /// Reason and message of the node's own decision.
    Says,
    /// The policy that applies to the node.
    Policy,
    Pause,
    /// The policy's windows, and the interval between two reboots.
    Window,
    Gate,
    /// The holders of the Leases.
    Lock,
    /// The queue for the lock.
    Order,
    /// The group's unavailable nodes, and how many it may have.
    Budget,
    Drain,
    Boot,
    /// When the wait ends at the latest.
    Deadline,
    /// The healer's decision, and when it acts.
    Healer,
    /// The result of the last reboot.
    Last,
    /// A warning condition that is `True`.
    Condition,
    /// A cordon that Dogwatch has not set.
    Cordon,
    Coordinator,
    /// The other controller that owns the host.
    Whose,
    /// The Node that runs on a host.
    Node,
    /// The power that a host's BMC reported.
    Power,
    /// The proof that a host is off.
    Off,
    /// The host of a remediation.
    Host,
    Guard,
    Key,
    /// What a host keeps of a deleted Node.
    Kept,
    Step,
    /// The remediation recorded on a host.
    Remediation,
    /// The newest command to a host's BMC.
    Command,
    /// A host's power devices, and whether power control works.
    Bmc,
    Controller,
    /// The times of a schedule.
    When,
    /// The targets of a schedule.
    Whom,
    /// The result for one target of a schedule.
    Target,
}

impl ExplanationTopic {
    pub fn as_str(self) -> &'static str {
        match self {
            ExplanationTopic::Asked => "asked",
            ExplanationTopic::Phase => "phase",
            ExplanationTopic::Says => "says",
            ExplanationTopic::Policy => "policy",
            ExplanationTopic::Pause => "pause",
            ExplanationTopic::Window => "window",
            ExplanationTopic::Gate => "gate",
            ExplanationTopic::Lock => "lock",
            ExplanationTopic::Order => "order",
            ExplanationTopic::Budget => "budget",
            ExplanationTopic::Drain => "drain",
            ExplanationTopic::Boot => "boot",
            ExplanationTopic::Deadline => "deadline",
            ExplanationTopic::Healer => "healer",
            ExplanationTopic::Last => "last",
            ExplanationTopic::Condition => "condition",
            ExplanationTopic::Cordon => "cordon",
            ExplanationTopic::Coordinator => "coordinator",
            ExplanationTopic::Whose => "whose",
            ExplanationTopic::Node => "node",
            ExplanationTopic::Power => "power",
            ExplanationTopic::Off => "off",
            ExplanationTopic::Host => "host",
            ExplanationTopic::Guard => "guard",
            ExplanationTopic::Key => "key",
            ExplanationTopic::Kept => "kept",
            ExplanationTopic::Step => "step",
            ExplanationTopic::Remediation => "remediation",
            ExplanationTopic::Command => "command",
            ExplanationTopic::Bmc => "bmc",
            ExplanationTopic::Controller => "controller",
            ExplanationTopic::When => "when",
            ExplanationTopic::Whom => "whom",
            ExplanationTopic::Target => "target",
        }
    }
}
