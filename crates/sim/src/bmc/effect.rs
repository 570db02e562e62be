//! What becomes of a command that was taken.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::fault::What;
use super::held::Held;
use super::machine::{Cause, Machine};
use super::pick;
use super::reset::Effect;
use super::simulated::{Controls, SimBmc};

/// How long a power cycle leaves the power off.
const CYCLE: Duration = Duration::from_secs(4);

/// A command that was taken and is not carried out yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    number: u64,
    /// `PoweringOn` or `PoweringOff`.
    pub transition: Option<&'static str>,
}

/// What is going to happen.
struct Plan {
    effect: Effect,
    after: Duration,
    comes_back: Option<Duration>,
}

impl SimBmc {
    /// Sees to it that it happens, unless something is wrong; when the BMC thinks that it is done.
    pub(super) fn carry_out(
        &self,
        held: &mut Held,
        id: &str,
        effect: Effect,
        after: Duration,
    ) -> Duration {
        let is_ignored = |what: &What| (Some(what) == ignored(effect).as_ref()).then_some(());
        if held.faults.strike(is_ignored).is_some() {
            return after;
        }
        let is_off = matches!(effect, Effect::Off | Effect::Soft);
        let early = is_off
            .then(|| held.faults.strike(pick::reported_early))
            .flatten();
        let comes_back = is_off
            .then(|| held.faults.strike(pick::comes_back))
            .flatten();
        held.taken += 1;
        let number = held.taken;
        let plan = Plan {
            effect,
            after: after + early.unwrap_or_default(),
            comes_back,
        };
        let Some(system) = held.system_mut(id) else {
            return after;
        };
        let transition = transition(effect);
        system.pending.push(Pending { number, transition });
        system.says_off_until = early.map(|early| Instant::now() + after + early);
        self.perform_later(id.to_owned(), number, plan);
        after
    }

    fn perform_later(&self, id: String, number: u64, plan: Plan) {
        let bmc = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(plan.after).await;
            if let Some(bmc) = bmc.upgrade().map(SimBmc) {
                bmc.perform(&id, number, &plan);
            }
        });
    }

    /// A BMC that was restarted, or has no power any more, does nothing.
    fn perform(&self, id: &str, number: u64, plan: &Plan) {
        let mut held = self.held();
        let lives = held.lives();
        let Some(system) = held.system_mut(id) else {
            return;
        };
        let before = system.pending.len();
        system.pending.retain(|pending| pending.number != number);
        if lives && system.pending.len() < before {
            let (machine, controls) = (system.machine.clone(), system.controls);
            drop(held);
            affect(&machine, controls, self.name(), plan.effect);
            if let Some(after) = plan.comes_back {
                later(&machine, after, |machine| machine.power_on(Cause::Nobody));
            }
        }
    }
}

fn affect(machine: &Machine, controls: Controls, device: &str, effect: Effect) {
    let cause = || Cause::Device(device.to_owned());
    match (controls, effect) {
        (_, Effect::Nothing) => {}
        (Controls::Power, Effect::On) => machine.power_on(cause()),
        (Controls::Power, Effect::Soft) => machine.ask_to_shut_down(cause()),
        (Controls::Power, Effect::Off) => machine.cut(cause()),
        (Controls::Power, Effect::Restart) => machine.restart(cause()),
        (Controls::Power, Effect::Cycle) => {
            machine.cut(cause());
            let cause = cause();
            later(machine, CYCLE, |machine| machine.power_on(cause));
        }
        (Controls::Outlet, Effect::On) => machine.close_outlet(device),
        (Controls::Outlet, Effect::Soft | Effect::Off) => machine.open_outlet(device),
        (Controls::Outlet, Effect::Restart | Effect::Cycle) => {
            machine.open_outlet(device);
            let device = device.to_owned();
            later(machine, CYCLE, move |machine| machine.close_outlet(&device));
        }
    }
}

fn later(machine: &Machine, after: Duration, what: impl FnOnce(Machine) + Send + 'static) {
    let machine = machine.clone();
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        what(machine);
    });
}

fn transition(effect: Effect) -> Option<&'static str> {
    match effect {
        Effect::On => Some("PoweringOn"),
        Effect::Soft | Effect::Off => Some("PoweringOff"),
        Effect::Restart | Effect::Cycle | Effect::Nothing => None,
    }
}

fn ignored(effect: Effect) -> Option<What> {
    match effect {
        Effect::On => Some(What::OnIgnored),
        Effect::Soft => Some(What::SoftIgnored),
        Effect::Off => Some(What::OffIgnored),
        Effect::Restart | Effect::Cycle | Effect::Nothing => None,
    }
}
