//! Checks of the hosts, from their machines' logs and the requests to their BMCs.

use dogwatch_kubesim::machine::MachineState;

use super::failed_node::FAILED_NODE;
use super::hosts::{DemoHosts, HELD_HOST, REBOOTED_HOST};
use super::verdict::{DemoCheck, build_check};
use crate::bare_metal::{ObservedPowerOn, device_power_ons};
use crate::observer::ClusterObserver;

pub(super) fn check_hosts(metal: &DemoHosts, observer: &ClusterObserver) -> Vec<DemoCheck> {
    vec![
        check_requests_served(metal, observer),
        check_power_off_counts(metal),
        check_hold(metal),
        check_off_proofs(metal),
    ]
}

fn check_requests_served(metal: &DemoHosts, observer: &ClusterObserver) -> DemoCheck {
    let left = metal.unfinished_hosts(observer);
    let seen = match left.as_slice() {
        [] => format!("{REBOOTED_HOST}, {HELD_HOST} and {FAILED_NODE}"),
        left => format!("not {}", left.join(", ")),
    };
    let what = "every annotated host was rebooted or kept off, every failed host is back, and all hosts are on again";
    build_check(left.is_empty(), what, seen)
}

fn check_power_off_counts(metal: &DemoHosts) -> DemoCheck {
    let offs = [REBOOTED_HOST, HELD_HOST].map(|name| {
        (
            name,
            metal
                .machine_of_host(name)
                .transition_log()
                .count_power_offs(),
        )
    });
    let seen = offs.map(|(name, offs)| format!("{name}: {offs}"));
    let is_one = offs.iter().all(|(_, offs)| *offs == 1);
    build_check(
        is_one,
        "each host had exactly one power-off",
        seen.join(", "),
    )
}

/// Checks that the host stayed off from its power-off until the key was removed.
fn check_hold(metal: &DemoHosts) -> DemoCheck {
    let what = "the host with the key stayed off until the key was removed";
    let log = metal.machine_of_host(HELD_HOST).transition_log();
    let off = log
        .transitions
        .iter()
        .find(|change| change.to == MachineState::Off);
    let on = device_power_ons(&log, &[], &[]);
    let (Some(off), [on], Some(freed)) = (off, on.as_slice(), metal.key_removed_at) else {
        let seen = format!("{HELD_HOST}: {} power-ons", on.len());
        return build_check(false, what, seen);
    };
    let (held, after) = (freed.duration_since(off.at), on.at.duration_since(freed));
    let seen = format!(
        "{HELD_HOST}: off for {:.1} s, on {:.2} s after the key was removed",
        held.as_secs_f64(),
        after.as_secs_f64()
    );
    build_check(on.at > freed && off.at < freed, what, seen)
}

fn check_off_proofs(metal: &DemoHosts) -> DemoCheck {
    let all: Vec<(&str, ObservedPowerOn)> = metal
        .lab
        .list_hosts()
        .flat_map(|(name, machine)| {
            let said = metal.lab.readings.readings_of_bmc(name);
            let bmc = metal.lab.bmc_fleet.find_bmc(name);
            let received = bmc.map_or_else(Vec::new, |bmc| bmc.received_commands());
            let all = device_power_ons(&machine.transition_log(), &received, &said);
            all.into_iter().map(move |one| (name, one))
        })
        .collect();
    let is_proved =
        |one: &ObservedPowerOn| one.readings >= 2 && one.apart >= metal.lab.config.confirm;
    let held = !all.is_empty() && all.iter().all(|(_, one)| is_proved(one));
    let seen: Vec<String> = all
        .iter()
        .map(|(name, one)| {
            format!(
                "{name}: {} readings over {:.2} s",
                one.readings,
                one.apart.as_secs_f64()
            )
        })
        .collect();
    build_check(
        held,
        "off was proved by two readings before each power-on",
        seen.join(", "),
    )
}
