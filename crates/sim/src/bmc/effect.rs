//! Carries out the commands that a simulated BMC accepted.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_kubesim::machine::{SimMachine, TransitionCause};
use tokio::time::Instant;

use super::bmc_state::BmcState;
use super::fault::BmcFaultKind;
use super::fault_values;
use super::reset::ResetEffect;
use super::sim_bmc::{PowerControl, SimBmc};

const POWER_CYCLE_OFF_TIME: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy)]
pub(super) struct PendingReset {
    number: u64,
    pub transition: Option<&'static str>,
}

struct ResetPlan {
    effect: ResetEffect,
    after: Duration,
    comes_back: Option<Duration>,
}

impl SimBmc {
    /// Schedules the effect of a command, unless a fault prevents it. Returns the time until the
    /// BMC considers the command done.
    pub(super) fn schedule_effect(
        &self,
        held: &mut BmcState,
        id: &str,
        effect: ResetEffect,
        after: Duration,
    ) -> Duration {
        let is_ignored =
            |what: &BmcFaultKind| (Some(what) == ignoring_fault(effect).as_ref()).then_some(());
        if held.faults.strike_first(is_ignored).is_some() {
            return after;
        }
        let is_off = matches!(effect, ResetEffect::Off | ResetEffect::Soft);
        let early = is_off
            .then(|| {
                held.faults
                    .strike_first(fault_values::early_report_duration)
            })
            .flatten();
        let comes_back = is_off
            .then(|| held.faults.strike_first(fault_values::comeback_delay))
            .flatten();
        held.taken += 1;
        let number = held.taken;
        let plan = ResetPlan {
            effect,
            after: after + early.unwrap_or_default(),
            comes_back,
        };
        let Some(system) = held.find_system_mut(id) else {
            return after;
        };
        let transition = transition_state(effect);
        system.pending.push(PendingReset { number, transition });
        system.says_off_until = early.map(|early| Instant::now() + after + early);
        self.spawn_reset(id.to_owned(), number, plan);
        after
    }

    fn spawn_reset(&self, id: String, number: u64, plan: ResetPlan) {
        let bmc = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(plan.after).await;
            if let Some(bmc) = bmc.upgrade().map(SimBmc) {
                bmc.perform_reset(&id, number, &plan);
            }
        });
    }

    /// Carries out a command. A BMC that was restarted or has lost its power does nothing.
    fn perform_reset(&self, id: &str, number: u64, plan: &ResetPlan) {
        let mut held = self.lock_state();
        let lives = held.is_alive();
        let Some(system) = held.find_system_mut(id) else {
            return;
        };
        let before = system.pending.len();
        system.pending.retain(|pending| pending.number != number);
        if lives && system.pending.len() < before {
            let (machine, controls) = (system.machine.clone(), system.controls);
            drop(held);
            apply_effect(&machine, controls, self.name(), plan.effect);
            if let Some(after) = plan.comes_back {
                run_later(&machine, after, |machine| {
                    machine.turn_on(TransitionCause::Nobody);
                });
            }
        }
    }
}

fn apply_effect(machine: &SimMachine, controls: PowerControl, device: &str, effect: ResetEffect) {
    let cause = || TransitionCause::Device(device.to_owned());
    match (controls, effect) {
        (_, ResetEffect::Nothing) => {}
        (PowerControl::Power, ResetEffect::On) => machine.turn_on(cause()),
        (PowerControl::Power, ResetEffect::Soft) => machine.press_power_button(cause()),
        (PowerControl::Power, ResetEffect::Off) => machine.cut_power(cause()),
        (PowerControl::Power, ResetEffect::Restart) => machine.restart_machine(cause()),
        (PowerControl::Power, ResetEffect::Cycle) => {
            machine.cut_power(cause());
            let cause = cause();
            run_later(machine, POWER_CYCLE_OFF_TIME, |machine| {
                machine.turn_on(cause);
            });
        }
        (PowerControl::Outlet, ResetEffect::On) => machine.close_outlet(device),
        (PowerControl::Outlet, ResetEffect::Soft | ResetEffect::Off) => machine.open_outlet(device),
        (PowerControl::Outlet, ResetEffect::Restart | ResetEffect::Cycle) => {
            machine.open_outlet(device);
            let device = device.to_owned();
            run_later(machine, POWER_CYCLE_OFF_TIME, move |machine| {
                machine.close_outlet(&device);
            });
        }
    }
}

fn run_later(
    machine: &SimMachine,
    after: Duration,
    what: impl FnOnce(SimMachine) + Send + 'static,
) {
    let machine = machine.clone();
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        what(machine);
    });
}

fn transition_state(effect: ResetEffect) -> Option<&'static str> {
    match effect {
        ResetEffect::On => Some("PoweringOn"),
        ResetEffect::Soft | ResetEffect::Off => Some("PoweringOff"),
        ResetEffect::Restart | ResetEffect::Cycle | ResetEffect::Nothing => None,
    }
}

fn ignoring_fault(effect: ResetEffect) -> Option<BmcFaultKind> {
    match effect {
        ResetEffect::On => Some(BmcFaultKind::OnIgnored),
        ResetEffect::Soft => Some(BmcFaultKind::SoftIgnored),
        ResetEffect::Off => Some(BmcFaultKind::OffIgnored),
        ResetEffect::Restart | ResetEffect::Cycle | ResetEffect::Nothing => None,
    }
}
