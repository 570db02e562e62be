//! How a rollout begins.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Config;
use jiff::Timestamp;

use crate::plan::machine::Machine;
use crate::plan::{Calls, Outcome, Plan, Stretch};

pub(super) fn time(now: Duration) -> Now {
    let seconds = jiff::SignedDuration::try_from(now).unwrap_or(jiff::SignedDuration::MAX);
    let wall = Timestamp::UNIX_EPOCH
        .checked_add(seconds)
        .unwrap_or(Timestamp::MAX);
    Now { wall, mono: now }
}

pub(super) fn machines(plan: &Plan) -> Vec<Machine> {
    let machine = |kind: &str, number: u32, control_plane: bool| {
        let name =
            NodeName::new(format!("{kind}-{number:04}")).expect("letters, digits and a dash");
        let stream = plan.seed.stream(&format!("machine/{name}"));
        Machine::new(name, control_plane, stream, plan.spread_percent)
    };
    let workers = (1..=plan.nodes).map(|number| machine("node", number, false));
    let masters = (1..=plan.control_plane).map(|number| machine("control", number, true));
    workers.chain(masters).collect()
}

pub(super) fn config(plan: &Plan) -> Config {
    Config {
        max_unavailable: plan.max_unavailable,
        reboot_timeout: Duration::from_mins(30).max(plan.reboot_time * 2),
        settle: plan.settle,
        ..Config::default()
    }
}

pub(super) fn empty(plan: &Plan) -> Outcome {
    let members = usize::try_from(plan.nodes).unwrap_or(usize::MAX);
    Outcome {
        took: Duration::ZERO,
        rebooted: 0,
        longest_wait: Stretch::default(),
        median_wait: Duration::ZERO,
        longest_out: Stretch::default(),
        most_out: 0,
        most_control_plane_out: 0,
        budget: u32::try_from(plan.max_unavailable.of(members)).unwrap_or(u32::MAX),
        handovers: 0,
        worst_inversion: Duration::ZERO,
        calls: Calls::default(),
        decisions: 0,
    }
}
