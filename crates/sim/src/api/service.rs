//! The server as a service: under an ordinary client, in the process, with faults in between.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::sleep;

use super::answer::{Answer, AnswerBody};
use super::audit::AuditEntry;
use super::faults::{FaultEffect, Faults, RequestInfo};
use super::handle::Reply;
use super::protobuf;
use super::request::{Query, Request, Response};
use super::store::{Options, Store};
use super::{ApiError, Denial};
use crate::clock::Clock;

/// What a client sees of a connection that broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The request, or its answer, was lost.
    #[error("connection reset by peer")]
    Lost,
    /// The request's body could not be read.
    #[error("the request's body broke off")]
    Body,
}

/// A handle on the embedded API server. Clones are handles on the same one.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Mutex<Store>,
    faults: Faults,
}

impl ApiServer {
    /// An empty cluster that tells time by `clock`.
    pub fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        let store = Mutex::new(Store::new(clock, options));
        Self {
            inner: Arc::new(Inner {
                store,
                faults: Faults::default(),
            }),
        }
    }

    /// The server's memory, for as long as the guard lives. Not to be held across an await.
    ///
    /// # Panics
    /// When a request panicked before.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.inner.store.lock().expect("no request panics")
    }

    /// An ordinary client whose requests are `user`'s. To be made inside a tokio runtime.
    pub fn client(&self, user: &str) -> kube::Client {
        kube::Client::new(self.service(user), "default")
    }

    /// The service under [`ApiServer::client`], for a client of one's own making.
    pub fn service(&self, user: &str) -> ApiService {
        ApiService {
            server: self.clone(),
            user: user.into(),
        }
    }

    /// Serves one request at once, free of faults.
    pub fn handle(&self, request: &Request) -> Reply {
        self.store().handle(request)
    }

    /// Asks `plan` before every request what is to go wrong with it.
    pub fn set_faults(
        &self,
        plan: impl Fn(&RequestInfo) -> Vec<FaultEffect> + Send + Sync + 'static,
    ) {
        self.inner.faults.set_plan(Some(Box::new(plan)));
    }

    /// Nothing goes wrong any longer, but for partitions.
    pub fn clear_faults(&self) {
        self.inner.faults.set_plan(None);
    }

    /// Cuts a user off, watches too, or lets the user in again.
    pub fn partition(&self, user: &str, apart: bool) {
        self.inner.faults.partition(user, apart);
        if apart {
            self.store().cut_watches(Some(user));
        }
    }

    /// Breaks off the watches of a user, or of everybody.
    pub fn cut_watches(&self, user: Option<&str>) {
        self.store().cut_watches(user);
    }

    /// Forgets the history, so that watches which resume are told 410.
    pub fn compact(&self) {
        self.store().compact();
    }

    /// Withholds rights, in place of those withheld before.
    pub fn set_denials(&self, denials: Vec<Denial>) {
        self.store().set_denials(denials);
    }

    /// What was asked so far, oldest first. Empty when the log is off.
    pub fn audit_log(&self) -> Vec<AuditEntry> {
        self.store().audit.entries().to_vec()
    }

    /// Begins the audit log anew.
    pub fn clear_audit_log(&self) {
        self.store().audit.clear();
    }

    /// How many requests were answered, whether logged or not.
    pub fn requests_answered(&self) -> u64 {
        self.store().audit.answered()
    }

    /// Serves one request with what goes wrong with it.
    pub(crate) async fn serve_one(&self, request: Request) -> Result<Answer, ServiceError> {
        let effects = self.inner.faults.of(&request);
        for effect in &effects {
            match effect {
                FaultEffect::LoseRequest => return Err(ServiceError::Lost),
                FaultEffect::DelayRequest(delay) => sleep(*delay).await,
                FaultEffect::CutWatches => self.cut_watches(Some(&request.user)),
                FaultEffect::Duplicate(delay) => self.repeat(request.clone(), *delay),
                FaultEffect::Refuse(code) => return Ok(Answer::whole(refusal(*code))),
                FaultEffect::LoseAnswer | FaultEffect::DelayAnswer(_) => {}
            }
        }
        let answer = match self.handle(&request) {
            Reply::Response(response) => Answer::whole(response),
            Reply::Watch(watch) => Answer::watch(self, watch),
        };
        for effect in &effects {
            match effect {
                FaultEffect::LoseAnswer => return Err(ServiceError::Lost),
                FaultEffect::DelayAnswer(delay) => sleep(*delay).await,
                FaultEffect::LoseRequest
                | FaultEffect::DelayRequest(_)
                | FaultEffect::CutWatches
                | FaultEffect::Duplicate(_)
                | FaultEffect::Refuse(_) => {}
            }
        }
        Ok(answer)
    }

    fn repeat(&self, request: Request, delay: Duration) {
        let server = self.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            drop(server.handle(&request));
        });
    }
}

fn refusal(code: u16) -> Response {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "forbidden: not allowed"),
        410 => ("Expired", "too old resource version"),
        429 => (
            "TooManyRequests",
            "too many requests, please try again later",
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        _ => (
            "InternalError",
            "an error on the server has prevented the request from succeeding",
        ),
    };
    ApiError {
        code,
        reason,
        message: message.into(),
        details: serde_json::Value::Null,
    }
    .into()
}

/// The service that a client of one user talks to.
#[derive(Clone)]
pub struct ApiService {
    server: ApiServer,
    user: Arc<str>,
}

impl tower::Service<http::Request<Body>> for ApiService {
    type Response = http::Response<AnswerBody>;
    type Error = ServiceError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ServiceError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (server, user) = (self.server.clone(), Arc::clone(&self.user));
        Box::pin(async move {
            let request = read(request, &user).await.map_err(|_| ServiceError::Body)?;
            let answer = server.serve_one(request).await?;
            Ok(answer.into_http())
        })
    }
}

/// Takes a request out of HTTP's types.
pub(crate) async fn read<B: http_body::Body>(
    request: http::Request<B>,
    user: &str,
) -> Result<Request, B::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value: &http::HeaderValue| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let (content_type, body) = readable(header(CONTENT_TYPE), body);
    Ok(Request {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        accept: header(ACCEPT),
        content_type,
        user_agent: match header(USER_AGENT) {
            agent if agent.is_empty() => user.to_owned(),
            agent => agent,
        },
        user: user.to_owned(),
        body,
    })
}

/// What kubectl sends as protobuf is as if it had been sent as JSON.
fn readable(content_type: String, body: bytes::Bytes) -> (String, bytes::Bytes) {
    if content_type != protobuf::MEDIA_TYPE {
        return (content_type, body);
    }
    match protobuf::to_json(&body) {
        Some(value) => ("application/json".into(), value.to_string().into()),
        None => (content_type, body),
    }
}
