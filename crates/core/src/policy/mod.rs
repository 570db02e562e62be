//! Evaluates the `RebootPolicy` objects: which one applies to a node, and whether a reboot may
//! start now.
//!
//! **For:** [`resolve_policy`] combines flags and policies into the settings of one node (its
//! group, its numbers), [`may_reboot_begin`] answers whether a reboot of it may begin, and
//! [`may_reboot_continue`] whether one that has begun may go on. `window` is the calendar behind
//! both.
//! **May touch:** nothing; the time zone database is the one that was compiled in.
//! **Promises:** a policy that cannot be parsed or read never allows anything; each refusal has a
//! reason of one word, a message, and if possible the time at which it ends.
//!
//! Source: specification §2.2 (groups) and §2.6.

mod allowance;
mod effective_policy;
mod ready_check;
mod reason;
pub mod rollout;
mod status;
mod types;
pub mod window;

pub use allowance::{MinInterval, RebootAllowance, may_reboot_begin, may_reboot_continue};
pub use effective_policy::{
    EffectivePolicy, group_of_labels, has_group, is_control_plane, losing_policies, resolve_policy,
    ruling_policy, zone_of_labels,
};
pub use ready_check::{DEFAULT_READY_TIMEOUT, ReadyCheck, ReadyTimeoutAction, unmet_ready_checks};
pub use reason::PolicyReason;
pub use rollout::{RolloutCandidate, advance_rollouts, check_rollout};
pub use status::{OutOfServiceNode, PolicyConflict, PolicyStatus, QueuedNode, policy_statuses};
pub use types::{
    BlockingAlerts, ClusterPolicies, DrainRules, Policy, PolicyGate, PolicyPause, PrometheusGate,
    PrometheusQuery, RebootRules, ReturnGate, ReturnRules,
};
