//! The commands of a script, as types.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::reboot::RebootConfig;
use dogwatch_kubesim::api::EvictionPolicy;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::ClusterSpec;
use dogwatch_kubesim::world::cluster::WorkloadBudget;
use jiff::{Timestamp, Zoned};

use super::bare_metal_hosts::{BareMetalCommand, HostSetup};
use super::cluster_api_objects::ClusterApiSetup;
use super::condition::ScenarioCondition;
use super::controllers::ControllerCommand;
use super::faults::ScriptedFaultRule;
use super::node_facts::NodeFact;
use super::node_reboot_objects::ScriptedNodeReboot;
use super::perturbation::Perturbation;
use super::remediation_objects::MachineSetup;
use super::schedule_objects::ScriptedSchedule;
use crate::host::{AlertState, RebootCommand};

/// What a script sets up before its `start`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of a script")]
pub struct ScenarioSetup {
    pub cluster: ClusterSpec,
    /// The flags of every coordinator.
    pub config: RebootConfig,
    /// When it begins; `None`: a default time, which the script should not depend on.
    pub start: Option<Zoned>,
    /// Whether the CRD `RebootPolicy` is installed from the start.
    pub policies_installed: bool,
    /// Policies from the start: a name, and a JSON merge patch of an empty `spec`.
    pub policies: Vec<(String, serde_json::Value)>,
    pub labels: Vec<(String, BTreeMap<String, String>)>,
    pub hosts: Vec<HostSetup>,
    /// Whether the kind `PowerRemediation` is installed from the start.
    pub remediations_installed: bool,
    /// Whether the kind `NodeReboot` is installed from the start.
    pub node_reboots_installed: bool,
    /// Whether the kind `RebootSchedule` is installed from the start.
    pub schedules_installed: bool,
    /// Machines of the Machine API from the start.
    pub machines: Vec<MachineSetup>,
    pub cluster_api: ClusterApiSetup,
}

impl Default for ScenarioSetup {
    fn default() -> Self {
        Self {
            cluster: cluster_of_three(),
            config: RebootConfig::default(),
            start: None,
            policies_installed: false,
            policies: Vec::new(),
            labels: Vec::new(),
            hosts: Vec::new(),
            remediations_installed: false,
            node_reboots_installed: false,
            schedules_installed: false,
            machines: Vec::new(),
            cluster_api: ClusterApiSetup::default(),
        }
    }
}

fn cluster_of_three() -> ClusterSpec {
    let mut spec = ClusterSpec::new(3, SimulationSeed(1));
    spec.namespaces = vec![dogwatch_api::DEFAULT_NAMESPACE.into()];
    spec
}

/// One line of a script with a command.
#[derive(Debug, Clone)]
pub struct ScriptLine {
    /// Line number in the script, from 1.
    pub number: usize,
    pub text: String,
    pub command: ScriptCommand,
}

/// A command that runs after `start`.
#[derive(Debug, Clone)]
pub enum ScriptCommand {
    /// Acts on a machine.
    OnHost {
        node: String,
        deed: HostCommand,
    },
    /// A person acts on the cluster.
    User(UserCommand),
    /// Begins or ends a disruption.
    Disruption(ClusterDisruption),
    /// Acts on a controller, or calls one from a host.
    Controller(ControllerCommand),
    /// Acts on a bare-metal host.
    BareMetal(BareMetalCommand),
    /// Changes Prometheus' answers.
    Prometheus(PrometheusChange),
    /// Runs the line once the condition is met.
    When(ScenarioCondition, Box<ScriptLine>),
    /// Runs the line after this time.
    After(Duration, Box<ScriptLine>),
    /// Runs the line now, if the condition is not met.
    Unless(ScenarioCondition, Box<ScriptLine>),
    /// From now on pods may fall below PodDisruptionBudgets: a drain that deletes ignores them.
    BudgetsMayBreak,
    /// Lets time pass until the condition is met.
    WaitUntil {
        condition: ScenarioCondition,
        /// The script fails if it takes longer.
        at_most: Duration,
    },
    /// Lets time pass.
    Run(Duration),
    /// Lets time pass until this moment.
    RunUntil(Timestamp),
    /// Lets this time pass, or less if the condition is met before.
    RunOrUntil(Duration, ScenarioCondition),
    /// Explains a node, or `host/NAME`.
    Explain(String),
    /// The explanation of a node or host must contain this text.
    ExpectExplanation {
        /// The node, or `host/NAME`.
        node: String,
        text: String,
    },
    Expect(ScenarioCondition),
    View(ViewCommand),
}

/// Something that a script does with the view of the fleet.
#[derive(Debug, Clone)]
pub enum ViewCommand {
    /// Shows the view in the timeline.
    Show,
    /// A line of the view must contain this text.
    Expect(String),
    /// Keeps the estimate of this moment.
    NoteEstimate,
    /// What came true differs from the kept estimate by at most so many per cent.
    ExpectEstimate(u32),
}

/// Something that happens on a machine.
#[derive(Debug, Clone)]
pub enum HostCommand {
    /// Creates or updates a sentinel.
    Touch {
        path: String,
        reason: String,
    },
    /// Removes a sentinel.
    Remove {
        path: String,
    },
    /// Makes a sentinel unreadable.
    Break {
        path: String,
        /// The error of reading it.
        why: String,
    },
    /// Kills the coordinator's process; it restarts after one second.
    Kill,
    /// Kills the coordinator's process until `Resume`.
    Hold,
    /// Starts a held process.
    Resume,
    PowerOff,
    PowerOn,
    /// Sets the clock this many seconds ahead of the true time; negative: behind.
    Clock(i64),
    /// Sets what the reboot command does.
    RebootCommand(RebootCommand),
}

/// An action of a person on the cluster.
#[derive(Debug, Clone)]
pub enum UserCommand {
    PatchNode {
        node: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
    /// A program writes a fact on a Node.
    NodeFact {
        node: String,
        fact: NodeFact,
    },
    Request {
        node: String,
        reason: String,
        /// The earliest time, from now.
        not_before: Option<Duration>,
        method: Option<String>,
    },
    /// Changes a BareMetalHost, a Machine or a PowerRemediation.
    PatchObject {
        path: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
    NodeReboot(ScriptedNodeReboot),
    Schedule(ScriptedSchedule),
    CreateObject {
        /// The path of its kind.
        path: String,
        object: serde_json::Value,
    },
    /// Deletes the object with this path.
    DeleteObject(String),
    DeleteNode(String),
    Budget {
        name: String,
        /// Its new rule.
        budget: WorkloadBudget,
    },
    /// Adds an admission policy that refuses evictions.
    RefuseEvictions(EvictionPolicy),
    /// Removes the admission policy of this name.
    AdmitEvictions(String),
    /// Creates a pod without an owner on a node.
    Pod {
        name: String,
        node: String,
        /// How long the pod takes to stop.
        stops_after: Duration,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
    },
    /// The containers of a pod exit with success.
    EndPod(String),
    DeletePod(String),
    /// Creates or changes a policy.
    Policy {
        name: String,
        /// A JSON merge patch of its `spec`.
        patch: serde_json::Value,
    },
    DeletePolicy(String),
    /// Ends the halt of a policy's rollout, as `dogwatch resume` does.
    ResumeRollout(String),
    /// Installs the CRD `RebootPolicy`, or removes it with all its objects.
    PoliciesInstalled(bool),
    /// Asks to abort a reboot.
    Abort {
        node: String,
        reason: String,
    },
}

/// A change of Prometheus' answers.
#[derive(Debug, Clone)]
pub enum PrometheusChange {
    /// Makes Prometheus unreachable, or reachable again.
    Away(bool),
    /// Sets the state of an alert; `None`: no longer active.
    Alert(String, Option<AlertState>),
    /// Sets the result of a query; `None`: an empty result.
    Found(String, Option<String>),
}

#[derive(Debug, Clone)]
pub enum ClusterDisruption {
    /// Partitions a node's coordinator and kubelet, or a controller.
    Partition {
        node: String,
        time: Duration,
        /// Partitions only the coordinator.
        coordinator_only: bool,
    },
    /// Makes the API server unreachable for all.
    ApiDown(Duration),
    /// Ends partitions.
    EndPartition(Vec<String>),
    /// Compacts the API server's history.
    Compact,
    /// Cuts the watches of a node's coordinator, or of a controller.
    CutWatches(String),
    /// Injects a fault into API calls.
    Fault(ScriptedFaultRule),
    /// Perturbs one event, read or write, counted from the process' first.
    Perturb(Perturbation),
}

impl ScriptCommand {
    /// Whether the timeline shows the line: waits and expectations are left out.
    pub fn is_shown_in_timeline(&self) -> bool {
        !matches!(
            self,
            ScriptCommand::WaitUntil { .. }
                | ScriptCommand::Run(_)
                | ScriptCommand::RunUntil(_)
                | ScriptCommand::RunOrUntil(..)
                | ScriptCommand::Unless(..)
                | ScriptCommand::ExpectExplanation { .. }
                | ScriptCommand::Expect(_)
                | ScriptCommand::View(ViewCommand::Expect(_))
                | ScriptCommand::BudgetsMayBreak
        )
    }
}
