//! Who is logged in.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer;
use super::fault::What;
use super::held::Held;
use super::shape::Sessions;
use super::simulated::SimBmc;

const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// The sessions of one BMC, by their tokens.
#[derive(Debug, Default)]
pub(super) struct LoggedIn {
    made: u64,
    live: BTreeMap<String, Session>,
}

#[derive(Debug)]
struct Session {
    id: String,
    used: Instant,
}

impl LoggedIn {
    /// Forgets those that nobody used for so long.
    pub fn expire(&mut self, life: Duration) {
        self.live.retain(|_, session| session.used.elapsed() < life);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.live.len()
    }

    fn open(&mut self, token: String) -> String {
        self.made += 1;
        let id = self.made.to_string();
        let used = Instant::now();
        let session = Session {
            id: id.clone(),
            used,
        };
        self.live.insert(token, session);
        id
    }

    fn uses(&mut self, token: &str) -> bool {
        let session = self.live.get_mut(token);
        session
            .map(|session| session.used = Instant::now())
            .is_some()
    }

    fn close(&mut self, id: &str) -> bool {
        let before = self.live.len();
        self.live.retain(|_, session| session.id != id);
        self.live.len() < before
    }
}

impl SimBmc {
    /// Whether who asks may.
    pub(super) fn admits(&self, held: &mut Held, headers: &HeaderMap) -> bool {
        if let Some(token) = text(headers, &TOKEN) {
            held.sessions.expire(self.0.spec.session_life);
            let forgets = |what: &What| (*what == What::SessionsEnd).then_some(());
            if held.faults.strike(forgets).is_some() {
                held.sessions.live.remove(token);
            }
            return held.sessions.uses(token);
        }
        let is_taken = match self.0.spec.shape.sessions {
            Sessions::Service { basic } => basic,
            Sessions::None => true,
        };
        match text(headers, &AUTHORIZATION) {
            Some(basic) if is_taken => {
                *basic == *self.basic(held) && !held.knows_another_password()
            }
            Some(_) | None => false,
        }
    }

    /// A login.
    pub(super) fn login(&self, held: &mut Held, request: &Request<Bytes>) -> Response<Bytes> {
        if self.0.spec.shape.sessions == Sessions::None {
            return answer::nothing_there();
        }
        let said: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let is_right = said["UserName"] == self.0.spec.username.as_str()
            && said["Password"] == held.password.as_str();
        if !is_right || held.knows_another_password() {
            return answer::unauthorized();
        }
        held.sessions.expire(self.0.spec.session_life);
        if held.sessions.count() >= self.0.spec.session_limit {
            let text = "there are too many sessions";
            return answer::message(503, "Base.1.8.SessionLimitExceeded", text);
        }
        let token = held.stream.uuid();
        let id = held.sessions.open(token.clone());
        let path = format!("/redfish/v1/SessionService/Sessions/{id}");
        let name = &self.0.spec.username;
        let body = json!({ "@odata.id": path, "Id": id, "Name": "Session", "UserName": name });
        let mut answer = answer::at(answer::document(201, &body), &held.link(&path));
        answer::header(&mut answer, TOKEN, &token);
        answer
    }

    /// A logout.
    pub(super) fn logout(held: &mut Held, id: &str) -> Response<Bytes> {
        if held.sessions.close(id) {
            answer::empty(204)
        } else {
            answer::nothing_there()
        }
    }

    /// What a client says that authenticates without a session.
    fn basic(&self, held: &Held) -> String {
        let both = format!("{}:{}", self.0.spec.username, held.password);
        // The one Base64 that is here already.
        let encoded = serde_json::to_value(k8s_openapi::ByteString(both.into_bytes()));
        let encoded = encoded.expect("bytes are a JSON string");
        format!("Basic {}", encoded.as_str().unwrap_or_default())
    }
}

impl Held {
    fn knows_another_password(&mut self) -> bool {
        let other = |what: &What| (*what == What::WrongCredentials).then_some(());
        self.faults.strike(other).is_some()
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
