//! What a script can say.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::reboot::Config;
use jiff::{Timestamp, Zoned};

use super::condition::Condition;
use super::controllers::ControllerDeed;
use super::faults::Rule;
use super::metal::{HostSetup, MetalDeed};
use crate::api::EvictionPolicy;
use crate::host::{Alert, RebootCommand};
use crate::seed::Seed;
use crate::world::ClusterSpec;
use crate::world::cluster::Budget;

/// What there is before anything happens.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The cluster.
    pub cluster: ClusterSpec,
    /// What every coordinator is told.
    pub config: Config,
    /// When it begins; `None`: at a moment that no script should care about.
    pub start: Option<Zoned>,
    /// Whether the kind `RebootPolicy` is installed from the start.
    pub policies_installed: bool,
    /// Policies from the start: a name, and a JSON merge patch of an empty `spec`.
    pub policies: Vec<(String, serde_json::Value)>,
    /// Labels of nodes from the start.
    pub labels: Vec<(String, BTreeMap<String, String>)>,
    /// Bare-metal hosts from the start.
    pub hosts: Vec<HostSetup>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cluster: ClusterSpec::new(3, Seed(1)),
            config: Config::default(),
            start: None,
            policies_installed: false,
            policies: Vec::new(),
            labels: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

/// One line that does something.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its number in the script, from 1.
    pub number: usize,
    /// As it was written.
    pub text: String,
    /// What it says.
    pub command: Command,
}

/// Something to do once the cluster runs.
#[derive(Debug, Clone)]
pub enum Command {
    /// Something happens on a machine.
    OnHost {
        /// On which node.
        node: String,
        /// What.
        deed: Deed,
    },
    /// A person does something to the cluster.
    Person(Wish),
    /// Something goes wrong, or ends to.
    Trouble(Trouble),
    /// Something happens to a controller, or a host calls one.
    Controller(ControllerDeed),
    /// Something happens to a bare-metal host.
    Metal(MetalDeed),
    /// Prometheus says something else.
    Prometheus(PrometheusChange),
    /// Once this is so, that is done.
    When(Condition, Box<Line>),
    /// After this time, that is done.
    After(Duration, Box<Line>),
    /// Budgets may be broken from now on: a drain that deletes asks nobody.
    BudgetsMayBreak,
    /// Time passes until this is so.
    WaitUntil {
        /// What.
        condition: Condition,
        /// Longer than this is a failure.
        at_most: Duration,
    },
    /// Time passes.
    Run(Duration),
    /// Time passes until this moment.
    RunUntil(Timestamp),
    /// Explains a node, or `host/NAME`.
    Explain(String),
    /// The explanation of a node or host must say this.
    Explained {
        /// Of which.
        node: String,
        /// Part of one of its lines.
        text: String,
    },
    /// This must be so.
    Expect(Condition),
}

/// What happens on a machine.
#[derive(Debug, Clone)]
pub enum Deed {
    /// A sentinel is created, or touched anew.
    Touch {
        /// Which.
        path: String,
        /// What it says.
        reason: String,
    },
    /// A sentinel is removed.
    Remove {
        /// Which.
        path: String,
    },
    /// A sentinel cannot be read any more.
    Break {
        /// Which.
        path: String,
        /// What reading it says.
        why: String,
    },
    /// The coordinator's process is killed, and started again after a second.
    Kill,
    /// The coordinator's process is killed, and stays away.
    Hold,
    /// A process that was held is started.
    Resume,
    /// The machine stops at once.
    PowerOff,
    /// The machine boots.
    PowerOn,
    /// The clock is set ahead of the true time by so many seconds, or behind it.
    Clock(i64),
    /// What the reboot command does from now on.
    RebootCommand(RebootCommand),
}

/// What a person does to the cluster.
#[derive(Debug, Clone)]
pub enum Wish {
    /// Changes a Node.
    PatchNode {
        /// Which.
        node: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
    /// Asks for a reboot.
    Request {
        /// Of which node.
        node: String,
        /// Why.
        reason: String,
        /// Not before so long from now.
        not_before: Option<Duration>,
    },
    /// Changes a BareMetalHost.
    PatchHost {
        /// Which.
        host: String,
        /// A JSON merge patch.
        patch: serde_json::Value,
    },
    /// Deletes a Node.
    DeleteNode(String),
    /// Changes a budget.
    Budget {
        /// Its name.
        name: String,
        /// What it wants from now on.
        budget: Budget,
    },
    /// A policy refuses evictions.
    RefuseEvictions(EvictionPolicy),
    /// The policy of this name refuses them no more.
    AdmitEvictions(String),
    /// Puts a pod without an owner onto a node.
    Pod {
        /// Its name.
        name: String,
        /// Where.
        node: String,
        /// How long it takes to stop.
        stops_after: Duration,
        /// Its labels.
        labels: BTreeMap<String, String>,
    },
    /// Deletes a pod in namespace `default`.
    DeletePod(String),
    /// Changes a policy, or makes it.
    Policy {
        /// Its name.
        name: String,
        /// A JSON merge patch of its `spec`.
        patch: serde_json::Value,
    },
    /// Deletes a policy.
    DeletePolicy(String),
    /// Installs the kind `RebootPolicy`, or removes it with all its objects.
    PoliciesInstalled(bool),
    /// Wants a reboot under way stopped.
    Abort {
        /// Of which node.
        node: String,
        /// Why.
        reason: String,
    },
}

/// What Prometheus says from now on.
#[derive(Debug, Clone)]
pub enum PrometheusChange {
    /// It answers nobody, or everybody again.
    Away(bool),
    /// An alert stands so; `None`: it is over.
    Alert(String, Option<Alert>),
    /// A query finds this; `None`: nothing.
    Found(String, Option<String>),
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// The node's coordinator and kubelet are cut off, or a controller is.
    Partition {
        /// Which.
        node: String,
        /// For how long.
        time: Duration,
        /// Only the coordinator.
        coordinator_only: bool,
    },
    /// Nobody reaches the API server.
    ApiDown(Duration),
    /// The end of either.
    LetIn(Vec<String>),
    /// The API server forgets its history.
    Compact,
    /// The watches of a node's coordinator, or of a controller, break off.
    CutWatches(String),
    /// Something goes wrong with calls.
    Fault(Rule),
}

impl Command {
    /// Whether the timeline shows the line: what is only looked at, or waited for, it does not.
    pub fn is_told(&self) -> bool {
        !matches!(
            self,
            Command::WaitUntil { .. }
                | Command::Run(_)
                | Command::RunUntil(_)
                | Command::Explained { .. }
                | Command::Expect(_)
                | Command::BudgetsMayBreak
        )
    }
}
