//! What can be done to a machine.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use dogwatch_core::name::BootId;

use super::{AfterFeed, Cause, Held, Machine, State};

impl Machine {
    /// Gives it power. Nothing happens to one that has it, or that is not fed.
    pub fn power_on(&self, cause: Cause) {
        let held = self.held();
        if held.open.len() < held.outlets && !self.state().is_powered() {
            self.boot(held, self.0.spec.boots_after, cause);
        }
    }

    /// Boots it in this boot, at once; one that runs is reset.
    pub fn run_in(&self, boot: BootId, cause: Cause) {
        let held = self.held();
        if held.open.len() < held.outlets {
            self.go_to(held, State::Running { boot }, cause);
        }
    }

    /// Takes its power away: what ran is dead, at once.
    pub fn cut(&self, cause: Cause) {
        let held = self.held();
        if self.state().is_powered() {
            self.go_to(held, State::Off, cause);
        }
    }

    /// Presses its power button for a moment: an operating system that hears it shuts down. Firmware
    /// does not, nor one that was told already.
    pub fn ask_to_shut_down(&self, cause: Cause) {
        let held = self.held();
        let (State::Running { boot }, Some(after)) = (self.state(), self.0.spec.shuts_down_after)
        else {
            return;
        };
        let epoch = self.go_to(held, State::ShuttingDown { boot }, cause);
        self.later(after, epoch, |machine, held| {
            machine.go_to(held, State::Off, Cause::Done);
        });
    }

    /// Restarts it without taking its power away. Nothing happens to one that has none.
    pub fn restart(&self, cause: Cause) {
        self.restart_taking(self.0.spec.boots_after, cause);
    }

    /// The same, with a time of its own until processes live.
    pub fn restart_taking(&self, time: Duration, cause: Cause) {
        let held = self.held();
        if self.state().is_powered() {
            self.boot(held, time, cause);
        }
    }

    /// So many outlets feed it, each enough by itself; one if nobody says so.
    pub fn set_outlets(&self, outlets: usize) {
        self.held().outlets = outlets;
    }

    /// Opens the outlet of this name. With the last one the power goes.
    pub fn open_outlet(&self, outlet: &str) {
        let mut held = self.held();
        if held.open.iter().any(|open| open == outlet) {
            return;
        }
        held.open.push(outlet.to_owned());
        if held.open.len() == held.outlets {
            held.blackouts += 1;
            held.ran_when_cut = self.state().is_powered();
            if held.ran_when_cut {
                self.go_to(held, State::Off, Cause::Device(outlet.to_owned()));
            }
        }
    }

    /// Closes the outlet of this name. What the machine makes of it is its own affair.
    pub fn close_outlet(&self, outlet: &str) {
        let mut held = self.held();
        let was_dark = held.open.len() == held.outlets;
        held.open.retain(|open| open != outlet);
        let boots = match self.0.spec.after_feed {
            AfterFeed::StaysOff => false,
            AfterFeed::AsBefore => held.ran_when_cut,
            AfterFeed::Boots => true,
        };
        if was_dark && boots && held.open.len() < held.outlets {
            let cause = Cause::Device(outlet.to_owned());
            self.boot(held, self.0.spec.boots_after, cause);
        }
    }

    /// Whether the outlet of this name is open.
    pub fn is_open(&self, outlet: &str) -> bool {
        self.held().open.iter().any(|open| open == outlet)
    }

    fn boot(&self, mut held: MutexGuard<'_, Held>, after: Duration, cause: Cause) {
        let boot = held.stream.boot_id();
        let booting = State::Booting { boot: boot.clone() };
        let epoch = self.go_to(held, booting, cause);
        self.later(after, epoch, move |machine, held| {
            machine.go_to(held, State::Running { boot }, Cause::Done);
        });
    }

    /// The state's number.
    fn go_to(&self, mut held: MutexGuard<'_, Held>, state: State, cause: Cause) -> u64 {
        held.epoch += 1;
        let now = self.0.spec.clock.now();
        held.log.changed(now, state.clone(), cause);
        self.0.state.send_replace(state);
        held.epoch
    }

    /// Does it after this time, unless the machine went on to something else meanwhile.
    fn later<What>(&self, after: Duration, epoch: u64, what: What)
    where
        What: FnOnce(&Machine, MutexGuard<'_, Held>) + Send + 'static,
    {
        let machine = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let Some(machine) = machine.upgrade().map(Machine) else {
                return;
            };
            let held = machine.held();
            if held.epoch == epoch {
                what(&machine, held);
            }
        });
    }
}
