//! Checks of the failed machine, from its log and from the writes to the volume.

use dogwatch_kubesim::machine::MachineState;

use super::failed_node::{FAILED_NODE, SECOND_NODE};
use super::hosts::DemoHosts;
use super::verdict::{DemoCheck, build_check};

pub(super) fn check_failed_node(metal: &DemoHosts) -> Vec<DemoCheck> {
    vec![
        check_writes(metal),
        check_order(metal),
        check_recovery(metal),
    ]
}

fn check_writes(metal: &DemoHosts) -> DemoCheck {
    let writes = metal.failed_node.volume.count_writes();
    let of = |name: &str| writes.by.get(name).copied().unwrap_or_default();
    let (first, second) = (of(FAILED_NODE), of(SECOND_NODE));
    let seen = format!(
        "{FAILED_NODE}: {first} writes, {SECOND_NODE}: {second} writes, at the same time: {}",
        writes.doubles
    );
    let held = first > 0 && second > 0 && writes.doubles == 0;
    build_check(
        held,
        "no two machines ever wrote to the volume at once",
        seen,
    )
}

/// Checks the order: the machine was off, then that was proved, then the second writer started.
fn check_order(metal: &DemoHosts) -> DemoCheck {
    let what = "the second writer started only after the first host was proved off";
    let log = metal.machine_of_host(FAILED_NODE).transition_log();
    let mut changes = log.transitions.iter();
    let off = changes.find(|change| change.to == MachineState::Off);
    let (Some(off), Some(proved), Some(started)) = (
        off,
        metal.failed_node.proved_at,
        metal.failed_node.second_since,
    ) else {
        return build_check(
            false,
            what,
            format!("the workloads of {FAILED_NODE} were never released"),
        );
    };
    let seen = format!(
        "off; proved {:.2} s later; {:.2} s after that {SECOND_NODE} wrote",
        proved.duration_since(off.at).as_secs_f64(),
        started.duration_since(proved).as_secs_f64()
    );
    build_check(off.at < proved && proved <= started, what, seen)
}

fn check_recovery(metal: &DemoHosts) -> DemoCheck {
    let log = metal.machine_of_host(FAILED_NODE).transition_log();
    let (offs, ons) = (log.count_power_offs(), log.count_power_ons());
    let seen = format!("{FAILED_NODE}: {offs} power-off, {ons} power-on");
    build_check(
        (offs, ons) == (1, 1) && metal.is_recovered,
        "the failed node is back, with its labels, after exactly one power-off",
        seen,
    )
}
