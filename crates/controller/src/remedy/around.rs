//! What decisions look at beside their own case: the power side's word on hosts, and who is out.

use dogwatch_core::Now;
use dogwatch_core::lock::holder_node_name;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::is_control_plane;
use dogwatch_core::power::{self, HostName, OffProof, Seen};
use dogwatch_core::reboot::RebootsWatched;
use dogwatch_core::remedy::{Around, Case, PowerSeen};
use dogwatch_k8s::cluster::ClusterView;

use crate::power::PowerBoard;

/// The power side's word on this host, now: a proof is of its moment.
pub(super) fn power(
    board: &PowerBoard,
    config: &power::Config,
    host: &HostName,
    at: Now,
) -> Option<PowerSeen> {
    board.ask(host, |seen, decision| {
        let proof = power::proof(seen, config, at);
        let because = decision.map(|decision| &decision.because);
        PowerSeen {
            now: power::now(seen, config, at),
            off_since: power::off_since(seen, config, at).or(proof.as_ref().map(OffProof::since)),
            proof,
            answers: answers(seen),
            system_uuid: power::system_uuid(seen).map(str::to_owned),
            because: because.map(|because| (because.reason, because.message.clone())),
        }
    })
}

/// Whether its BMC answers: the newest reading did. One that was not read yet counts as if it did.
fn answers(seen: &Seen) -> bool {
    let readings = seen.memory.readings.iter();
    let newest = readings.max_by_key(|read| read.answered);
    newest.is_none_or(|read| read.said.is_ok())
}

/// Who is out now.
pub(super) fn around(
    cases: &[Case],
    cluster: &ClusterView,
    reboots: &RebootsWatched,
    board: &PowerBoard,
) -> Around {
    let answers = |host: &HostName| board.ask(host, |seen, _| answers(seen)).unwrap_or(true);
    Around {
        control_plane_lock: control_plane_lock(cluster),
        policies: cluster.policies.clone(),
        reboots: reboots.clone(),
        ..Around::of(cases, answers)
    }
}

/// Who holds a lock of the control plane for a planned reboot.
fn control_plane_lock(cluster: &ClusterView) -> Option<String> {
    let slots = cluster
        .leases
        .values()
        .filter_map(|lease| lease.slot.as_ref());
    let mut held = slots.filter_map(|row| {
        let holder = row.lease.holder.as_ref()?;
        let name = holder_node_name(&row.lease);
        let node = name.as_ref().and_then(|name| cluster.nodes.get(name));
        let is_its = row.group == GroupName::control_plane()
            || node.is_some_and(|node| is_control_plane(&node.labels));
        let words = || {
            name.as_ref()
                .map_or(holder.to_string(), ToString::to_string)
        };
        is_its.then(words)
    });
    held.next()
}
