//! A policy in the form that decisions use. Every part is optional; where it is missing, the flags
//! apply.

use std::time::Duration;

pub use dogwatch_api::reboot_policy::ReturnGate;
use jiff::Timestamp;

use super::ready_check::{ReadyCheck, ReadyTimeoutAction};
use super::rollout::PolicyRollout;
use super::window::MaintenanceWindow;
use crate::drain::PodRules;
use crate::limit::UnavailabilityLimit;
use crate::name::GroupName;
use crate::reboot::{DrainTimeoutAction, GateTimeoutAction};
use crate::selector::LabelSelector;

#[derive(Debug, Clone, PartialEq, Default)]
pub enum ClusterPolicies {
    /// Not read yet: nothing new begins.
    #[default]
    NotYetRead,
    /// Reading failed, and repeating it will not help: nothing new begins.
    Unreadable {
        /// Says also what to do.
        why: String,
    },
    /// Empty if the CRD is not installed.
    Known(Vec<Policy>),
}

impl ClusterPolicies {
    /// Whether they may not be read.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, ClusterPolicies::Unreadable { .. })
    }

    pub fn known_policies(&self) -> &[Policy] {
        match self {
            ClusterPolicies::Known(policies) => policies,
            ClusterPolicies::NotYetRead | ClusterPolicies::Unreadable { .. } => &[],
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Also the name of its group.
    pub name: GroupName,
    pub selector: LabelSelector,
    /// Of several policies that match a node the highest applies; of equals the first by name.
    pub priority: i32,
    /// How many nodes of its group may be unavailable at once.
    pub max_unavailable: Option<UnavailabilityLimit>,
    /// A number of nodes beside that, usually beside a percentage: the smaller rules.
    pub max_unavailable_nodes: Option<u32>,
    /// The lock goes to nodes with the same value of this node label first: an order, and no
    /// barrier.
    pub topology_key: Option<String>,
    /// In which steps reboots go through the nodes, and how far they are.
    pub rollout: PolicyRollout,
    /// While paused, nothing begins, and a drain is undone.
    pub paused: Option<PolicyPause>,
    /// When reboots may happen; empty means always.
    pub windows: Vec<MaintenanceWindow>,
    /// Minimum time between the end of a node's reboot and the beginning of its next.
    pub min_interval: Option<Duration>,
    pub drain: DrainRules,
    pub reboot: RebootRules,
    pub on_return: ReturnRules,
    /// Checked before a reboot begins, and again right before the reboot command.
    pub gates: Vec<PolicyGate>,
    /// Parts of the policy that are invalid, each with its field. While there are any, nothing that
    /// the policy rules begins.
    pub problems: Vec<String>,
}

impl Policy {
    /// A policy without rules: it selects every node, and the flags apply.
    pub fn without_rules(name: GroupName) -> Self {
        Self {
            name,
            selector: LabelSelector::default(),
            priority: 0,
            max_unavailable: None,
            max_unavailable_nodes: None,
            topology_key: None,
            rollout: PolicyRollout::default(),
            paused: None,
            windows: Vec::new(),
            min_interval: None,
            drain: DrainRules::default(),
            reboot: RebootRules::default(),
            on_return: ReturnRules::default(),
            gates: Vec::new(),
            problems: Vec::new(),
        }
    }
}

impl Policy {
    /// How many nodes of its group may be unavailable; `flags` rules where the policy has no limit.
    /// The ramp of a rollout is a smaller limit.
    pub fn limit_nodes_over(&self, flags: UnavailabilityLimit) -> UnavailabilityLimit {
        let limit = self.max_unavailable.unwrap_or(flags);
        let limit = limit.capped_at(self.max_unavailable_nodes);
        limit.capped_at(self.rollout.limit_now())
    }

    /// The pause, if it has not ended at `now`.
    pub fn active_pause(&self, now: Timestamp) -> Option<&PolicyPause> {
        let pause = self.paused.as_ref();
        pause.filter(|pause| pause.until.is_none_or(|until| until > now))
    }

    pub fn limits_nodes(&self) -> bool {
        let own = self.max_unavailable.is_some() || self.max_unavailable_nodes.is_some();
        own || self.rollout.limit_now().is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyPause {
    /// Shown wherever the pause holds something up.
    pub reason: String,
    /// When the pause ends by itself.
    pub until: Option<Timestamp>,
}

/// `drain`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DrainRules {
    /// How long the drain may take.
    pub timeout: Option<Duration>,
    pub on_timeout: Option<DrainTimeoutAction>,
    /// How long drained volumes may take to detach.
    pub volume_detach_timeout: Option<Duration>,
    /// What happens to which pods.
    pub pods: PodRules,
}

/// `reboot`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RebootRules {
    /// How long to wait for a new boot.
    pub timeout: Option<Duration>,
    /// How often the reboot command may be run in all.
    pub attempts: Option<u32>,
    /// Whether a soft reboot of systemd counts as a reboot.
    pub accept_soft: bool,
    /// Whether NVSentinel is kept from acting on a node that reboots.
    pub mute_nvsentinel: bool,
    /// Whether a reboot that does not happen is handed over to the power controller.
    pub escalate: bool,
}

/// `return`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReturnRules {
    /// How long the Node must be Ready.
    pub settle: Option<Duration>,
    /// Gates that must be open before the lock is released; `None` means all.
    pub gates: Option<Vec<ReturnGate>>,
    /// How long to wait for the gates.
    pub gate_timeout: Option<Duration>,
    pub on_gate_timeout: Option<GateTimeoutAction>,
    /// What must hold before the node is uncordoned.
    pub ready: Vec<ReadyCheck>,
    /// How long to wait for that.
    pub ready_timeout: Option<Duration>,
    pub on_ready_timeout: ReadyTimeoutAction,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PolicyGate {
    /// Open while no Pending or Running pod on the node matches the selector.
    Pods { selector: LabelSelector },
    /// Open while the result of a Prometheus query is empty.
    Prometheus(PrometheusGate),
}

/// A query to a Prometheus HTTP API whose result must be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusGate {
    /// URL of the server, `http` or `https`.
    pub url: String,
    pub ask: PrometheusQuery,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrometheusQuery {
    /// A PromQL expression.
    Query(String),
    /// Alerts, selected as in kured.
    Alerts(BlockingAlerts),
}

/// Which alerts close the gate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockingAlerts {
    /// Alert names to ignore: a regular expression (kured's `--alert-filter-regexp`).
    pub ignore: Option<String>,
    /// Only alert names that match count: a regular expression (kured's
    /// `--alert-filter-match-only`).
    pub only: Option<String>,
    /// Pending alerts do not count (kured's `--alert-firing-only`).
    pub firing_only: bool,
}
