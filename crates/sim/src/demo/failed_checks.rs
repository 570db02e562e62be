//! What is checked of the failed machine: from its log, and from what was written to the volume.

use super::failed::{FAILED, SECOND};
use super::metal::Metal;
use super::verdict::{Check, check};
use crate::bmc::State;

/// All of them.
pub(super) fn checks(metal: &Metal) -> Vec<Check> {
    vec![writes(metal), order(metal), back(metal)]
}

fn writes(metal: &Metal) -> Check {
    let writes = metal.failed.volume.writes();
    let of = |name: &str| writes.by.get(name).copied().unwrap_or_default();
    let (first, second) = (of(FAILED), of(SECOND));
    let seen = format!(
        "{FAILED}: {first} writes, {SECOND}: {second}, both at once: {}",
        writes.doubles
    );
    let held = first > 0 && second > 0 && writes.doubles == 0;
    check(
        held,
        "no two machines ever wrote to the volume at once",
        seen,
    )
}

/// The machine was off, then that was proved, then the second writer started.
fn order(metal: &Metal) -> Check {
    let what = "the second writer started after the first was proved off";
    let log = metal.machine(FAILED).log();
    let mut changes = log.transitions.iter();
    let off = changes.find(|change| change.to == State::Off);
    let (Some(off), Some(proved), Some(started)) =
        (off, metal.failed.proved_at, metal.failed.second_since)
    else {
        return check(false, what, format!("{FAILED} was never released"));
    };
    let seen = format!(
        "off; proved {:.2} s later; {:.2} s after that {SECOND} wrote",
        proved.duration_since(off.at).as_secs_f64(),
        started.duration_since(proved).as_secs_f64()
    );
    check(off.at < proved && proved <= started, what, seen)
}

fn back(metal: &Metal) -> Check {
    let log = metal.machine(FAILED).log();
    let (offs, ons) = (log.power_offs(), log.power_ons());
    let seen = format!("{FAILED}: {offs} power-off, {ons} power-on");
    check(
        (offs, ons) == (1, 1) && metal.is_recovered,
        "the failed node is back, as it was, after exactly one power-off",
        seen,
    )
}
