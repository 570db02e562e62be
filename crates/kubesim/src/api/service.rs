//! The server as a tower service under an ordinary client, in the process, with fault injection.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::sleep;

use super::answer::{AnswerBody, HttpAnswer};
use super::audit::RequestAuditEntry;
use super::faults::{FaultEffect, RequestFaults, RequestInfo};
use super::handle::ApiReply;
use super::protobuf;
use super::request::{ApiRequest, ApiResponse, QueryParameters};
use super::route::{ResourcePath, verb_of_request};
use super::store::{ApiServerOptions, ObjectStore};
use super::watch_faults::{WatchEventFault, WatchEventInfo, WatchFaults};
use super::{ApiError, Denial};
use crate::clock::ClusterClock;

/// A broken connection, as the client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The request or its answer was lost.
    #[error("connection reset by peer")]
    Lost,
    /// Reading the request's body failed.
    #[error("the request's body broke off")]
    Body,
}

/// A handle on the embedded API server. Clones share one server.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<ApiServerInner>,
}

pub(crate) struct ApiServerInner {
    pub(crate) store: Mutex<ObjectStore>,
    faults: RequestFaults,
    pub(crate) watch_faults: WatchFaults,
}

impl ApiServer {
    /// Creates an empty cluster that reads the time from `clock`.
    pub fn new(clock: Arc<dyn ClusterClock>, options: ApiServerOptions) -> Self {
        let store = Mutex::new(ObjectStore::new(clock, options));
        Self {
            inner: Arc::new(ApiServerInner {
                store,
                faults: RequestFaults::default(),
                watch_faults: WatchFaults::default(),
            }),
        }
    }

    /// Locks the server's memory. Do not hold the guard across an await.
    ///
    /// # Panics
    /// When a request panicked before.
    pub fn lock_store(&self) -> MutexGuard<'_, ObjectStore> {
        self.inner.store.lock().expect("no request panics")
    }

    /// An ordinary client that sends requests as `user`. Call it inside a tokio runtime.
    pub fn client_for_user(&self, user: &str) -> kube::Client {
        kube::Client::new(self.service_for_user(user), "default")
    }

    /// The service under [`ApiServer::client_for_user`], to build another client on.
    pub fn service_for_user(&self, user: &str) -> ApiService {
        ApiService {
            server: self.clone(),
            user: user.into(),
        }
    }

    /// Serves one request at once, without faults.
    pub fn handle_request(&self, request: &ApiRequest) -> ApiReply {
        self.lock_store().handle_request(request)
    }

    /// Calls `plan` before every request for the faults of that request.
    pub fn set_faults(
        &self,
        plan: impl Fn(&RequestInfo) -> Vec<FaultEffect> + Send + Sync + 'static,
    ) {
        self.inner.faults.set_plan(Some(Box::new(plan)));
    }

    /// Calls `plan` for every event that a watch of an object is about to deliver.
    pub fn set_watch_faults(
        &self,
        plan: impl Fn(&WatchEventInfo) -> Option<WatchEventFault> + Send + Sync + 'static,
    ) {
        self.inner.watch_faults.set_plan(Some(Box::new(plan)));
    }

    /// Removes the fault plan. Partitions stay.
    pub fn clear_faults(&self) {
        self.inner.faults.set_plan(None);
    }

    /// Cuts a user off, watches included, or reconnects the user.
    pub fn set_partitioned(&self, user: &str, apart: bool) {
        self.inner.faults.set_partitioned(user, apart);
        if apart {
            self.lock_store().cut_watches(Some(user));
        }
    }

    /// Breaks the watches of a user, or of all users.
    pub fn cut_watches(&self, user: Option<&str>) {
        self.lock_store().cut_watches(user);
    }

    /// Drops the history: a watch that resumes gets 410.
    pub fn compact_history(&self) {
        self.lock_store().compact_history();
    }

    /// Sets the denied rights, replacing earlier ones.
    pub fn set_denials(&self, denials: Vec<Denial>) {
        self.lock_store().set_denials(denials);
    }

    /// The requests so far, oldest first. Empty when the log is off.
    pub fn audit_log(&self) -> Vec<RequestAuditEntry> {
        self.lock_store().audit.entries().to_vec()
    }

    pub fn clear_audit_log(&self) {
        self.lock_store().audit.clear();
    }

    /// Number of answered requests, logged or not.
    pub fn requests_answered(&self) -> u64 {
        self.lock_store().audit.answered_count()
    }

    /// Serves one request with its faults.
    pub(crate) async fn serve_with_faults(
        &self,
        request: ApiRequest,
    ) -> Result<HttpAnswer, ServiceError> {
        let effects = self.inner.faults.effects_for_request(&request);
        for effect in &effects {
            match effect {
                FaultEffect::LoseRequest => return Err(ServiceError::Lost),
                FaultEffect::DelayRequest(delay) => sleep(*delay).await,
                FaultEffect::CutWatches => self.cut_watches(Some(&request.user)),
                FaultEffect::Duplicate(delay) => self.spawn_duplicate(request.clone(), *delay),
                FaultEffect::Refuse(code) => {
                    return Ok(HttpAnswer::from_response(refusal_response(*code)));
                }
                FaultEffect::LoseAnswer | FaultEffect::DelayAnswer(_) | FaultEffect::OlderList => {}
            }
        }
        let answer = if effects.contains(&FaultEffect::OlderList) {
            HttpAnswer::from_response(self.answer_older_list(&request))
        } else {
            self.answer_request(&request)
        };
        for effect in &effects {
            match effect {
                FaultEffect::LoseAnswer => return Err(ServiceError::Lost),
                FaultEffect::DelayAnswer(delay) => sleep(*delay).await,
                FaultEffect::LoseRequest
                | FaultEffect::DelayRequest(_)
                | FaultEffect::CutWatches
                | FaultEffect::Duplicate(_)
                | FaultEffect::Refuse(_)
                | FaultEffect::OlderList => {}
            }
        }
        Ok(answer)
    }

    fn answer_request(&self, request: &ApiRequest) -> HttpAnswer {
        let words = ResourcePath::parse(&request.path);
        let verb = words.and_then(|words| verb_of_request(request, &words));
        if self.inner.watch_faults.take_expired(request, verb) {
            return HttpAnswer::from_response(refusal_response(410));
        }
        match self.handle_request(request) {
            ApiReply::Response(response) => HttpAnswer::from_response(response),
            ApiReply::Watch(watch) => HttpAnswer::from_watch(self, request, watch),
        }
    }

    /// A list as a server answers it whose cache lags behind by one change.
    fn answer_older_list(&self, request: &ApiRequest) -> ApiResponse {
        let newest = self
            .inner
            .store
            .lock()
            .expect("no request panics")
            .revision_before(request);
        let older = newest.map(|revision| request.clone().at_revision(revision));
        let answer = |request: &ApiRequest| self.handle_request(request).into_response();
        let older = older
            .and_then(|older| answer(&older))
            .filter(|answer| answer.code < 300);
        older
            .or_else(|| answer(request))
            .unwrap_or_else(|| refusal_response(500))
    }

    fn spawn_duplicate(&self, request: ApiRequest, delay: Duration) {
        let server = self.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            drop(server.handle_request(&request));
        });
    }
}

fn refusal_response(code: u16) -> ApiResponse {
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

/// The service under the client of one user.
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
            let request = read_http_request(request, &user)
                .await
                .map_err(|_| ServiceError::Body)?;
            let answer = server.serve_with_faults(request).await?;
            Ok(answer.into_http())
        })
    }
}

/// Converts a request from HTTP's types.
pub(crate) async fn read_http_request<B: http_body::Body>(
    request: http::Request<B>,
    user: &str,
) -> Result<ApiRequest, B::Error> {
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
    let (content_type, body) = body_as_json(header(CONTENT_TYPE), body);
    Ok(ApiRequest {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: QueryParameters::parse(parts.uri.query().unwrap_or_default()),
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

/// Decodes kubectl's protobuf bodies to JSON.
fn body_as_json(content_type: String, body: bytes::Bytes) -> (String, bytes::Bytes) {
    if content_type != protobuf::PROTOBUF_MEDIA_TYPE {
        return (content_type, body);
    }
    match protobuf::decode_to_json(&body) {
        Some(value) => ("application/json".into(), value.to_string().into()),
        None => (content_type, body),
    }
}
