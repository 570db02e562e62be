//! What passes between the leader and the BMC: readings, and commands that run at once, late, or not
//! at all.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::power::{
    CommandAnswer, PendingCommand, PowerCommand, PowerObserve, PowerReading,
};

use super::PowerGuard;
use super::leader::{SETTLE_TICKS, decision_config, refused, state_time, timed_out};
use super::state::{CommandAtBmc, PowerFate};
use super::world::PowerOffWorld;
use crate::promise::Promise;

impl PowerOffWorld<'_> {
    pub fn observe(&mut self, looks: &[PowerObserve], fate: PowerFate) {
        self.pay(fate);
        let says_on = self.running != self.is_lying;
        let truth = if says_on {
            PowerReading::On
        } else {
            PowerReading::Off
        };
        let doubled = self.is_without(PowerGuard::TwoReadings);
        let leader = Arc::make_mut(&mut self.leader);
        for look in looks {
            match look {
                PowerObserve::Read { .. } if fate == PowerFate::Fails => {
                    leader.record_reading(Err(refused()), Duration::ZERO);
                }
                PowerObserve::Read { .. } => {
                    if doubled {
                        leader.record_reading(Ok(truth), decision_config().confirm);
                    }
                    leader.record_reading(Ok(truth), Duration::ZERO);
                }
                PowerObserve::Check { .. } => leader.record_check(),
                PowerObserve::KubeletLeases => leader.record_kubelet_leases(),
            }
        }
    }

    pub fn send_command(&mut self, command: &PendingCommand, fate: PowerFate) {
        self.check_command(command);
        self.sent.push(command.id.clone());
        let turns_on = command.command == PowerCommand::On;
        let there_already = self.running == turns_on;
        let how = match fate {
            PowerFate::Good if there_already => Ok(CommandAnswer::AlreadyThere),
            PowerFate::Good => {
                self.running = turns_on;
                Ok(CommandAnswer::Accepted)
            }
            PowerFate::Fails => Err(refused()),
            PowerFate::Late => Ok(CommandAnswer::Accepted),
            PowerFate::NoTask => Ok(CommandAnswer::AcceptedWithoutTask),
            PowerFate::AnswerLost
            | PowerFate::Dies
            | PowerFate::DiesLate
            | PowerFate::SentFirst => Err(timed_out()),
        };
        if !matches!(fate, PowerFate::Good | PowerFate::Fails) {
            self.queue_command(command);
        }
        if fate.cost().1 > 0 {
            return self.take_over();
        }
        if self.is_without(PowerGuard::SentOnce) {
            return;
        }
        let memory = &mut Arc::make_mut(&mut self.leader).memory;
        memory.record_command_sent(state_time().mono);
        memory.record_command_end(&command.id, how, state_time().mono);
    }

    pub fn queue_command(&mut self, command: &PendingCommand) {
        let command = CommandAtBmc::new(command.command, SETTLE_TICKS);
        self.at_bmc.push(command);
    }

    /// The process before this one sends the command that it had written.
    pub fn deposed_sends(&mut self) {
        let Some(deposed) = self.deposed.take() else {
            return;
        };
        let command = deposed.host.status.power.command.clone();
        if let Some(command) = command {
            self.check_command(&command);
            self.queue_command(&command);
        }
    }

    /// S5: what is sent stands on the host, and was not sent before.
    pub fn check_command(&mut self, command: &PendingCommand) {
        let standing = self.stored.status.power.command.as_ref();
        if standing.is_none_or(|standing| standing.id != command.id) {
            let how = "a command is sent that is not on the host";
            self.break_promise(Promise::OneReboot, how);
        }
        if self.sent.contains(&command.id) {
            self.break_promise(Promise::OneReboot, "one command is sent twice");
        }
    }

    pub fn run_late_command(&mut self, which: usize) {
        let command = self.at_bmc.remove(which);
        self.running = command.turns_on;
    }
}
