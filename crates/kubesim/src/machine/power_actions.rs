//! The actions on a simulated machine: power, reset, button and outlets.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::{MachineRecord, MachineState, PowerRestorePolicy, SimMachine, TransitionCause};

impl SimMachine {
    /// Switches the power on. Does nothing if the machine has power already or is not fed.
    pub fn turn_on(&self, cause: TransitionCause) {
        let held = self.lock_record();
        if held.open.len() < held.outlets && !self.power_state().is_powered() {
            self.start_boot(held, self.0.spec.boots_after, cause);
        }
    }

    /// Boots the machine with this boot id at once; a running machine is reset.
    pub fn boot_into(&self, boot: String, cause: TransitionCause) {
        let held = self.lock_record();
        if held.open.len() < held.outlets {
            self.enter_state(held, MachineState::Running { boot }, cause);
        }
    }

    /// Cuts the power: all processes are dead at once.
    pub fn cut_power(&self, cause: TransitionCause) {
        let held = self.lock_record();
        if self.power_state().is_powered() {
            self.enter_state(held, MachineState::Off, cause);
        }
    }

    /// Presses the power button briefly. An operating system that obeys the button shuts down.
    /// Firmware ignores it, and so does a machine that is shutting down already.
    pub fn press_power_button(&self, cause: TransitionCause) {
        let held = self.lock_record();
        let (MachineState::Running { boot }, Some(after)) =
            (self.power_state(), self.0.spec.shuts_down_after)
        else {
            return;
        };
        let epoch = self.enter_state(held, MachineState::ShuttingDown { boot }, cause);
        self.run_later(after, epoch, |machine, held| {
            machine.enter_state(held, MachineState::Off, TransitionCause::Done);
        });
    }

    /// Restarts the machine without a power cut. Does nothing if it has no power.
    pub fn restart_machine(&self, cause: TransitionCause) {
        self.restart_with_boot_time(self.0.spec.boots_after, cause);
    }

    /// Like [`Self::restart_machine`], with `time` from the restart to the first process.
    pub fn restart_with_boot_time(&self, time: Duration, cause: TransitionCause) {
        let held = self.lock_record();
        if self.power_state().is_powered() {
            self.start_boot(held, time, cause);
        }
    }

    /// Sets how many outlets feed the machine; each one is enough. The default is one.
    pub fn set_outlets(&self, outlets: usize) {
        self.lock_record().outlets = outlets;
    }

    /// Opens the outlet of this name. Opening the last closed outlet cuts the power.
    pub fn open_outlet(&self, outlet: &str) {
        let mut held = self.lock_record();
        if held.open.iter().any(|open| open == outlet) {
            return;
        }
        held.open.push(outlet.to_owned());
        if held.open.len() == held.outlets {
            held.blackouts += 1;
            held.ran_when_cut = self.power_state().is_powered();
            if held.ran_when_cut {
                self.enter_state(
                    held,
                    MachineState::Off,
                    TransitionCause::Device(outlet.to_owned()),
                );
            }
        }
    }

    /// Closes the outlet of this name. The machine then follows its [`PowerRestorePolicy`].
    pub fn close_outlet(&self, outlet: &str) {
        let mut held = self.lock_record();
        let was_dark = held.open.len() == held.outlets;
        held.open.retain(|open| open != outlet);
        let boots = match self.0.spec.after_feed {
            PowerRestorePolicy::StaysOff => false,
            PowerRestorePolicy::AsBefore => held.ran_when_cut,
            PowerRestorePolicy::Boots => true,
        };
        if was_dark && boots && held.open.len() < held.outlets {
            let cause = TransitionCause::Device(outlet.to_owned());
            self.start_boot(held, self.0.spec.boots_after, cause);
        }
    }

    pub fn is_outlet_open(&self, outlet: &str) -> bool {
        self.lock_record().open.iter().any(|open| open == outlet)
    }

    fn start_boot(
        &self,
        mut held: MutexGuard<'_, MachineRecord>,
        after: Duration,
        cause: TransitionCause,
    ) {
        let boot = held.stream.next_boot_id();
        let booting = MachineState::Booting { boot: boot.clone() };
        let epoch = self.enter_state(held, booting, cause);
        self.run_later(after, epoch, move |machine, held| {
            machine.enter_state(held, MachineState::Running { boot }, TransitionCause::Done);
        });
    }

    /// Enters a state and returns the new epoch.
    fn enter_state(
        &self,
        mut held: MutexGuard<'_, MachineRecord>,
        state: MachineState,
        cause: TransitionCause,
    ) -> u64 {
        held.epoch += 1;
        let now = self.0.spec.clock.now();
        held.log.record_transition(now, state.clone(), cause);
        self.0.state.send_replace(state);
        held.epoch
    }

    /// Runs `what` after this time, unless the machine has changed its state meanwhile.
    fn run_later<What>(&self, after: Duration, epoch: u64, what: What)
    where
        What: FnOnce(&SimMachine, MutexGuard<'_, MachineRecord>) + Send + 'static,
    {
        let machine = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let Some(machine) = machine.upgrade().map(SimMachine) else {
                return;
            };
            let held = machine.lock_record();
            if held.epoch == epoch {
                what(&machine, held);
            }
        });
    }
}
