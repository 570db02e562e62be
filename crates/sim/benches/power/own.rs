//! What of a fence is the BMC's own.

use std::time::Duration;

use dogwatch_sim::bmc::{ReceivedCommand, ResetType, SimBmc};

/// From the arrival of the power-off to the end of the power.
pub fn own_time(bmc: &SimBmc) -> Duration {
    let told = bmc.received_commands().into_iter().find(is_power_off);
    let log = bmc.machine().transition_log();
    let off = log
        .transitions
        .iter()
        .find(|change| !change.to.is_powered());
    let took = off
        .expect("it is off")
        .at
        .duration_since(told.expect("it was told").at);
    took.try_into().expect("told before it was off")
}

/// How many power-offs reached it.
pub fn power_offs(bmc: &SimBmc) -> usize {
    bmc.received_commands()
        .iter()
        .filter(|command| is_power_off(command))
        .count()
}

fn is_power_off(command: &ReceivedCommand) -> bool {
    command.kind == Some(ResetType::ForceOff)
}
