//! What the drain reads and returns, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::admission::AdmissionRefusal;
use super::deployment::{DeploymentRestart, ReplicaSetRef};
use super::pod_lookups::PodLookup;
use super::pod_plan::PodDrainPlan;
use super::pod_rules::PodRules;
use super::roll_first::{RolloutOutlook, UnrolledPod};
use crate::WakeTime;
use crate::selector::LabelSelector;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodIdentity {
    pub namespace: String,
    pub name: String,
    /// Tells pods of the same name apart.
    pub uid: String,
}

impl fmt::Display for PodIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a Pod's own yes-or-no fields"
)]
pub struct ObservedPod {
    pub pod: PodIdentity,
    pub phase: PodPhase,
    /// Whether it has a `deletionTimestamp`.
    pub deleting: bool,
    /// Whether it has annotation `kubernetes.io/config.mirror`: the API's copy of a static pod.
    pub mirror: bool,
    /// From `ownerReferences[].controller = true`.
    pub controller: Option<ControllerRef>,
    /// For the policy's exclusions and for matching budgets.
    pub labels: BTreeMap<String, String>,
    /// Whether it tolerates `node.kubernetes.io/unschedulable`.
    pub tolerates_cordon: bool,
    /// Whether it has a node and no condition `PodScheduled`, as a pod does that was created with
    /// `spec.nodeName`: the scheduler writes both at once. The kubelet adds the condition later.
    pub unscheduled: bool,
    /// The PersistentVolumeClaims it mounts. Their volumes must detach after it is gone.
    pub claims: Vec<String>,
    pub marks: PodMarks,
}

impl ObservedPod {
    /// Whether it has the label of all pods of Dogwatch's manifests.
    pub fn is_part_of_dogwatch(&self) -> bool {
        let part_of = self.labels.get("app.kubernetes.io/part-of");
        part_of.is_some_and(|part_of| part_of == "dogwatch")
    }
}

/// What a policy may honour on a pod, beside its labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodMarks {
    /// Annotation `karpenter.sh/do-not-disrupt`.
    pub do_not_disrupt: Option<String>,
    /// Annotation `cluster-autoscaler.kubernetes.io/safe-to-evict`.
    pub safe_to_evict: Option<String>,
    /// `status.startTime`.
    pub started: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    /// Not started; the API server checks no budget when it is evicted.
    Pending,
    /// Running, or unknown.
    Running,
    /// Succeeded or Failed.
    Finished,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ControllerRef {
    /// e.g. `apps/v1`.
    pub api_version: String,
    /// e.g. `DaemonSet`.
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// A DaemonSet that the drain looks up once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DaemonSetRef {
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonSetLookup {
    /// It exists: its pods stay.
    Exists,
    /// It does not exist: its pods are evicted as any other (as with `--force`).
    Gone,
    /// The lookup failed; it is repeated after a pause.
    Failed { why: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalMethod {
    /// `pods/eviction`: the API server checks budgets.
    Evict,
    /// DELETE with the pod's own grace period: by a rule, or past the deadline, when the policy says
    /// `delete`.
    Delete,
}

/// One call to the API server that removes one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictionAttempt {
    /// The caller returns it with the answer.
    pub id: EvictionId,
    /// Its UID is the precondition of the call.
    pub pod: PodIdentity,
    pub removal_method: RemovalMethod,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvictionStep {
    /// Calls to start. Each is answered once by
    /// [`NodeDrain::apply_eviction_answer`](super::NodeDrain::apply_eviction_answer).
    pub tries: Vec<EvictionAttempt>,
    /// DaemonSets to look up. Each is answered once by
    /// [`NodeDrain::apply_daemonset_lookup`](super::NodeDrain::apply_daemonset_lookup).
    pub look_up: Vec<DaemonSetRef>,
    /// Namespaces whose labels to read. Each is answered once by
    /// [`NodeDrain::apply_namespace_labels`](super::NodeDrain::apply_namespace_labels).
    pub look_up_namespaces: Vec<String>,
    /// Read the MachineDrainRules of the node's Machine; answered once by
    /// [`NodeDrain::apply_machine_rules`](super::NodeDrain::apply_machine_rules).
    pub look_up_machine_rules: bool,
    /// ReplicaSets whose Deployments to read. Each is answered once by
    /// [`NodeDrain::apply_deployment_lookup`](super::NodeDrain::apply_deployment_lookup).
    pub look_up_deployments: Vec<ReplicaSetRef>,
    /// Deployments to restart by rollout. Each is answered once by
    /// [`NodeDrain::apply_restart_answer`](super::NodeDrain::apply_restart_answer).
    pub restarts: Vec<DeploymentRestart>,
    /// List the budgets of all namespaces; answered once by
    /// [`NodeDrain::apply_budget_list`](super::NodeDrain::apply_budget_list).
    pub list_budgets: bool,
    /// Namespaces whose budgets must be watched for as long as steps name them.
    pub watch_budgets: BTreeSet<String>,
    /// When to call again even if nothing happens.
    pub wake: Option<WakeTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDisruptionBudget {
    pub numbers: BudgetNumbers,
    /// `None` covers no pod, an empty selector every pod of its namespace.
    pub selector: Option<LabelSelector>,
    /// `metadata.generation`: increases when a person changes the budget.
    pub generation: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainConfig {
    /// The most evictions that may be under way at once.
    pub in_flight: usize,
    pub rules: PodRules,
    pub start: DrainStart,
    /// A pod that a budget blocks is tried again after this time at the latest, even if no change
    /// of its budgets was seen.
    pub budget_retry: Duration,
}

impl Default for DrainConfig {
    /// 32 calls at once: with a real API server that shared two busy cores with the drain, 250 pods
    /// with a grace period of one second each were gone after 1.9 s; more calls only open more
    /// connections. 5 s for a budget is the interval of specification §2.3 and of kubectl.
    fn default() -> Self {
        Self {
            in_flight: 32,
            rules: PodRules::default(),
            start: DrainStart::default(),
            budget_retry: Duration::from_secs(5),
        }
    }
}

/// When the drain began. It may have been begun by an earlier process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrainStart {
    /// When this process first saw it, in monotonic time.
    pub seen: Duration,
    /// How long it had lasted then.
    pub before: Duration,
}

impl DrainStart {
    /// The monotonic time that is this long after the start.
    pub(super) fn time_after(self, time: Duration) -> Duration {
        let time = time.saturating_add(self.seen);
        time.saturating_sub(self.before)
    }
}

/// One call to evict one pod. Only the answer to the pod's latest call counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionId(pub u64);

/// The API server's answer to an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictionAnswer {
    /// 2xx: the deletion has begun.
    Accepted,
    /// 404, or 409 on the UID: this pod no longer exists.
    AlreadyGone,
    /// 429 with cause `DisruptionBudget`.
    Budget { message: String },
    /// 429 for another reason: wait for `retry_after`.
    TooMany {
        /// `Retry-After`.
        retry_after: Option<Duration>,
        message: String,
    },
    /// 500 because several budgets cover the pod.
    SeveralBudgets { message: String },
    /// 403 with cause `NamespaceTerminating`: the namespace controller will delete the pod.
    NamespaceTerminating,
    /// 5xx, a lost connection or a timeout: retried with back-off.
    Transient { message: String },
    /// An admission webhook or policy refuses it for now, with whatever HTTP code.
    NotAdmitted {
        refusal: AdmissionRefusal,
        message: String,
    },
    /// Any other 4xx: final.
    Refused { code: u16, message: String },
}

/// A PodDisruptionBudget's name and status, shown to people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BudgetNumbers {
    pub namespace: String,
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

/// A pod whose eviction is refused for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedPod {
    pub pod: PodIdentity,
    /// The server's message; while the same webhook or policy refuses, its first one.
    pub message: String,
    /// The webhook or policy that refuses the eviction, with its latest message.
    pub refused: Option<AdmissionRefusal>,
    /// The budgets that cover the pod, with their latest known numbers; empty if not known yet.
    pub budgets: Vec<BudgetNumbers>,
    /// Monotonic time of the first refusal.
    pub since: Duration,
}

/// A pod that has to leave and is not touched yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldPod {
    pub pod: PodIdentity,
    pub plan: PodDrainPlan,
    /// The rollout that replaces the pod, if a rule wants one and it is the pod's turn.
    pub rollout: Option<RolloutOutlook>,
}

/// A pod that left the wait list because its eviction failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedPod {
    pub pod: PodIdentity,
    /// The server's answer, quoted.
    pub answer: String,
}

/// A pod that stays because its controller has put one back on the cordoned node too often.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToleratedPod {
    pub pod: PodIdentity,
    /// Its controller's kind, e.g. `ReplicaSet`.
    pub kind: String,
    pub controller: String,
    /// How often the controller replaced a pod here during this drain.
    pub replaced: u32,
}

impl fmt::Display for ToleratedPod {
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
            "{kind} {namespace}/{controller} put a pod back on the cordoned node {replaced} \
             times: the drain leaves {pod} there, like a DaemonSet's pod"
        )
    }
}

/// The state of the drain, as the reboot decision sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrainProgress {
    /// The initial list is complete.
    pub listed: bool,
    /// The remaining pods are deleted instead of evicted.
    pub deleting: bool,
    /// The rules by which this drain judges pods.
    pub rules: PodRules,
    pub waiting: Vec<PodIdentity>,
    /// Those of `waiting` that are not touched yet.
    pub held: Vec<HeldPod>,
    /// Pods that are evicted although a rule wanted a rollout first.
    pub unrolled: Vec<UnrolledPod>,
    /// The longest wait that a rule grants to a pod that has not ended yet.
    pub pending_wait: Option<Duration>,
    /// How many pods left the node since the drain began.
    pub gone: usize,
    pub blocked: Vec<BlockedPod>,
    /// Pods that the drain gave up on. A drain that dropped a pod is incomplete.
    pub dropped: Vec<DroppedPod>,
    /// Those of `waiting` that wait for a lookup before they are judged.
    pub unjudged: Vec<PodIdentity>,
    /// What could not be looked up, with the error.
    pub lookups_failed: Vec<(PodLookup, String)>,
    /// Pods that stay because their controller keeps replacing them on the cordoned node.
    pub tolerated: Vec<ToleratedPod>,
    /// Dogwatch's own pods. They stay because an admission policy does not let coordinators evict
    /// them.
    pub kept: Vec<PodIdentity>,
    /// `namespace/name` of the claims of the pods that left. Their volumes must detach.
    pub claims: Vec<String>,
    /// `namespace/name` of the PodDisruptionBudgets that cover a pod of this drain. The return
    /// waits until each of them has enough healthy pods.
    pub covered_by: Vec<String>,
    /// The list of these budgets has not been answered yet.
    pub budgets_pending: bool,
    /// What cannot be read at the moment, and why. The reads are repeated without limit.
    pub observation_errors: Vec<String>,
}

impl DrainProgress {
    /// The initial list is complete, the wait list is empty, and the list of budgets was asked for:
    /// the return needs the names of the budgets, and after the drain it is too late to find them.
    pub fn is_drained(&self) -> bool {
        self.listed
            && self.waiting.is_empty()
            && self.lookups_failed.is_empty()
            && !self.budgets_pending
    }

    /// How long after its start the drain's timeout begins: after the longest wait for a pod that
    /// may end by itself. When the last such pod has gone early, the wait has ended early.
    ///
    /// `known` is the last answer. It is kept while this drain has not judged every pod yet.
    pub fn drain_wait(&self, known: Duration, elapsed: Duration) -> Duration {
        let judged = self.listed && self.unjudged.is_empty();
        match self.pending_wait {
            Some(wait) if judged => wait,
            Some(wait) => wait.max(known),
            None if judged => known.min(Duration::from_secs(elapsed.as_secs().saturating_add(1))),
            None => known,
        }
    }

    /// Whether the drain gave up on a pod. The reboot then acts at once as if the deadline had
    /// passed.
    pub fn is_incomplete(&self) -> bool {
        !self.dropped.is_empty()
    }
}
