//! Which policy rules a node, and what then holds for it.

use std::collections::BTreeMap;

use super::types::{Policies, Policy};
use crate::limit::Limit;
use crate::name::GroupName;
use crate::reboot::Config;

/// The role label of the control plane.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// What holds for one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule<'a> {
    /// The policy that rules it, if any does.
    pub policy: Option<&'a Policy>,
    /// Its group: whose Leases and whose budget.
    pub group: GroupName,
    /// The flags, where the policy is silent.
    pub config: Config,
}

/// What holds for a node with these labels.
///
/// The policy's pause, windows, gates and numbers hold for every node that it rules. Its group does
/// too, but for a control-plane node that it does not name on purpose: those stay a group of one,
/// whatever the workers may afford. Source: specification §2.2.
pub fn rule<'a>(
    policies: &'a Policies,
    labels: &BTreeMap<String, String>,
    flags: &Config,
) -> Rule<'a> {
    let policy = ruling(policies.known(), labels);
    let mut config = policy.map_or_else(|| flags.clone(), |policy| overlaid(flags, policy));
    if is_control_plane(labels) && policy.is_none_or(|policy| !names_role(policy)) {
        config.max_unavailable = Limit::Count(1);
    }
    Rule {
        policy,
        group: group_under(policy, labels),
        config,
    }
}

/// The group of a node with these labels.
pub fn group(policies: &Policies, labels: &BTreeMap<String, String>) -> GroupName {
    group_under(ruling(policies.known(), labels), labels)
}

/// Whether nodes can be in this group: that of a policy, or one of the two that always are. A FleetLock
/// group has whatever name its clients gave it.
pub fn has_group(policies: &[Policy], group: &GroupName) -> bool {
    let always = *group == GroupName::default_group() || *group == GroupName::control_plane();
    always || policies.iter().any(|policy| policy.name == *group)
}

/// The zone of a node with these labels, where its policy goes one zone after the other.
pub fn zone(policies: &Policies, labels: &BTreeMap<String, String>) -> Option<String> {
    let key = ruling(policies.known(), labels)?.topology_key.as_ref()?;
    labels.get(key).cloned()
}

/// Whether these are the labels of a control-plane node.
pub fn is_control_plane(labels: &BTreeMap<String, String>) -> bool {
    labels.contains_key(CONTROL_PLANE)
}

fn group_under(policy: Option<&Policy>, labels: &BTreeMap<String, String>) -> GroupName {
    let control_plane = is_control_plane(labels);
    match policy.filter(|policy| !control_plane || names_role(policy)) {
        Some(policy) => policy.name.clone(),
        None if control_plane => GroupName::control_plane(),
        None => GroupName::default_group(),
    }
}

fn names_role(policy: &Policy) -> bool {
    policy.selector.names(CONTROL_PLANE)
}

/// The policy that rules a node with these labels: the highest priority, then the first name.
pub fn ruling<'a>(policies: &'a [Policy], labels: &BTreeMap<String, String>) -> Option<&'a Policy> {
    matching(policies, labels).min_by_key(|policy| order(policy))
}

/// The policies that match a node with these labels and lost to the one that rules it.
pub fn conflicts<'a>(policies: &'a [Policy], labels: &BTreeMap<String, String>) -> Vec<&'a Policy> {
    let mut all: Vec<&Policy> = matching(policies, labels).collect();
    all.sort_by_key(|policy| order(policy));
    all.split_off(all.len().min(1))
}

fn matching<'a>(
    policies: &'a [Policy],
    labels: &BTreeMap<String, String>,
) -> impl Iterator<Item = &'a Policy> {
    policies
        .iter()
        .filter(|policy| policy.selector.matches(labels))
}

fn order(policy: &Policy) -> (std::cmp::Reverse<i32>, &GroupName) {
    (std::cmp::Reverse(policy.priority), &policy.name)
}

fn overlaid(flags: &Config, policy: &Policy) -> Config {
    let (drain, reboot, on_return) = (&policy.drain, &policy.reboot, &policy.on_return);
    Config {
        max_unavailable: policy.max_unavailable.unwrap_or(flags.max_unavailable),
        drain_timeout: drain.timeout.unwrap_or(flags.drain_timeout),
        on_drain_timeout: drain.on_timeout.unwrap_or(flags.on_drain_timeout),
        exclude: drain.exclude.clone().or_else(|| flags.exclude.clone()),
        volume_detach_timeout: drain
            .volume_detach_timeout
            .unwrap_or(flags.volume_detach_timeout),
        reboot_timeout: reboot.timeout.unwrap_or(flags.reboot_timeout),
        reboot_attempts: reboot.attempts.unwrap_or(flags.reboot_attempts),
        settle: on_return.settle.unwrap_or(flags.settle),
        return_gates: on_return
            .gates
            .clone()
            .unwrap_or_else(|| flags.return_gates.clone()),
        gate_timeout: on_return.gate_timeout.unwrap_or(flags.gate_timeout),
        on_gate_timeout: on_return.on_gate_timeout.unwrap_or(flags.on_gate_timeout),
    }
}

#[cfg(test)]
mod tests;
