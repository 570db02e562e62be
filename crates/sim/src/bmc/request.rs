//! Answers one HTTP request of a BMC's client.

use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};

use super::bmc_state::BmcState;
use super::command::{self, ReceivedCommand, SimBmcOutcome};
use super::fault::{BmcFaultKind, FaultScope};
use super::fault_values;
use super::responses;
use super::route::RedfishRoute;
use super::sim_bmc::SimBmc;

#[derive(Debug)]
pub enum BmcReply {
    Answer(Response<Bytes>),
    /// Half of this answer's body, then nothing more.
    Half(Response<Bytes>),
    /// No answer, on a connection that stays open.
    Silence,
    /// The BMC closes the connection.
    Broken,
    /// The BMC accepts no connection.
    NoConnection,
}

/// Counts of requests to a BMC, including those that met faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounters {
    pub requests: u64,
    /// Reads of a system's document.
    pub reads: u64,
    pub commands: u64,
    /// Logins, including failed ones.
    pub logins: u64,
    /// Requests that were answered 401, including failed logins. Too many lock an account.
    pub unauthorized: u64,
}

impl SimBmc {
    /// Answers a request. The BMC carries it out when the future is first polled. To drop the
    /// future after that is to be a client that does not wait for the answer.
    pub async fn answer_request(&self, request: Request<Bytes>) -> BmcReply {
        let (reply, after) = self.receive_request(&request);
        // A sleep of zero takes a millisecond of real time.
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        reply
    }

    /// Returns the reply and the delay before it.
    fn receive_request(&self, request: &Request<Bytes>) -> (BmcReply, Duration) {
        let route = RedfishRoute::of_request(request.method(), request.uri().path());
        let scope = route.fault_scope();
        let mut held = self.lock_state();
        if !held.is_alive() || held.strike_fault(scope, &BmcFaultKind::Dead) {
            return (BmcReply::NoConnection, Duration::ZERO);
        }
        self.count_request(&mut held, &route, request);
        let slow = held
            .faults
            .strike_in_scope(scope, fault_values::slow_duration)
            .unwrap_or_default();
        let reply = match held.reply_before_processing(scope, request) {
            Some(reply) => reply,
            None => self.reply_after_processing(&mut held, scope, &route, request),
        };
        held.record_reply(scope, &reply);
        (
            self.with_clock_date(&held, reply),
            self.0.spec.answers_after + slow,
        )
    }

    fn count_request(&self, held: &mut BmcState, route: &RedfishRoute, request: &Request<Bytes>) {
        held.counters.requests += 1;
        match route.fault_scope() {
            FaultScope::Anything => {}
            FaultScope::Reads => held.counters.reads += 1,
            FaultScope::Commands => held.counters.commands += 1,
            FaultScope::Logins => held.counters.logins += 1,
        }
        if let RedfishRoute::Reset(system) = route {
            held.received.push(ReceivedCommand {
                at: self.0.spec.clock.now(),
                system: system.clone(),
                kind: command::parse_reset_type(request),
                status: None,
            });
        }
    }

    /// Carries out the request, then lets faults change the reply.
    fn reply_after_processing(
        &self,
        held: &mut BmcState,
        scope: FaultScope,
        route: &RedfishRoute,
        request: &Request<Bytes>,
    ) -> BmcReply {
        let answer = match self.process_request(held, route, request) {
            SimBmcOutcome::Silence => return BmcReply::Silence,
            SimBmcOutcome::Answer(answer) => answer,
        };
        if held.strike_fault(scope, &BmcFaultKind::HalfBody) {
            return BmcReply::Half(answer);
        }
        if !answer.body().is_empty() && held.strike_fault(scope, &BmcFaultKind::Garbage) {
            return BmcReply::Answer(answer.map(|_| Bytes::from_static(b"<html>\x00?")));
        }
        BmcReply::Answer(answer)
    }

    fn process_request(
        &self,
        held: &mut BmcState,
        route: &RedfishRoute,
        request: &Request<Bytes>,
    ) -> SimBmcOutcome {
        if !route.is_unauthenticated() && !self.is_authorized(held, request.headers()) {
            return SimBmcOutcome::Answer(responses::unauthorized_response());
        }
        let answer = match route {
            RedfishRoute::Root => responses::json_document(200, &self.service_root_document(held)),
            RedfishRoute::Systems => held.system_collection_document(),
            RedfishRoute::System(id) => match self.system_document(held, id) {
                Some(body) => self.system_response(body),
                None => responses::not_found_response(),
            },
            RedfishRoute::ActionInfo(id) => self.action_info_document(held, id),
            RedfishRoute::Reset(id) => return self.handle_reset(held, id, request),
            RedfishRoute::SessionService => self.session_service_document(held),
            RedfishRoute::Login => self.handle_login(held, request),
            RedfishRoute::Logout(id) => Self::handle_logout(held, id),
            RedfishRoute::Task(number) => held.task_document(*number),
            RedfishRoute::Monitor(number) => held.task_monitor_response(*number),
            RedfishRoute::Nothing => responses::not_found_response(),
            RedfishRoute::NotAllowed => responses::empty_response(405),
        };
        SimBmcOutcome::Answer(answer)
    }

    fn with_clock_date(&self, held: &BmcState, reply: BmcReply) -> BmcReply {
        let now = held.bmc_clock_time(self.0.spec.clock.now());
        match reply {
            BmcReply::Answer(answer) => BmcReply::Answer(responses::with_date(answer, now)),
            BmcReply::Half(answer) => BmcReply::Half(responses::with_date(answer, now)),
            BmcReply::Silence | BmcReply::Broken | BmcReply::NoConnection => reply,
        }
    }
}

impl BmcState {
    /// Returns the reply of a fault that takes effect before the request is carried out.
    fn reply_before_processing(
        &mut self,
        scope: FaultScope,
        request: &Request<Bytes>,
    ) -> Option<BmcReply> {
        if self.strike_fault(scope, &BmcFaultKind::Hang) {
            return Some(BmcReply::Silence);
        }
        if self.strike_fault(scope, &BmcFaultKind::Breaks) {
            return Some(BmcReply::Broken);
        }
        if let Some(code) = self
            .faults
            .strike_in_scope(scope, fault_values::refusal_status)
        {
            return Some(BmcReply::Answer(refusal_response(code)));
        }
        let elsewhere = || Self::foreign_link(request.uri().path());
        self.strike_fault(scope, &BmcFaultKind::Redirects).then(|| {
            BmcReply::Answer(responses::with_location(
                responses::empty_response(307),
                &elsewhere(),
            ))
        })
    }

    fn strike_fault(&mut self, scope: FaultScope, what: &BmcFaultKind) -> bool {
        let is_it = |standing: &BmcFaultKind| (standing == what).then_some(());
        self.faults.strike_in_scope(scope, is_it).is_some()
    }

    /// Counts the reply and records its status.
    fn record_reply(&mut self, scope: FaultScope, reply: &BmcReply) {
        let BmcReply::Answer(answer) = reply else {
            return;
        };
        let status = answer.status().as_u16();
        if status == 401 {
            self.counters.unauthorized += 1;
        }
        if let (FaultScope::Commands, Some(received)) = (scope, self.received.last_mut()) {
            received.status = Some(status);
        }
    }

    /// The time by the BMC's own clock.
    fn bmc_clock_time(&self, now: Timestamp) -> Timestamp {
        let skewed = |ahead: Duration, behind: Duration| {
            let by = |time| SignedDuration::try_from(time).unwrap_or(SignedDuration::ZERO);
            now.saturating_add(by(ahead) - by(behind)).unwrap_or(now)
        };
        match self.faults.find_fault(fault_values::clock_skew) {
            Some((ahead, behind)) => skewed(ahead, behind),
            None => now,
        }
    }
}

fn refusal_response(code: u16) -> Response<Bytes> {
    let mut answer = match code {
        401 => responses::unauthorized_response(),
        code => responses::extended_message(code, "Base.1.8.GeneralError", "it will not"),
    };
    if code == 503 {
        responses::set_header(&mut answer, RETRY_AFTER, "5");
    }
    answer
}
