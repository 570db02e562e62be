//! Commands: how they are answered, and what becomes of them.

use std::time::Duration;

use bytes::Bytes;
use http::header::IF_MATCH;
use http::{Request, Response};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::answer;
use super::fault::What;
use super::held::Held;
use super::pick;
use super::reset::{Effect, ResetType};
use super::shape::Answers;
use super::simulated::SimBmc;
use super::task::Fate;

/// A command that reached a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// When, by the true clock.
    pub at: Timestamp,
    /// For which system.
    pub system: String,
    /// What; `None`: nothing that is one.
    pub kind: Option<ResetType>,
    /// How it was answered; `None`: it never was.
    pub status: Option<u16>,
}

/// What a client gets.
pub(super) enum Outcome {
    /// This.
    Answer(Response<Bytes>),
    /// Nothing, for ever.
    Silence,
}

/// What was asked for.
pub(super) fn kind(request: &Request<Bytes>) -> Option<ResetType> {
    let body: Value = serde_json::from_slice(request.body()).ok()?;
    ResetType::parse(body["ResetType"].as_str()?)
}

impl SimBmc {
    /// `ComputerSystem.Reset`.
    pub(super) fn reset(&self, held: &mut Held, id: &str, request: &Request<Bytes>) -> Outcome {
        match self.may_reset(held, id, request) {
            Ok(effect) => self.take(held, id, effect),
            Err(refusal) => Outcome::Answer(*refusal),
        }
    }

    /// What the command does, or why it does nothing.
    fn may_reset(
        &self,
        held: &mut Held,
        id: &str,
        request: &Request<Bytes>,
    ) -> Result<Effect, Box<Response<Bytes>>> {
        if held.faults.has(|what| *what == What::NoSuchSystem) {
            return Err(Box::new(answer::nothing_there()));
        }
        if self.0.spec.shape.wants_etag {
            self.wants_etag(held, id, request)?;
        }
        let unknown = || refused(400, "ActionParameterNotSupported", "no such ResetType");
        let kind = kind(request).ok_or_else(unknown)?;
        if !self.takes(held).contains(&kind) {
            return Err(unknown());
        }
        let system = held
            .system(id)
            .ok_or_else(|| Box::new(answer::nothing_there()))?;
        let effect = kind.effect(self.believes_on(system));
        effect.ok_or_else(|| Box::new(self.already(held)))
    }

    /// Refuses a command that is not for the system as it is now.
    fn wants_etag(
        &self,
        held: &mut Held,
        id: &str,
        request: &Request<Bytes>,
    ) -> Result<(), Box<Response<Bytes>>> {
        let now = self.system(held, id).as_ref().map(answer::etag);
        let said = request.headers().get(IF_MATCH);
        match said.and_then(|tag| tag.to_str().ok()) {
            Some(tag) if tag == "*" || now.as_deref() == Some(tag) => Ok(()),
            Some(_) => Err(refused(412, "PreconditionFailed", "it changed meanwhile")),
            None => Err(refused(428, "PreconditionRequired", "If-Match is missing")),
        }
    }

    fn already(&self, held: &mut Held) -> Response<Bytes> {
        let shape = &self.0.spec.shape;
        match held.faults.strike(pick::already).unwrap_or(shape.already) {
            204 => answer::empty(204),
            code => {
                let text = "the system is in that state already";
                answer::message(code, shape.already_message, text)
            }
        }
    }

    /// Takes a command: says so, and sees to it.
    fn take(&self, held: &mut Held, id: &str, effect: Effect) -> Outcome {
        let fails = |what: &What| (*what == What::TaskFails).then_some(());
        if held.faults.strike(fails).is_some() {
            let task = held
                .tasks
                .begin(Fate::Fails(Instant::now() + self.0.spec.acts_after));
            return Outcome::Answer(held.accepted(task, false));
        }
        let lost = held.faults.strike(pick::answer_lost);
        let after = lost.unwrap_or(self.0.spec.acts_after);
        let after = self.carry_out(held, id, effect, after);
        match lost {
            Some(_) => Outcome::Silence,
            None => Outcome::Answer(self.taken(held, after)),
        }
    }

    fn taken(&self, held: &mut Held, after: Duration) -> Response<Bytes> {
        let never = |what: &What| (*what == What::TaskNeverEnds).then_some(());
        if held.faults.strike(never).is_some() {
            let task = held.tasks.begin(Fate::Never);
            return held.accepted(task, false);
        }
        let unnamed = |what: &What| (*what == What::TaskUnnamed).then_some(());
        if held.faults.strike(unnamed).is_some() {
            return answer::empty(202);
        }
        match self.0.spec.shape.answers {
            Answers::NoContent => answer::empty(204),
            Answers::Message => answer::message(200, "Base.1.8.Success", "done"),
            answers @ (Answers::Task | Answers::Monitor) => {
                let task = held.tasks.begin(Fate::Done(Instant::now() + after));
                held.accepted(task, answers == Answers::Monitor)
            }
        }
    }
}

fn refused(code: u16, id: &str, text: &str) -> Box<Response<Bytes>> {
    Box::new(answer::message(code, &format!("Base.1.8.{id}"), text))
}
