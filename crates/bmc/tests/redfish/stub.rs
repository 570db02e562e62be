//! A stub BMC that serves documents in process: it checks logins and carries out commands at once,
//! unless a test sets other answers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::redfish::{RedfishDriver, RedfishTransport};
use dogwatch_bmc::{BmcFault, Credentials, Password};
use dogwatch_core::power::BmcAddress;
use futures::future::{BoxFuture, pending};
use http::{Method, Request, Response};
use serde_json::{Value, json};

pub const USER: &str = "admin";
pub const PASSWORD: &str = "sekret16";
/// `admin:sekret16`.
pub const BASIC: &str = "Basic YWRtaW46c2VrcmV0MTY=";
pub const ROOT: &str = "/redfish/v1/";
pub const WITHIN: Duration = Duration::from_secs(10);

/// An answer that replaces the stub's own.
#[derive(Clone)]
pub enum Step {
    Answer(u16, Vec<(&'static str, String)>, Value),
    Fails(BmcFault),
    Hangs,
}

pub fn status(status: u16) -> Step {
    Step::Answer(status, Vec::new(), Value::Null)
}

pub fn document(document: Value) -> Step {
    Step::Answer(200, Vec::new(), document)
}

pub fn error(status: u16, id: &str, message: &str) -> Step {
    let info = json!([{"MessageId": id, "Message": message}]);
    let error = json!({"error": {"code": id, "@Message.ExtendedInfo": info}});
    Step::Answer(status, Vec::new(), error)
}

pub fn with_header(step: Step, name: &'static str, value: &str) -> Step {
    match step {
        Step::Answer(status, mut headers, body) => {
            headers.push((name, value.to_owned()));
            Step::Answer(status, headers, body)
        }
        Step::Fails(_) | Step::Hangs => step,
    }
}

#[derive(Default)]
pub struct State {
    pub documents: BTreeMap<String, Value>,
    /// Used in order; when none is left, the stub answers itself.
    instead: BTreeMap<String, VecDeque<Step>>,
    tokens: BTreeSet<String>,
    logins: usize,
    /// `GET /redfish/v1/`, `POST …/ComputerSystem.Reset ForceOff`; a refused request begins with
    /// `!`.
    log: Vec<String>,
    /// The `If-Match` of each reset.
    pub versions: Vec<Option<String>>,
    /// Present number of concurrent requests, and the maximum so far.
    under_way: usize,
    pub most_under_way: usize,
}

#[derive(Clone, Default)]
pub struct Stub(Arc<Mutex<State>>);

impl Stub {
    pub fn of(fixture: &str) -> Self {
        let stub = Self::default();
        stub.lock().documents = serde_json::from_str(fixture).expect("a fixture");
        stub
    }

    /// A plain BMC with one system.
    pub fn plain() -> Self {
        Self::of(include_str!("fixtures/dell.json"))
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with it")
    }

    /// Sets the next answers to this request.
    pub fn instead(&self, request: &str, steps: impl IntoIterator<Item = Step>) -> &Self {
        let mut state = self.lock();
        let queue = state.instead.entry(request.to_owned()).or_default();
        queue.extend(steps);
        drop(state);
        self
    }

    /// Changes the document of the only system.
    pub fn system(&self, change: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        let mut documents = state.documents.iter_mut();
        let system = documents.find(|(_, document)| document.get("PowerState").is_some());
        change(system.expect("a system").1);
    }

    pub fn power(&self) -> Value {
        let mut power = Value::Null;
        self.system(|system| power = system["PowerState"].clone());
        power
    }

    pub fn end_sessions(&self) {
        self.lock().tokens.clear();
    }

    pub fn open_sessions(&self) -> usize {
        self.lock().tokens.len()
    }

    /// Returns the requests since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().log)
    }

    pub fn driver(&self) -> RedfishDriver {
        self.driver_at("redfish://bmc.example")
    }

    pub fn driver_at(&self, address: &str) -> RedfishDriver {
        self.driver_with(address, PASSWORD)
    }

    pub fn driver_with(&self, address: &str, password: &str) -> RedfishDriver {
        let credentials = Credentials {
            username: USER.into(),
            password: Password::new(password),
            ca: None,
        };
        let address = BmcAddress::parse(address).expect("an address");
        RedfishDriver::over_transport(Arc::new(self.clone()), &address, credentials)
            .expect("Redfish")
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, BmcFault> {
        let step = {
            let mut state = self.lock();
            state.under_way += 1;
            state.most_under_way = state.most_under_way.max(state.under_way);
            state.take(&request)
        };
        tokio::task::yield_now().await;
        let answer = match step {
            Step::Answer(status, headers, body) => Ok(response(status, &headers, &body)),
            Step::Fails(fault) => Err(fault),
            Step::Hangs => pending().await,
        };
        self.lock().under_way -= 1;
        answer
    }
}

impl RedfishTransport for Stub {
    fn send_request(
        &self,
        request: Request<Bytes>,
        _within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        Box::pin(self.answer(request))
    }
}

impl State {
    fn take(&mut self, request: &Request<Bytes>) -> Step {
        let body = serde_json::from_slice::<Value>(request.body()).unwrap_or_default();
        let asked = format!("{} {}", request.method(), request.uri());
        let reset = body["ResetType"].as_str().map(ToOwned::to_owned);
        let queue = self.instead.get_mut(&asked);
        let instead = queue.and_then(VecDeque::pop_front);
        let step = instead.unwrap_or_else(|| self.own_answer(request, &body));
        let refused = matches!(step, Step::Answer(401, ..));
        let mark = if refused { "!" } else { "" };
        let reset = reset.map(|reset| format!(" {reset}")).unwrap_or_default();
        self.log.push(format!("{mark}{asked}{reset}"));
        step
    }

    fn own_answer(&mut self, request: &Request<Bytes>, body: &Value) -> Step {
        let path = request.uri().path();
        let is_login = request.method() == Method::POST && path.contains("/Sessions");
        match () {
            () if is_login => self.log_in(path, body),
            () if path != ROOT && !self.lets_in(request) => status(401),
            () if request.method() == Method::DELETE => {
                let token = path.rsplit('/').next().unwrap_or_default();
                self.tokens.remove(token);
                status(204)
            }
            () if request.method() == Method::POST => self.reset(request, body),
            () => self
                .documents
                .get(path)
                .cloned()
                .map_or(status(404), document),
        }
    }

    fn log_in(&mut self, path: &str, body: &Value) -> Step {
        if body["UserName"] != USER || body["Password"] != PASSWORD {
            return status(401);
        }
        self.logins += 1;
        let token = format!("token-{}", self.logins);
        // With its IP address, as BMCs that are addressed by name do.
        let location = format!("https://192.0.2.1{}/{token}", path.trim_end_matches('/'));
        let step = with_header(status(201), "x-auth-token", &token);
        self.tokens.insert(token);
        with_header(step, "location", &location)
    }

    fn lets_in(&self, request: &Request<Bytes>) -> bool {
        let header = |name| {
            request
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let by_token = header("x-auth-token").is_some_and(|token| self.tokens.contains(token));
        by_token || header("authorization") == Some(BASIC)
    }

    fn reset(&mut self, request: &Request<Bytes>, body: &Value) -> Step {
        let version = request.headers().get("if-match");
        let version = version.map(|version| version.to_str().expect("text").to_owned());
        self.versions.push(version);
        let power = match body["ResetType"].as_str() {
            Some("On" | "ForceOn") => "On",
            Some("ForceOff" | "GracefulShutdown" | "PushPowerButton") => "Off",
            _ => return status(400),
        };
        let mut documents = self.documents.values_mut();
        let system = documents.find(|document| document.get("PowerState").is_some());
        system.expect("a system")["PowerState"] = power.into();
        status(204)
    }
}

fn response(status: u16, headers: &[(&'static str, String)], body: &Value) -> Response<Bytes> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    let body = match body.as_str() {
        // The body may not be JSON.
        Some(text) => text.to_owned(),
        None if body.is_null() => String::new(),
        None => body.to_string(),
    };
    let body = Bytes::from(body);
    response.body(body).expect("a response")
}
