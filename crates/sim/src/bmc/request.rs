//! One request, from its arrival to what the client gets of it.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};

use super::answer;
use super::command::{self, Outcome, Received};
use super::fault::{Scope, What};
use super::held::Held;
use super::pick;
use super::route::Route;
use super::simulated::SimBmc;

/// What a client gets.
#[derive(Debug)]
pub enum Reply {
    /// An answer.
    Answer(Response<Bytes>),
    /// Half of this answer's body, then nothing more.
    Half(Response<Bytes>),
    /// Nothing, on a connection that stays.
    Silence,
    /// A connection that is closed.
    Broken,
    /// No connection.
    NoConnection,
}

/// How often a BMC was asked for what, faults included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// All requests that arrived.
    pub requests: u64,
    /// Reads of a system.
    pub reads: u64,
    /// Commands.
    pub commands: u64,
    /// Logins, also those that failed.
    pub logins: u64,
    /// Requests that were answered 401, logins among them: what locks an account.
    pub unauthorized: u64,
}

impl SimBmc {
    /// Answers a request. What is asked for is done when it is polled first; dropping it then is a
    /// client that does not wait for the answer.
    pub async fn reply(&self, request: Request<Bytes>) -> Reply {
        let (reply, after) = self.arrived(&request);
        // A sleep of nothing takes a millisecond of real time.
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        reply
    }

    /// The reply, and when it comes.
    fn arrived(&self, request: &Request<Bytes>) -> (Reply, Duration) {
        let route = Route::of(request.method(), request.uri().path());
        let scope = route.scope();
        let mut held = self.held();
        if !held.lives() || held.strikes(scope, &What::Dead) {
            return (Reply::NoConnection, Duration::ZERO);
        }
        self.count(&mut held, &route, request);
        let slow = held.faults.strike_of(scope, pick::slow).unwrap_or_default();
        let reply = match held.early(scope, request) {
            Some(reply) => reply,
            None => self.late(&mut held, scope, &route, request),
        };
        held.note(scope, &reply);
        (self.stamped(&held, reply), self.0.spec.answers_after + slow)
    }

    fn count(&self, held: &mut Held, route: &Route, request: &Request<Bytes>) {
        held.counters.requests += 1;
        match route.scope() {
            Scope::Anything => {}
            Scope::Reads => held.counters.reads += 1,
            Scope::Commands => held.counters.commands += 1,
            Scope::Logins => held.counters.logins += 1,
        }
        if let Route::Reset(system) = route {
            held.received.push(Received {
                at: self.0.spec.clock.now(),
                system: system.clone(),
                kind: command::kind(request),
                status: None,
            });
        }
    }

    /// What is asked for is done, whatever becomes of the answer.
    fn late(
        &self,
        held: &mut Held,
        scope: Scope,
        route: &Route,
        request: &Request<Bytes>,
    ) -> Reply {
        let answer = match self.outcome(held, route, request) {
            Outcome::Silence => return Reply::Silence,
            Outcome::Answer(answer) => answer,
        };
        if held.strikes(scope, &What::HalfBody) {
            return Reply::Half(answer);
        }
        if !answer.body().is_empty() && held.strikes(scope, &What::Garbage) {
            return Reply::Answer(answer.map(|_| Bytes::from_static(b"<html>\x00?")));
        }
        Reply::Answer(answer)
    }

    fn outcome(&self, held: &mut Held, route: &Route, request: &Request<Bytes>) -> Outcome {
        if !route.is_open() && !self.admits(held, request.headers()) {
            return Outcome::Answer(answer::unauthorized());
        }
        let answer = match route {
            Route::Root => answer::document(200, &self.root(held)),
            Route::Systems => held.members(),
            Route::System(id) => match self.system(held, id) {
                Some(body) => self.sent(body),
                None => answer::nothing_there(),
            },
            Route::ActionInfo(id) => self.action_info(held, id),
            Route::Reset(id) => return self.reset(held, id, request),
            Route::SessionService => self.session_service(held),
            Route::Login => self.login(held, request),
            Route::Logout(id) => Self::logout(held, id),
            Route::Task(number) => held.task(*number),
            Route::Monitor(number) => held.monitor(*number),
            Route::Nothing => answer::nothing_there(),
            Route::NotAllowed => answer::empty(405),
        };
        Outcome::Answer(answer)
    }

    fn stamped(&self, held: &Held, reply: Reply) -> Reply {
        let now = held.clock(self.0.spec.clock.now());
        match reply {
            Reply::Answer(answer) => Reply::Answer(answer::dated(answer, now)),
            Reply::Half(answer) => Reply::Half(answer::dated(answer, now)),
            Reply::Silence | Reply::Broken | Reply::NoConnection => reply,
        }
    }
}

impl Held {
    /// What comes before anything is done.
    fn early(&mut self, scope: Scope, request: &Request<Bytes>) -> Option<Reply> {
        if self.strikes(scope, &What::Hang) {
            return Some(Reply::Silence);
        }
        if self.strikes(scope, &What::Breaks) {
            return Some(Reply::Broken);
        }
        if let Some(code) = self.faults.strike_of(scope, pick::refuses) {
            return Some(Reply::Answer(refusal(code)));
        }
        let elsewhere = || Self::elsewhere(request.uri().path());
        self.strikes(scope, &What::Redirects)
            .then(|| Reply::Answer(answer::at(answer::empty(307), &elsewhere())))
    }

    fn strikes(&mut self, scope: Scope, what: &What) -> bool {
        let is_it = |standing: &What| (standing == what).then_some(());
        self.faults.strike_of(scope, is_it).is_some()
    }

    /// What was answered.
    fn note(&mut self, scope: Scope, reply: &Reply) {
        let Reply::Answer(answer) = reply else { return };
        let status = answer.status().as_u16();
        if status == 401 {
            self.counters.unauthorized += 1;
        }
        if let (Scope::Commands, Some(received)) = (scope, self.received.last_mut()) {
            received.status = Some(status);
        }
    }

    /// Its own time.
    fn clock(&self, now: Timestamp) -> Timestamp {
        let skewed = |ahead: Duration, behind: Duration| {
            let by = |time| SignedDuration::try_from(time).unwrap_or(SignedDuration::ZERO);
            now.saturating_add(by(ahead) - by(behind)).unwrap_or(now)
        };
        match self.faults.first(pick::clock) {
            Some((ahead, behind)) => skewed(ahead, behind),
            None => now,
        }
    }
}

fn refusal(code: u16) -> Response<Bytes> {
    let mut answer = match code {
        401 => answer::unauthorized(),
        code => answer::message(code, "Base.1.8.GeneralError", "it will not"),
    };
    if code == 503 {
        answer::header(&mut answer, RETRY_AFTER, "5");
    }
    answer
}
