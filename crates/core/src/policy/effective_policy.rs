//! Finds the policy that applies to a node, and the settings that result from it.

use std::collections::BTreeMap;

use dogwatch_api::label::CONTROL_PLANE;

use super::types::{ClusterPolicies, Policy};
use crate::limit::UnavailabilityLimit;
use crate::name::GroupName;
use crate::reboot::RebootConfig;

#[derive(Debug, Clone, PartialEq)]
pub struct EffectivePolicy<'a> {
    pub policy: Option<&'a Policy>,
    /// The group whose Leases and budget the node uses.
    pub group: GroupName,
    /// The policy's values, else those of the flags.
    pub config: RebootConfig,
}

/// The settings for a node with these labels.
///
/// The policy's pause, windows, gates and numbers apply to every node that it rules. Its group does
/// too, except for control-plane nodes that it does not select explicitly: those stay a group with
/// one slot, whatever the workers may afford. Source: specification §2.2.
pub fn resolve_policy<'a>(
    policies: &'a ClusterPolicies,
    labels: &BTreeMap<String, String>,
    flags: &RebootConfig,
) -> EffectivePolicy<'a> {
    let policy = ruling_policy(policies.known_policies(), labels);
    let mut config = policy.map_or_else(|| flags.clone(), |policy| overlay_flags(flags, policy));
    if is_control_plane(labels) && policy.is_none_or(|policy| !names_control_plane(policy)) {
        config.max_unavailable = UnavailabilityLimit::Count(1);
    }
    EffectivePolicy {
        policy,
        group: group_under_policy(policy, labels),
        config,
    }
}

pub fn group_of_labels(policies: &ClusterPolicies, labels: &BTreeMap<String, String>) -> GroupName {
    group_under_policy(ruling_policy(policies.known_policies(), labels), labels)
}

/// Whether nodes can be in this group: a policy's group, or one of the two built-in groups. A
/// FleetLock group has whatever name its clients gave it.
pub fn has_group(policies: &[Policy], group: &GroupName) -> bool {
    let always = *group == GroupName::default_group() || *group == GroupName::control_plane_group();
    always || policies.iter().any(|policy| policy.name == *group)
}

/// The zone of a node with these labels, if its policy has a `topologyKey`.
pub fn zone_of_labels(
    policies: &ClusterPolicies,
    labels: &BTreeMap<String, String>,
) -> Option<String> {
    let key = ruling_policy(policies.known_policies(), labels)?
        .topology_key
        .as_ref()?;
    labels.get(key).cloned()
}

pub fn is_control_plane(labels: &BTreeMap<String, String>) -> bool {
    labels.contains_key(CONTROL_PLANE)
}

fn group_under_policy(policy: Option<&Policy>, labels: &BTreeMap<String, String>) -> GroupName {
    let control_plane = is_control_plane(labels);
    match policy.filter(|policy| !control_plane || names_control_plane(policy)) {
        Some(policy) => policy.name.clone(),
        None if control_plane => GroupName::control_plane_group(),
        None => GroupName::default_group(),
    }
}

fn names_control_plane(policy: &Policy) -> bool {
    policy.selector.mentions_label(CONTROL_PLANE)
}

/// The policy that applies to a node with these labels: the highest priority, then the first name.
pub fn ruling_policy<'a>(
    policies: &'a [Policy],
    labels: &BTreeMap<String, String>,
) -> Option<&'a Policy> {
    matching_policies(policies, labels).min_by_key(|policy| precedence_of(policy))
}

/// The policies that match a node with these labels although another policy applies to it.
pub fn losing_policies<'a>(
    policies: &'a [Policy],
    labels: &BTreeMap<String, String>,
) -> Vec<&'a Policy> {
    let mut all: Vec<&Policy> = matching_policies(policies, labels).collect();
    all.sort_by_key(|policy| precedence_of(policy));
    all.split_off(all.len().min(1))
}

fn matching_policies<'a>(
    policies: &'a [Policy],
    labels: &BTreeMap<String, String>,
) -> impl Iterator<Item = &'a Policy> {
    policies
        .iter()
        .filter(|policy| policy.selector.matches_labels(labels))
}

fn precedence_of(policy: &Policy) -> (std::cmp::Reverse<i32>, &GroupName) {
    (std::cmp::Reverse(policy.priority), &policy.name)
}

fn overlay_flags(flags: &RebootConfig, policy: &Policy) -> RebootConfig {
    let (drain, reboot, on_return) = (&policy.drain, &policy.reboot, &policy.on_return);
    RebootConfig {
        max_unavailable: policy.limit_nodes_over(flags.max_unavailable),
        drain_timeout: drain.timeout.unwrap_or(flags.drain_timeout),
        on_drain_timeout: drain.on_timeout.unwrap_or(flags.on_drain_timeout),
        pod_rules: drain.pods.clone(),
        volume_detach_timeout: drain
            .volume_detach_timeout
            .unwrap_or(flags.volume_detach_timeout),
        reboot_timeout: reboot.timeout.unwrap_or(flags.reboot_timeout),
        reboot_attempts: reboot.attempts.unwrap_or(flags.reboot_attempts),
        accept_soft: reboot.accept_soft,
        mute_nvsentinel: reboot.mute_nvsentinel,
        request_label: flags.request_label.clone(),
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
