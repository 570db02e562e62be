//! Reads what a decision needs beside its own remediation: which other nodes are out.

use dogwatch_core::lock::holder_node_name;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::is_control_plane;
use dogwatch_core::power::HostName;
use dogwatch_core::reboot::WatchedReboots;
use dogwatch_core::remediation::{ConcurrentRemediations, PlannedReboots, Remediation};
use dogwatch_k8s::cluster::ClusterView;

use crate::power::{HostRegistry, does_bmc_answer};

pub(super) fn observe_concurrency(
    cases: &[Remediation],
    cluster: &ClusterView,
    reboots: &WatchedReboots,
    board: &HostRegistry,
) -> ConcurrentRemediations {
    let answers = |host: &HostName| {
        board
            .inspect_host(host, |seen, _| does_bmc_answer(seen))
            .unwrap_or(true)
    };
    ConcurrentRemediations {
        planned: planned_reboots(cluster, reboots),
        ..ConcurrentRemediations::from_remediations(cases, answers)
    }
}

pub(super) fn planned_reboots(cluster: &ClusterView, reboots: &WatchedReboots) -> PlannedReboots {
    PlannedReboots {
        control_plane_locks: control_plane_lock_holders(cluster),
        policies: cluster.policies.clone(),
        reboots: reboots.clone(),
    }
}

/// All holders of a control-plane lock for a planned reboot.
fn control_plane_lock_holders(cluster: &ClusterView) -> Vec<String> {
    let slots = cluster
        .leases
        .values()
        .filter_map(|lease| lease.slot.as_ref());
    let held = slots.filter_map(|row| {
        let holder = row.lease.holder.as_ref()?;
        let name = holder_node_name(&row.lease);
        let node = name.as_ref().and_then(|name| cluster.nodes.get(name));
        let is_its = row.group == GroupName::control_plane_group()
            || node.is_some_and(|node| is_control_plane(&node.labels));
        let words = || {
            name.as_ref()
                .map_or(holder.to_string(), ToString::to_string)
        };
        is_its.then(words)
    });
    held.collect()
}
