//! Sets up a rollout.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::label;
use dogwatch_core::Now;
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::ClusterPolicies;
use dogwatch_core::reboot::RebootConfig;
use jiff::Timestamp;

use crate::plan::planned_node::PlannedNode;
use crate::plan::{ApiCallCounts, GroupOutcome, NodeDuration, RolloutOutcome, RolloutPlan};

pub(super) fn time_at(start: Timestamp, now: Duration) -> Now {
    let seconds = jiff::SignedDuration::try_from(now).unwrap_or(jiff::SignedDuration::MAX);
    let wall = start.checked_add(seconds).unwrap_or(Timestamp::MAX);
    Now { wall, mono: now }
}

pub(super) fn build_nodes(plan: &RolloutPlan) -> Vec<PlannedNode> {
    let policies = Arc::new(ClusterPolicies::Known(plan.policies.clone()));
    let machine = |kind: &str, number: u32, labels: BTreeMap<String, String>| {
        let name = NodeName::new(format!("{kind}-{number:04}")).expect("a name, a dash and digits");
        let stream = plan.seed.stream_for_actor(&format!("machine/{name}"));
        PlannedNode::new(name, labels, &policies, stream, plan.spread_percent)
    };
    let workers = (1..=plan.nodes).map(|number| machine("node", number, BTreeMap::new()));
    let labelled = plan.groups.iter().flat_map(|group| {
        let one = |number| machine(group.name.as_str(), number, group.labels.clone());
        (1..=group.count).map(one)
    });
    let role = BTreeMap::from([(label::CONTROL_PLANE.to_owned(), String::new())]);
    let masters = (1..=plan.control_plane).map(|number| machine("control", number, role.clone()));
    workers.chain(labelled).chain(masters).collect()
}

/// The groups with their sizes and budgets, by name.
pub(super) fn build_groups(
    machines: &[PlannedNode],
    flags: &RebootConfig,
) -> BTreeMap<GroupName, GroupOutcome> {
    let mut groups: BTreeMap<GroupName, GroupOutcome> = BTreeMap::new();
    for machine in machines {
        let known = groups.entry(machine.group.clone()).or_default();
        known.nodes += 1;
    }
    for machine in machines {
        let rule = machine.policy_rule(flags);
        let Some(known) = groups
            .get_mut(&rule.group)
            .filter(|known| known.budget == 0)
        else {
            continue;
        };
        let members = usize::try_from(known.nodes).unwrap_or(usize::MAX);
        let budget = rule.config.max_unavailable.allowed_nodes(members);
        known.group = rule.group.to_string();
        known.budget = u32::try_from(budget).unwrap_or(u32::MAX);
        let windows = rule.policy.filter(|policy| !policy.windows.is_empty());
        known.windows = windows.map(|_| 0);
    }
    groups
}

pub(super) fn coordinator_config(plan: &RolloutPlan) -> RebootConfig {
    RebootConfig {
        max_unavailable: plan.max_unavailable,
        reboot_timeout: Duration::from_mins(30).max(plan.reboot_time * 2),
        settle: plan.settle,
        ..RebootConfig::default()
    }
}

pub(super) fn empty_outcome(plan: &RolloutPlan) -> RolloutOutcome {
    let members = usize::try_from(plan.nodes).unwrap_or(usize::MAX);
    RolloutOutcome {
        took: Duration::ZERO,
        rebooted: 0,
        longest_wait: NodeDuration::default(),
        median_wait: Duration::ZERO,
        longest_out: NodeDuration::default(),
        most_out: 0,
        most_control_plane_out: 0,
        budget: u32::try_from(plan.max_unavailable.allowed_nodes(members)).unwrap_or(u32::MAX),
        handovers: 0,
        worst_inversion: Duration::ZERO,
        calls: ApiCallCounts::default(),
        decisions: 0,
        groups: Vec::new(),
    }
}
