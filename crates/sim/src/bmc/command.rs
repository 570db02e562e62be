//! How a simulated BMC answers and accepts reset commands.

use std::time::Duration;

use bytes::Bytes;
use http::header::IF_MATCH;
use http::{Request, Response};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::bmc_state::BmcState;
use super::fault::BmcFaultKind;
use super::fault_values;
use super::maker_profile::CommandAnswerStyle;
use super::reset::{ResetEffect, ResetType};
use super::responses;
use super::sim_bmc::SimBmc;
use super::task::TaskEnding;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedCommand {
    /// True time of arrival.
    pub at: Timestamp,
    /// The id of the system.
    pub system: String,
    /// The kind of reset; `None` if the request named no known kind.
    pub kind: Option<ResetType>,
    /// The HTTP status of the answer; `None` if the BMC never answered.
    pub status: Option<u16>,
}

pub(super) enum SimBmcOutcome {
    Answer(Response<Bytes>),
    /// The client never gets an answer.
    Silence,
}

pub(super) fn parse_reset_type(request: &Request<Bytes>) -> Option<ResetType> {
    let body: Value = serde_json::from_slice(request.body()).ok()?;
    ResetType::parse(body["ResetType"].as_str()?)
}

impl SimBmc {
    /// Answers `ComputerSystem.Reset`.
    pub(super) fn handle_reset(
        &self,
        held: &mut BmcState,
        id: &str,
        request: &Request<Bytes>,
    ) -> SimBmcOutcome {
        match self.check_reset(held, id, request) {
            Ok(effect) => self.accept_command(held, id, effect),
            Err(refusal) => SimBmcOutcome::Answer(*refusal),
        }
    }

    /// Returns the effect of the command, or the answer if it has none.
    fn check_reset(
        &self,
        held: &mut BmcState,
        id: &str,
        request: &Request<Bytes>,
    ) -> Result<ResetEffect, Box<Response<Bytes>>> {
        if held
            .faults
            .has_fault(|what| *what == BmcFaultKind::NoSuchSystem)
        {
            return Err(Box::new(responses::not_found_response()));
        }
        if self.0.spec.profile.wants_etag {
            self.check_etag(held, id, request)?;
        }
        let unknown = || refused_response(400, "ActionParameterNotSupported", "no such ResetType");
        let kind = parse_reset_type(request).ok_or_else(unknown)?;
        if !self.accepted_reset_types(held).contains(&kind) {
            return Err(unknown());
        }
        let system = held
            .find_system(id)
            .ok_or_else(|| Box::new(responses::not_found_response()))?;
        let effect = kind.effect_on_host(self.is_reported_on(system));
        effect.ok_or_else(|| Box::new(self.already_there_response(held)))
    }

    /// Refuses a command whose `If-Match` does not match the system's current document.
    fn check_etag(
        &self,
        held: &mut BmcState,
        id: &str,
        request: &Request<Bytes>,
    ) -> Result<(), Box<Response<Bytes>>> {
        let now = self
            .system_document(held, id)
            .as_ref()
            .map(responses::document_etag);
        let said = request.headers().get(IF_MATCH);
        match said.and_then(|tag| tag.to_str().ok()) {
            Some(tag) if tag == "*" || now.as_deref() == Some(tag) => Ok(()),
            Some(_) => Err(refused_response(
                412,
                "PreconditionFailed",
                "it changed meanwhile",
            )),
            None => Err(refused_response(
                428,
                "PreconditionRequired",
                "If-Match is missing",
            )),
        }
    }

    fn already_there_response(&self, held: &mut BmcState) -> Response<Bytes> {
        let shape = &self.0.spec.profile;
        match held
            .faults
            .strike_first(fault_values::already_there_status)
            .unwrap_or(shape.already)
        {
            204 => responses::empty_response(204),
            code => {
                let text = "the system is in that state already";
                responses::extended_message(code, shape.already_message, text)
            }
        }
    }

    /// Accepts a command: schedules its effect and makes the answer.
    fn accept_command(&self, held: &mut BmcState, id: &str, effect: ResetEffect) -> SimBmcOutcome {
        let fails = |what: &BmcFaultKind| (*what == BmcFaultKind::TaskFails).then_some(());
        if held.faults.strike_first(fails).is_some() {
            let task = held
                .tasks
                .begin_task(TaskEnding::Fails(Instant::now() + self.0.spec.acts_after));
            return SimBmcOutcome::Answer(held.task_accepted_response(task, false));
        }
        let lost = held.faults.strike_first(fault_values::lost_answer_delay);
        let after = lost.unwrap_or(self.0.spec.acts_after);
        let after = self.schedule_effect(held, id, effect, after);
        match lost {
            Some(_) => SimBmcOutcome::Silence,
            None => SimBmcOutcome::Answer(self.accepted_response(held, after)),
        }
    }

    fn accepted_response(&self, held: &mut BmcState, after: Duration) -> Response<Bytes> {
        let never = |what: &BmcFaultKind| (*what == BmcFaultKind::TaskNeverEnds).then_some(());
        if held.faults.strike_first(never).is_some() {
            let task = held.tasks.begin_task(TaskEnding::NeverEnds);
            return held.task_accepted_response(task, false);
        }
        let unnamed = |what: &BmcFaultKind| (*what == BmcFaultKind::TaskUnnamed).then_some(());
        if held.faults.strike_first(unnamed).is_some() {
            return responses::empty_response(202);
        }
        match self.0.spec.profile.answers {
            CommandAnswerStyle::NoContent => responses::empty_response(204),
            CommandAnswerStyle::Message => {
                responses::extended_message(200, "Base.1.8.Success", "done")
            }
            answers @ (CommandAnswerStyle::Task | CommandAnswerStyle::Monitor) => {
                let task = held
                    .tasks
                    .begin_task(TaskEnding::Done(Instant::now() + after));
                held.task_accepted_response(task, answers == CommandAnswerStyle::Monitor)
            }
        }
    }
}

fn refused_response(code: u16, id: &str, text: &str) -> Box<Response<Bytes>> {
    Box::new(responses::extended_message(
        code,
        &format!("Base.1.8.{id}"),
        text,
    ))
}
