//! Sends a command: once, or twice if the BMC says that it did not accept the first one.

use http::StatusCode;

use super::RedfishDriver;
use super::client::nothing_sent;
use super::deadline::Deadline;
use super::reply::RedfishReply;
use super::request::RedfishRequest;
use super::reset_methods::ResetMethod;
use super::task;
use crate::{BmcFault, CommandAnswer, FaultClass, PowerCommand, PowerReading};

impl RedfishDriver {
    /// Runs one command at a time; a second call waits until the first one ends.
    pub(super) async fn run_command(
        &self,
        command: PowerCommand,
        deadline: Deadline,
    ) -> Result<CommandAnswer, BmcFault> {
        let _turn = deadline.bound_by_deadline(self.command_lock.lock()).await?;
        let (way, target) = self
            .prepare_reset(command, deadline)
            .await
            .map_err(nothing_sent)?;
        if let Some(state) = way.only_when
            && let Some(answer) = self
                .check_before_button_press(command, state, deadline)
                .await?
        {
            return Ok(answer);
        }
        let reply = self.post_reset(&target, way, deadline).await?;
        match reply.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                self.forget_system();
                Err(reply.to_fault())
            }
            StatusCode::BAD_REQUEST | StatusCode::CONFLICT => {
                self.resolve_rejected_command(command, &reply, deadline)
                    .await
            }
            status if status.is_success() => {
                task::wait_for_task(&self.client, &reply, deadline).await
            }
            _ => Err(reply.to_fault()),
        }
    }

    /// Finds the reset method and the target of the command.
    async fn prepare_reset(
        &self,
        command: PowerCommand,
        deadline: Deadline,
    ) -> Result<(ResetMethod, String), BmcFault> {
        let known = self.known_reset(deadline).await?;
        let unsupported = || {
            let message = format!(
                "the system has no reset type for {command}; it has: {}",
                known.abilities.allowed.join(", ")
            );
            BmcFault::without_effect(FaultClass::Unsupported, message)
        };
        let way = known
            .abilities
            .choose_reset_method(command)
            .ok_or_else(unsupported)?;
        let target = self.client.origin.path_at_origin(&known.target)?;
        Ok((way, target))
    }

    /// The button toggles the power, so it is pressed only in the state for which it is meant.
    async fn check_before_button_press(
        &self,
        command: PowerCommand,
        state: PowerReading,
        deadline: Deadline,
    ) -> Result<Option<CommandAnswer>, BmcFault> {
        let reading = self.read_power_state(deadline).await?;
        match reading {
            _ if reading == state => Ok(None),
            _ if reading == goal_reading(command) => Ok(Some(CommandAnswer::AlreadyThere)),
            PowerReading::On
            | PowerReading::PoweringOn
            | PowerReading::PoweringOff
            | PowerReading::Off => {
                let message =
                    "Dogwatch does not press the power button while the power state changes";
                Err(BmcFault::without_effect(FaultClass::Refused, message))
            }
        }
    }

    /// Sends the reset. A BMC that demands an ETag has not run the command, so it is sent again
    /// with the ETag.
    async fn post_reset(
        &self,
        target: &str,
        way: ResetMethod,
        deadline: Deadline,
    ) -> Result<RedfishReply, BmcFault> {
        let reply = self
            .client
            .send_logged_in(&RedfishRequest::power_reset(target, way.reset), deadline)
            .await?;
        let wants_version = [
            StatusCode::PRECONDITION_FAILED,
            StatusCode::PRECONDITION_REQUIRED,
        ];
        if !wants_version.contains(&reply.status) {
            return Ok(reply);
        }
        let system = self.read_system(deadline).await?;
        let Some(etag) = system.etag() else {
            return Ok(reply);
        };
        let ask = RedfishRequest::power_reset(target, way.reset).with_if_match(etag);
        self.client.send_logged_in(&ask, deadline).await
    }

    /// BMCs answer 400 and 409 if the state is already reached, and for many other reasons; a
    /// reading decides.
    async fn resolve_rejected_command(
        &self,
        command: PowerCommand,
        reply: &RedfishReply,
        deadline: Deadline,
    ) -> Result<CommandAnswer, BmcFault> {
        match self.read_power_state(deadline).await {
            Ok(reading) if reading == goal_reading(command) => Ok(CommandAnswer::AlreadyThere),
            Ok(_) | Err(_) => Err(reply.to_fault()),
        }
    }
}

/// The state that a command should reach.
fn goal_reading(command: PowerCommand) -> PowerReading {
    match command {
        PowerCommand::On => PowerReading::On,
        PowerCommand::SoftOff | PowerCommand::Off => PowerReading::Off,
    }
}
