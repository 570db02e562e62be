//! What the drain sees and says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::admission::Refusal;
use crate::Wake;
use crate::selector::LabelSelector;

/// Which pod, which incarnation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a pod of the same name is another pod.
    pub uid: String,
}

impl fmt::Display for PodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod on the node, as the watch shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSeen {
    /// Which.
    pub pod: PodRef,
    /// Pending, running or finished.
    pub phase: PodPhase,
    /// Whether it has a `deletionTimestamp`.
    pub deleting: bool,
    /// Whether it carries `kubernetes.io/config.mirror`: a static pod's shadow.
    pub mirror: bool,
    /// Its controller (`ownerReferences[].controller = true`).
    pub controller: Option<Owner>,
    /// Its labels, for the policy's exclusions and for matching budgets.
    pub labels: BTreeMap<String, String>,
    /// Whether it tolerates `node.kubernetes.io/unschedulable`.
    pub tolerates_cordon: bool,
    /// The persistent volume claims it mounts, whose attachments must go after it.
    pub claims: Vec<String>,
}

/// What the pod's phase means for a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// Not started; its eviction asks no budget.
    Pending,
    /// Running, or unknown.
    Running,
    /// Succeeded or Failed.
    Finished,
}

/// A controller reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// e.g. `apps/v1`.
    pub api_version: String,
    /// e.g. `DaemonSet`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// A DaemonSet that must be looked up once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DaemonSetRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What the lookup of a DaemonSet said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// It exists: its pods stay.
    Exists,
    /// It does not: its pods are like any other's (as with `--force`).
    Gone,
    /// It could not be found out; asked again after a pause.
    Failed {
        /// What the API server said.
        why: String,
    },
}

/// How a pod is made to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `pods/eviction`: budgets are asked.
    Evict,
    /// DELETE with the pod's own grace: past the deadline, when policy says `delete`.
    Delete,
}

/// One call to make: this pod, this incarnation, this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    /// Goes back with the answer.
    pub id: EvictionId,
    /// Which pod; its UID is the call's precondition.
    pub pod: PodRef,
    /// Eviction or deletion.
    pub way: Way,
}

/// What the drain wants done now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Calls to start. Each is answered once by [`Drain::answered`](super::Drain::answered).
    pub tries: Vec<Try>,
    /// DaemonSets to look up. Each is answered once by [`Drain::daemonset`](super::Drain::daemonset).
    pub look_up: Vec<DaemonSetRef>,
    /// List the budgets of all namespaces; answered once by
    /// [`Drain::budgets_listed`](super::Drain::budgets_listed).
    pub list_budgets: bool,
    /// Namespaces whose budgets must be watched while they are named here.
    pub watch_budgets: BTreeSet<String>,
    /// When to ask again even if nothing happens.
    pub wake: Option<Wake>,
}

/// A PodDisruptionBudget, as its watch shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetSeen {
    /// Its names and numbers.
    pub numbers: BudgetNumbers,
    /// Whom it covers. `None` covers no pod, an empty selector every pod of its namespace.
    pub selector: Option<LabelSelector>,
    /// `metadata.generation`: moves when a person changes the budget.
    pub generation: i64,
}

/// How to drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainConfig {
    /// How many evictions may be under way at once.
    pub in_flight: usize,
    /// Pods that stay because the policy says so.
    pub exclude: Option<LabelSelector>,
    /// A pod that a budget holds up is tried again at the latest after this, even if no change of
    /// its budgets was seen.
    pub budget_retry: Duration,
}

impl Default for DrainConfig {
    /// 32 calls at once: 250 pods of one second each were gone after 1.9 s from a real API server
    /// that shared two busy cores with the drain; more calls only open more connections. 5 s for a
    /// budget is specification §2.3's, and kubectl's pause, too.
    fn default() -> Self {
        Self {
            in_flight: 32,
            exclude: None,
            budget_retry: Duration::from_secs(5),
        }
    }
}

/// One try to evict one pod. The answer of an older try changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionId(pub u64);

/// What the API server said to an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 2xx: the deletion has begun.
    Accepted,
    /// 404, or 409 on the UID: that pod is no more.
    AlreadyGone,
    /// 429 with cause `DisruptionBudget`.
    Budget {
        /// The server's message.
        message: String,
    },
    /// 429 for another reason: wait as told.
    TooMany {
        /// `Retry-After`.
        retry_after: Option<Duration>,
        /// The server's message.
        message: String,
    },
    /// 500 because several budgets cover the pod.
    SeveralBudgets {
        /// The server's message.
        message: String,
    },
    /// 403 with cause `NamespaceTerminating`: the deletion will come.
    NamespaceTerminating,
    /// 5xx, a lost connection, a timeout: again, with back-off.
    Transient {
        /// What happened.
        message: String,
    },
    /// A webhook or a policy refuses it at admission, with whatever code: not yet.
    NotAdmitted {
        /// Who refuses, and in which words.
        refusal: Refusal,
        /// The server's message.
        message: String,
    },
    /// Any other 4xx: final.
    Refused {
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
}

/// A PodDisruptionBudget's numbers, for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BudgetNumbers {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `status.disruptionsAllowed`.
    pub disruptions_allowed: i32,
    /// `status.currentHealthy`.
    pub current_healthy: i32,
    /// `status.desiredHealthy`.
    pub desired_healthy: i32,
    /// `status.expectedPods`.
    pub expected_pods: i32,
}

impl BudgetNumbers {
    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A pod whose eviction is held up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Which pod.
    pub pod: PodRef,
    /// The server's message; while the same webhook or policy refuses, its first one.
    pub message: String,
    /// The webhook or policy that refuses its eviction, in its newest words.
    pub refused: Option<Refusal>,
    /// The budgets that cover it, with their numbers as last seen; empty if not known yet.
    pub budgets: Vec<BudgetNumbers>,
    /// Since when, in monotonic time.
    pub since: Duration,
}

/// A pod that left the wait list because its eviction failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Which pod.
    pub pod: PodRef,
    /// The answer, quoted.
    pub answer: String,
}

/// A pod that stays because its controller has put one back on the cordoned node too often.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tolerated {
    /// Which pod.
    pub pod: PodRef,
    /// Its controller's kind, e.g. `ReplicaSet`.
    pub kind: String,
    /// Its controller's name.
    pub controller: String,
    /// How often it replaced a pod here during this drain.
    pub replaced: u32,
}

impl fmt::Display for Tolerated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pod,
            kind,
            controller,
            replaced,
        } = self;
        let namespace = &pod.namespace;
        write!(
            f,
            "{kind} {namespace}/{controller} put a pod back on the cordoned node {replaced} times: {pod} stays, \
             as a DaemonSet's would"
        )
    }
}

/// Where the drain stands; what the reboot decision sees of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The initial list is complete.
    pub listed: bool,
    /// The rest is deleted instead of evicted.
    pub deleting: bool,
    /// Pods that stay because the policy said so when this drain began.
    pub exclude: Option<LabelSelector>,
    /// Pods on the wait list.
    pub waiting: Vec<PodRef>,
    /// How many pods left the node since the drain began.
    pub gone: usize,
    /// Pods held up, and by what.
    pub blocked: Vec<Blocked>,
    /// Pods given up on. A drain that dropped one is incomplete.
    pub dropped: Vec<Dropped>,
    /// DaemonSets that could not be looked up, with the reason.
    pub lookups_failed: Vec<(DaemonSetRef, String)>,
    /// Pods that stay because their controller replaces them for ever on a cordoned node.
    pub tolerated: Vec<Tolerated>,
    /// Dogwatch's own pods, which stay because an admission policy keeps them from coordinators.
    pub kept: Vec<PodRef>,
    /// Claims of the pods that left, `namespace/name`: their volumes must detach.
    pub claims: Vec<String>,
    /// PodDisruptionBudgets (`namespace/name`) that cover a pod of this drain; the return waits
    /// until none of them is short.
    pub covered_by: Vec<String>,
    /// Those budgets are still being asked for.
    pub budgets_pending: bool,
    /// What cannot be seen at the moment, and why; it is tried again, for ever.
    pub trouble: Vec<String>,
}

impl Progress {
    /// Drained: the initial list is complete and the wait list is empty. (And the budgets over the
    /// pods that left were asked for: the return needs their names, and afterwards it is too late.)
    pub fn drained(&self) -> bool {
        self.listed
            && self.waiting.is_empty()
            && self.lookups_failed.is_empty()
            && !self.budgets_pending
    }

    /// Whether a pod was given up on: takes the deadline's path at once.
    pub fn incomplete(&self) -> bool {
        !self.dropped.is_empty()
    }
}
