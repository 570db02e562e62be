//! Sending a command: once, or twice where the BMC says that it did not take the first one.

use http::StatusCode;

use super::Redfish;
use super::ask::Ask;
use super::caller::nothing_sent;
use super::deadline::Deadline;
use super::reply::Reply;
use super::task;
use super::ways::Way;
use crate::{Answer, Class, Command, Fault, Reading};

impl Redfish {
    /// One command at a time: a second one waits for the first one's end.
    pub(super) async fn command(
        &self,
        command: Command,
        deadline: Deadline,
    ) -> Result<Answer, Fault> {
        let _turn = deadline.bound(self.turn.lock()).await?;
        let (way, target) = self
            .prepared(command, deadline)
            .await
            .map_err(nothing_sent)?;
        if let Some(state) = way.only_when
            && let Some(answer) = self.before_pressing(command, state, deadline).await?
        {
            return Ok(answer);
        }
        let reply = self.post(&target, way, deadline).await?;
        match reply.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                self.forget();
                Err(reply.fault())
            }
            StatusCode::BAD_REQUEST | StatusCode::CONFLICT => {
                self.unless_there(command, &reply, deadline).await
            }
            status if status.is_success() => task::finish(&self.caller, &reply, deadline).await,
            _ => Err(reply.fault()),
        }
    }

    /// How, and where to.
    async fn prepared(&self, command: Command, deadline: Deadline) -> Result<(Way, String), Fault> {
        let known = self.known_reset(deadline).await?;
        let unsupported = || {
            let message = format!(
                "its reset types have none for {command}: {}",
                known.abilities.allowed.join(", ")
            );
            Fault::harmless(Class::Unsupported, message)
        };
        let way = known.abilities.way(command).ok_or_else(unsupported)?;
        let target = self.caller.origin.path(&known.target)?;
        Ok((way, target))
    }

    /// The button toggles: it is pressed only in the state that it is meant for.
    async fn before_pressing(
        &self,
        command: Command,
        state: Reading,
        deadline: Deadline,
    ) -> Result<Option<Answer>, Fault> {
        let reading = self.reading(deadline).await?;
        match reading {
            _ if reading == state => Ok(None),
            _ if reading == goal(command) => Ok(Some(Answer::AlreadyThere)),
            Reading::On | Reading::PoweringOn | Reading::PoweringOff | Reading::Off => {
                let message = "its power button is not pressed while the power changes";
                Err(Fault::harmless(Class::Refused, message))
            }
        }
    }

    /// A BMC that wants to know which version of the system we mean did not run the command without.
    async fn post(&self, target: &str, way: Way, deadline: Deadline) -> Result<Reply, Fault> {
        let reply = self
            .caller
            .ask(&Ask::reset(target, way.reset), deadline)
            .await?;
        let wants_version = [
            StatusCode::PRECONDITION_FAILED,
            StatusCode::PRECONDITION_REQUIRED,
        ];
        if !wants_version.contains(&reply.status) {
            return Ok(reply);
        }
        let system = self.system(deadline).await?;
        let Some(etag) = system.etag() else {
            return Ok(reply);
        };
        let ask = Ask::reset(target, way.reset).if_match(etag);
        self.caller.ask(&ask, deadline).await
    }

    /// 400 and 409 are what BMCs say to a state that is there already, and to much else: it is read.
    async fn unless_there(
        &self,
        command: Command,
        reply: &Reply,
        deadline: Deadline,
    ) -> Result<Answer, Fault> {
        match self.reading(deadline).await {
            Ok(reading) if reading == goal(command) => Ok(Answer::AlreadyThere),
            Ok(_) | Err(_) => Err(reply.fault()),
        }
    }
}

/// The state that a command is for.
fn goal(command: Command) -> Reading {
    match command {
        Command::On => Reading::On,
        Command::SoftOff | Command::Off => Reading::Off,
    }
}
