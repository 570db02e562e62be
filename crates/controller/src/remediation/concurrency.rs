//! Reads what a decision needs beside its own remediation: the host's power, and which other nodes
//! are out.

use dogwatch_core::Now;
use dogwatch_core::lock::holder_node_name;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::is_control_plane;
use dogwatch_core::power::{self, HostName, PowerOffProof, PowerSnapshot};
use dogwatch_core::reboot::WatchedReboots;
use dogwatch_core::remediation::{ConcurrentRemediations, ObservedPower, Remediation};
use dogwatch_k8s::cluster::ClusterView;

use crate::power::HostRegistry;

/// The host's power now. Ask each time, because a proof holds only for its moment.
pub(super) fn observe_power(
    board: &HostRegistry,
    config: &power::PowerConfig,
    host: &HostName,
    at: Now,
) -> Option<ObservedPower> {
    board.inspect_host(host, |seen, decision| {
        let proof = power::find_off_proof(seen, config, at);
        let because = decision.map(|decision| &decision.cause);
        ObservedPower {
            now: power::current_power(seen, config, at),
            off_since: power::off_since(seen, config, at)
                .or(proof.as_ref().map(PowerOffProof::valid_since)),
            proof,
            bmc_answers: does_bmc_answer(seen),
            system_uuid: power::bmc_system_uuid(seen).map(str::to_owned),
            because: because.map(|because| format!("{}: {}", because.reason, because.message)),
        }
    })
}

/// Whether the newest reading succeeded. A BMC without a reading counts as answering.
fn does_bmc_answer(seen: &PowerSnapshot) -> bool {
    let readings = seen.memory.readings.iter();
    let newest = readings.max_by_key(|read| read.answered);
    newest.is_none_or(|read| read.result.is_ok())
}

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
        control_plane_lock: control_plane_lock_holder(cluster),
        policies: cluster.policies.clone(),
        reboots: reboots.clone(),
        ..ConcurrentRemediations::from_remediations(cases, answers)
    }
}

/// The holder of a control-plane lock for a planned reboot.
fn control_plane_lock_holder(cluster: &ClusterView) -> Option<String> {
    let slots = cluster
        .leases
        .values()
        .filter_map(|lease| lease.slot.as_ref());
    let mut held = slots.filter_map(|row| {
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
    held.next()
}
