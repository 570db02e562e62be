//! Sessions and authentication of a simulated BMC.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::bmc_state::BmcState;
use super::fault::BmcFaultKind;
use super::maker_profile::SessionSupport;
use super::responses;
use super::sim_bmc::SimBmc;

const AUTH_TOKEN_HEADER: HeaderName = HeaderName::from_static("x-auth-token");

/// The sessions of one BMC, by token.
#[derive(Debug, Default)]
pub(super) struct BmcSessions {
    made: u64,
    live: BTreeMap<String, BmcSession>,
}

#[derive(Debug)]
struct BmcSession {
    id: String,
    used: Instant,
}

impl BmcSessions {
    /// Forgets sessions that were unused for `life`.
    pub fn expire_sessions(&mut self, life: Duration) {
        self.live.retain(|_, session| session.used.elapsed() < life);
    }

    pub fn count_sessions(&self) -> usize {
        self.live.len()
    }

    fn open_session(&mut self, token: String) -> String {
        self.made += 1;
        let id = self.made.to_string();
        let used = Instant::now();
        let session = BmcSession {
            id: id.clone(),
            used,
        };
        self.live.insert(token, session);
        id
    }

    fn touch_session(&mut self, token: &str) -> bool {
        let session = self.live.get_mut(token);
        session
            .map(|session| session.used = Instant::now())
            .is_some()
    }

    fn close_session(&mut self, id: &str) -> bool {
        let before = self.live.len();
        self.live.retain(|_, session| session.id != id);
        self.live.len() < before
    }
}

impl SimBmc {
    /// Returns whether the request carries a valid session token or valid basic credentials.
    pub(super) fn is_authorized(&self, held: &mut BmcState, headers: &HeaderMap) -> bool {
        if let Some(token) = header_text(headers, &AUTH_TOKEN_HEADER) {
            held.sessions.expire_sessions(self.0.spec.session_life);
            let forgets = |what: &BmcFaultKind| (*what == BmcFaultKind::SessionsEnd).then_some(());
            if held.faults.strike_first(forgets).is_some() {
                held.sessions.live.remove(token);
            }
            return held.sessions.touch_session(token);
        }
        let is_taken = match self.0.spec.profile.sessions {
            SessionSupport::Service { basic } => basic,
            SessionSupport::None => true,
        };
        match header_text(headers, &AUTHORIZATION) {
            Some(basic) if is_taken => {
                *basic == *self.basic_auth_value(held) && !held.strike_wrong_credentials()
            }
            Some(_) | None => false,
        }
    }

    pub(super) fn handle_login(
        &self,
        held: &mut BmcState,
        request: &Request<Bytes>,
    ) -> Response<Bytes> {
        if self.0.spec.profile.sessions == SessionSupport::None {
            return responses::not_found_response();
        }
        let said: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let is_right = said["UserName"] == self.0.spec.username.as_str()
            && said["Password"] == held.password.as_str();
        if !is_right || held.strike_wrong_credentials() {
            return responses::unauthorized_response();
        }
        held.sessions.expire_sessions(self.0.spec.session_life);
        if held.sessions.count_sessions() >= self.0.spec.session_limit {
            let text = "there are too many sessions";
            return responses::extended_message(503, "Base.1.8.SessionLimitExceeded", text);
        }
        let token = held.stream.next_uuid();
        let id = held.sessions.open_session(token.clone());
        let path = format!("/redfish/v1/SessionService/Sessions/{id}");
        let name = &self.0.spec.username;
        let body = json!({ "@odata.id": path, "Id": id, "Name": "Session", "UserName": name });
        let mut answer = responses::with_location(
            responses::json_document(201, &body),
            &held.link_to_path(&path),
        );
        responses::set_header(&mut answer, AUTH_TOKEN_HEADER, &token);
        answer
    }

    pub(super) fn handle_logout(held: &mut BmcState, id: &str) -> Response<Bytes> {
        if held.sessions.close_session(id) {
            responses::empty_response(204)
        } else {
            responses::not_found_response()
        }
    }

    /// The `Authorization` value of a client that uses basic authentication.
    fn basic_auth_value(&self, held: &BmcState) -> String {
        let both = format!("{}:{}", self.0.spec.username, held.password);
        // `ByteString` is the only Base64 encoder among the dependencies.
        let encoded = serde_json::to_value(k8s_openapi::ByteString(both.into_bytes()));
        let encoded = encoded.expect("bytes are a JSON string");
        format!("Basic {}", encoded.as_str().unwrap_or_default())
    }
}

impl BmcState {
    fn strike_wrong_credentials(&mut self) -> bool {
        let other = |what: &BmcFaultKind| (*what == BmcFaultKind::WrongCredentials).then_some(());
        self.faults.strike_first(other).is_some()
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
