//! A kubelet on a machine whose power others hold.

use dogwatch_core::name::BootId;
use tokio::sync::{mpsc, watch};

use super::Command;
use crate::bmc::{Cause, Machine, State};

/// Stops and starts the kubelet as the machine's processes die and live; `living` is the boot that it
/// lives in now.
pub(super) async fn follow(
    mut machine: watch::Receiver<State>,
    mut living: Option<BootId>,
    kubelet: mpsc::UnboundedSender<Command>,
) {
    loop {
        let now = machine.borrow_and_update().living().cloned();
        if now != living {
            let command = match &now {
                Some(boot) => Command::PowerOn(boot.clone()),
                None => Command::PowerOff,
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

/// What the kubelet's handle is told is done to its machine.
pub(super) fn pass_on(command: Command, machine: &Machine) {
    match command {
        Command::PowerOff => machine.cut(Cause::Hand),
        Command::PowerOn(boot) => machine.run_in(boot, Cause::Hand),
        Command::Reboot(None) => machine.restart(Cause::Reboot),
        Command::Reboot(Some(time)) => machine.restart_taking(time, Cause::Reboot),
    }
}
