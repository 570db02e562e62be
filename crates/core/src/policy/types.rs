//! A policy, as decisions see it. Every part is optional: the flags rule where it is silent.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::window::Window;
use crate::limit::Limit;
use crate::name::GroupName;
use crate::reboot::{OnGateTimeout, OnTimeout};
use crate::selector::LabelSelector;

/// What is known of the cluster's policies.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Policies {
    /// Not looked at yet: nothing new begins.
    #[default]
    NotYet,
    /// They cannot be read, and asking again will not help: nothing new begins.
    Unreadable {
        /// Why, and what to do.
        why: String,
    },
    /// There are these; none where the kind is not installed.
    Known(Vec<Policy>),
}

impl Policies {
    /// Those that are known.
    pub fn known(&self) -> &[Policy] {
        match self {
            Policies::Known(policies) => policies,
            Policies::NotYet | Policies::Unreadable { .. } => &[],
        }
    }
}

/// One `RebootPolicy`.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Its name, which is also the name of its group.
    pub name: GroupName,
    /// Which nodes it is for.
    pub selector: LabelSelector,
    /// Of several that match a node the highest rules; of equals the first by name.
    pub priority: i32,
    /// How many of its group may be out at once.
    pub max_unavailable: Option<Limit>,
    /// The lock goes to nodes with the same value of this node label first: an order, and no barrier.
    pub topology_key: Option<String>,
    /// Nothing begins, and a drain is undone.
    pub paused: Option<Paused>,
    /// When reboots may happen; none is always.
    pub windows: Vec<Window>,
    /// How long after one reboot of a node the next may begin.
    pub min_interval: Option<Duration>,
    /// The drain.
    pub drain: DrainRules,
    /// The reboot.
    pub reboot: RebootRules,
    /// The return.
    pub on_return: ReturnRules,
    /// What must be so before a reboot begins, and again right before it.
    pub gates: Vec<Gate>,
    /// Parts of it that cannot be understood, each with its field. While there are any, nothing
    /// that it governs begins.
    pub problems: Vec<String>,
}

impl Policy {
    /// A policy that says nothing: every node, and the flags rule.
    pub fn silent(name: GroupName) -> Self {
        Self {
            name,
            selector: LabelSelector::default(),
            priority: 0,
            max_unavailable: None,
            topology_key: None,
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

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// Why; shown wherever the pause holds something up.
    pub reason: String,
    /// It ends by itself at this time.
    pub until: Option<Timestamp>,
}

/// `drain`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DrainRules {
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// What then.
    pub on_timeout: Option<OnTimeout>,
    /// How long drained volumes may take to detach.
    pub volume_detach_timeout: Option<Duration>,
    /// Pods that stay.
    pub exclude: Option<LabelSelector>,
}

/// `reboot`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RebootRules {
    /// How long a new boot is waited for.
    pub timeout: Option<Duration>,
    /// How often the command may be run in all.
    pub attempts: Option<u32>,
    /// A reboot that does not happen is handed over to the power controller.
    pub escalate: bool,
}

/// `return`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReturnRules {
    /// How long the Node must be Ready.
    pub settle: Option<Duration>,
    /// What must be so before the lock goes; `None` is all of them.
    pub gates: Option<Vec<ReturnGate>>,
    /// How long that may take.
    pub gate_timeout: Option<Duration>,
    /// What then.
    pub on_gate_timeout: Option<OnGateTimeout>,
}

/// What the return may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReturnGate {
    /// The node's DaemonSet pods are ready.
    DaemonSetPods,
    /// No PodDisruptionBudget that covered a pod of the drain is short.
    DisruptionBudgets,
    /// The node's volumes are attached.
    Volumes,
}

impl ReturnGate {
    /// Every one.
    pub const ALL: [ReturnGate; 3] = [
        ReturnGate::DaemonSetPods,
        ReturnGate::DisruptionBudgets,
        ReturnGate::Volumes,
    ];
}

/// What keeps a reboot from beginning.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// No pod on the node that these labels select (Pending or Running).
    Pods {
        /// Which pods.
        selector: LabelSelector,
    },
    /// A question to Prometheus has an empty answer.
    Prometheus(PrometheusGate),
}

/// A question to a Prometheus HTTP API; its answer must be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusGate {
    /// The server, `http` or `https`.
    pub url: String,
    /// What is asked.
    pub ask: PrometheusQuery,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrometheusQuery {
    /// Any PromQL expression: no result means go.
    Query(String),
    /// Alerts, as kured's users know them.
    Alerts(Alerts),
}

/// Which alerts block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alerts {
    /// Alert names that do not count: a regular expression (kured's `--alert-filter-regexp`).
    pub ignore: Option<String>,
    /// Only these count (kured's `--alert-filter-match-only`).
    pub only: Option<String>,
    /// Pending ones do not count (kured's `--alert-firing-only`).
    pub firing_only: bool,
}
