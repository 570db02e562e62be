//! The settings of planned reboots.

use std::time::Duration;

use crate::drain::PodRules;
use crate::policy::ReturnGate;

/// The settings from flags. A policy overrides them: see [`crate::policy::resolve_policy`].
#[derive(Debug, Clone, PartialEq)]
pub struct RebootConfig {
    /// How many nodes of the group may be unavailable at once.
    pub max_unavailable: crate::limit::UnavailabilityLimit,
    pub drain_timeout: Duration,
    pub on_drain_timeout: DrainTimeoutAction,
    /// What the drain does with which pods.
    pub pod_rules: PodRules,
    /// How long the volumes of drained pods may take to detach.
    pub volume_detach_timeout: Duration,
    /// How long to wait for a new boot after the command was started.
    pub reboot_timeout: Duration,
    /// How often the command may be run in all.
    pub reboot_attempts: u32,
    /// Whether a soft reboot of systemd counts as a reboot.
    pub accept_soft: bool,
    /// Whether NVSentinel is kept from acting on a node from its drain until it is back.
    pub mute_nvsentinel: bool,
    /// The Node label that asks for a reboot, if any does.
    pub request_label: Option<String>,
    /// How long the Node must stay Ready before it counts as back.
    pub settle: Duration,
    pub return_gates: Vec<ReturnGate>,
    /// How long the return gates may stay shut.
    pub gate_timeout: Duration,
    pub on_gate_timeout: GateTimeoutAction,
}

impl Default for RebootConfig {
    /// The defaults of specification §2.
    fn default() -> Self {
        Self {
            max_unavailable: crate::limit::UnavailabilityLimit::Count(1),
            drain_timeout: Duration::from_hours(1),
            on_drain_timeout: DrainTimeoutAction::Abort,
            pod_rules: PodRules::default(),
            volume_detach_timeout: Duration::from_mins(2),
            reboot_timeout: Duration::from_mins(30),
            reboot_attempts: 2,
            accept_soft: false,
            mute_nvsentinel: false,
            request_label: None,
            settle: Duration::from_secs(30),
            return_gates: ReturnGate::ALL.to_vec(),
            gate_timeout: Duration::from_mins(15),
            on_gate_timeout: GateTimeoutAction::Keep,
        }
    }
}

impl RebootConfig {
    /// How long a drain may take, with the waits for pods that may end by themselves.
    pub fn longest_drain(&self) -> Duration {
        let waits = self.pod_rules.longest_wait();
        self.drain_timeout.saturating_add(waits)
    }
}

/// What to do when a drain has taken too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainTimeoutAction {
    /// Undo the drain, release the lock, queue again.
    Abort,
    /// Delete the remaining pods.
    Delete,
    /// Reboot although pods are left.
    Force,
}

/// What to do when the return gates stay shut for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateTimeoutAction {
    /// Keep the lock, and report it as a Warning.
    Keep,
    /// Release the lock.
    Release,
}
