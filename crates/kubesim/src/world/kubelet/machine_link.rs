//! Ties a kubelet to a simulated machine whose power others control.

use tokio::sync::{mpsc, watch};

use super::MachineCommand;
use crate::machine::{MachineState, SimMachine, TransitionCause};

/// Stops and starts the kubelet with the machine's processes; `living` is the boot that the kubelet
/// currently runs in.
pub(super) async fn follow_machine(
    mut machine: watch::Receiver<MachineState>,
    mut living: Option<String>,
    kubelet: mpsc::UnboundedSender<MachineCommand>,
) {
    loop {
        let now = machine
            .borrow_and_update()
            .running_boot()
            .map(str::to_owned);
        if now != living {
            let command = match &now {
                Some(boot) => MachineCommand::PowerOn(boot.clone()),
                None => MachineCommand::PowerOff,
            };
            if kubelet.send(command).is_err() {
                return;
            }
            living = now;
        }
        if machine.changed().await.is_err() {
            return;
        }
    }
}

/// Applies a command of the kubelet's handle to its machine.
pub(super) fn forward_command(command: MachineCommand, machine: &SimMachine) {
    match command {
        MachineCommand::PowerOff => machine.cut_power(TransitionCause::Hand),
        MachineCommand::PowerOn(boot) => machine.boot_into(boot, TransitionCause::Hand),
        MachineCommand::Reboot(None) => machine.restart_machine(TransitionCause::Reboot),
        MachineCommand::Reboot(Some(time)) => {
            machine.restart_with_boot_time(time, TransitionCause::Reboot);
        }
    }
}
