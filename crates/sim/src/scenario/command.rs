//! What a script can say.

use std::time::Duration;

use dogwatch_core::reboot::Config;

use super::condition::Condition;
use super::faults::Rule;
use crate::host::RebootCommand;
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
    /// How many nodes of a group may be out: what the checks hold against.
    pub max_out: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cluster: ClusterSpec::new(3, Seed(1)),
            config: Config::default(),
            max_out: 1,
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
    /// Explains a node.
    Explain(String),
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
    /// Deletes a Node.
    DeleteNode(String),
    /// Changes a budget.
    Budget {
        /// Its name.
        name: String,
        /// What it wants from now on.
        budget: Budget,
    },
    /// Puts a pod without an owner onto a node.
    Pod {
        /// Its name.
        name: String,
        /// Where.
        node: String,
        /// How long it takes to stop.
        stops_after: Duration,
    },
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// The node's coordinator and kubelet are cut off.
    Partition {
        /// Which node.
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
    /// A node's watches break off.
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
                | Command::Expect(_)
                | Command::BudgetsMayBreak
        )
    }
}
