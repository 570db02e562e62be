//! What an explanation says.

use serde::Serialize;

use super::RemedyExplanation;
use super::advice::TO_REBOOT;

/// Why a node stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Which node.
    pub node: String,
    /// One sentence.
    pub summary: String,
    /// From what asked to what is waited for.
    pub chain: Vec<Line>,
    /// What a person can do; empty where there is nothing but to wait.
    pub advice: Vec<String>,
}

impl Explanation {
    /// The same where remediations of the node are told first: with one under way, this is about planned reboots
    /// alone, and nobody is told to begin one.
    #[must_use]
    pub fn beside(self, remediations: &[RemedyExplanation]) -> Self {
        if !remediations.iter().any(|it| it.under_way) {
            return self;
        }
        let mut planned = self;
        planned.summary = planned
            .summary
            .replace("nothing is under way", "no planned reboot is under way");
        planned.advice.retain(|text| !text.starts_with(TO_REBOOT));
        planned
    }
}

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What it is about.
    pub topic: Topic,
    /// A sentence.
    pub text: String,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// What asked for the reboot.
    Asked,
    /// The phase, and since when.
    Phase,
    /// What the node's own decision says.
    Says,
    /// Which policy rules the node.
    Policy,
    /// That policy's pause.
    Pause,
    /// Its windows, and the interval between two reboots.
    Window,
    /// What it wants to be so before a reboot begins.
    Gate,
    /// Who holds which Lease.
    Lock,
    /// Who waits for it, in which order.
    Order,
    /// Who of the group is out, and how many may be.
    Budget,
    /// What the drain waits for.
    Drain,
    /// The boot ids.
    Boot,
    /// When the wait ends at the latest.
    Deadline,
    /// What the healer decides about it, and when.
    Healer,
    /// How the last reboot ended.
    Last,
    /// A condition that is `True` beside those.
    Condition,
    /// The cordon, where it is not Dogwatch's.
    Cordon,
    /// The node's coordinator.
    Coordinator,
    /// Whose host it is, where it is not Dogwatch's.
    Whose,
    /// The Node that a host carries.
    Node,
    /// What a host's BMC said of its power.
    Power,
    /// The proof that a host is off.
    Off,
    /// The host that a remediation is about.
    Host,
    /// What holds a remediation back.
    Guard,
    /// A remediation's key on its host.
    Key,
    /// What a host keeps of a Node that was deleted.
    Kept,
    /// A step of a remediation.
    Step,
    /// The remediation that a host remembers.
    Remediation,
    /// The newest command to a host's BMC.
    Command,
    /// The way to a host's power.
    Bmc,
    /// Who leads the controllers.
    Controller,
    /// At which times a schedule issues.
    When,
    /// Whom a schedule asks.
    Whom,
    /// What came of one target of a schedule.
    Target,
}

impl Topic {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Topic::Asked => "asked",
            Topic::Phase => "phase",
            Topic::Says => "says",
            Topic::Policy => "policy",
            Topic::Pause => "pause",
            Topic::Window => "window",
            Topic::Gate => "gate",
            Topic::Lock => "lock",
            Topic::Order => "order",
            Topic::Budget => "budget",
            Topic::Drain => "drain",
            Topic::Boot => "boot",
            Topic::Deadline => "deadline",
            Topic::Healer => "healer",
            Topic::Last => "last",
            Topic::Condition => "condition",
            Topic::Cordon => "cordon",
            Topic::Coordinator => "coordinator",
            Topic::Whose => "whose",
            Topic::Node => "node",
            Topic::Power => "power",
            Topic::Off => "off",
            Topic::Host => "host",
            Topic::Guard => "guard",
            Topic::Key => "key",
            Topic::Kept => "kept",
            Topic::Step => "step",
            Topic::Remediation => "remediation",
            Topic::Command => "command",
            Topic::Bmc => "bmc",
            Topic::Controller => "controller",
            Topic::When => "when",
            Topic::Whom => "whom",
            Topic::Target => "target",
        }
    }
}
