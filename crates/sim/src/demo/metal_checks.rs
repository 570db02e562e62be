//! What is checked of the hosts: from their machines' logs and from what their BMCs were asked.

use super::failed::FAILED;
use super::metal::{HELD, Metal, REBOOTED};
use super::verdict::{Check, check};
use crate::bmc::State;
use crate::chronicle::Observer;
use crate::metal::{PowerOn, power_ons};

/// All of them.
pub(super) fn checks(metal: &Metal, observer: &Observer) -> Vec<Check> {
    vec![
        served(metal, observer),
        power_offs(metal),
        held(metal),
        proved(metal),
    ]
}

fn served(metal: &Metal, observer: &Observer) -> Check {
    let left = metal.unfinished(observer);
    let seen = match left.as_slice() {
        [] => format!("{REBOOTED}, {HELD} and {FAILED}"),
        left => format!("not {}", left.join(", ")),
    };
    let what =
        "every host that was annotated is served, every failed one is back, and they run again";
    check(left.is_empty(), what, seen)
}

fn power_offs(metal: &Metal) -> Check {
    let offs = [REBOOTED, HELD].map(|name| (name, metal.machine(name).log().power_offs()));
    let seen = offs.map(|(name, offs)| format!("{name}: {offs}"));
    let is_one = offs.iter().all(|(_, offs)| *offs == 1);
    check(
        is_one,
        "each host had exactly one power-off",
        seen.join(", "),
    )
}

/// From its power-off on, until the key went and not before.
fn held(metal: &Metal) -> Check {
    let what = "the host with the key was off for as long as the key was there";
    let log = metal.machine(HELD).log();
    let off = log
        .transitions
        .iter()
        .find(|change| change.to == State::Off);
    let on = power_ons(&log, &[], &[]);
    let (Some(off), [on], Some(freed)) = (off, on.as_slice(), metal.freed) else {
        let seen = format!("{HELD}: {} power-ons", on.len());
        return check(false, what, seen);
    };
    let (held, after) = (freed.duration_since(off.at), on.at.duration_since(freed));
    let seen = format!(
        "{HELD}: off for {:.1} s, on {:.2} s after the key went",
        held.as_secs_f64(),
        after.as_secs_f64()
    );
    check(on.at > freed && off.at < freed, what, seen)
}

fn proved(metal: &Metal) -> Check {
    let all: Vec<(&str, PowerOn)> = metal
        .yard
        .hosts()
        .flat_map(|(name, machine)| {
            let said = metal.yard.readings.of(name);
            let bmc = metal.yard.park.named(name);
            let received = bmc.map_or_else(Vec::new, |bmc| bmc.received());
            let all = power_ons(&machine.log(), &received, &said);
            all.into_iter().map(move |one| (name, one))
        })
        .collect();
    let is_proved = |one: &PowerOn| one.readings >= 2 && one.apart >= metal.yard.config.confirm;
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
    check(
        held,
        "off was proved by two readings before each power-on",
        seen.join(", "),
    )
}
