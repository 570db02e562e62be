//! The server as a service: under an ordinary client, in the process, with faults in between.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http_body::Frame as BodyFrame;
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::audit::AuditEntry;
use super::faults::{FaultEffect, Faults, RequestInfo};
use super::handle::Reply;
use super::request::{Query, Request, Response};
use super::store::{Options, Store};
use super::watch::{Cut, Watch};
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

/// The longest a watch lives that is given no end; tokio's timer takes no more than some years.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// A handle on the embedded API server. Clones are handles on the same one.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    store: Mutex<Store>,
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

/// An answer on its way out.
pub(crate) struct Answer {
    pub(crate) code: u16,
    retry_after: Option<u64>,
    content_type: &'static str,
    body: AnswerBody,
}

impl Answer {
    fn whole(response: Response) -> Self {
        Self {
            code: response.code,
            retry_after: response.retry_after,
            content_type: response.content_type,
            body: AnswerBody(Kind::Whole(Some(response.body))),
        }
    }

    fn watch(server: &ApiServer, watch: Watch) -> Self {
        Self {
            code: 200,
            retry_after: None,
            content_type: "application/json",
            body: AnswerBody(Kind::Watch(Box::new(WatchBody::new(server, watch)))),
        }
    }

    /// The answer in HTTP's types.
    pub(crate) fn into_http(self) -> http::Response<AnswerBody> {
        let mut response = http::Response::new(self.body);
        *response.status_mut() =
            http::StatusCode::from_u16(self.code).expect("our codes are HTTP's");
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            http::HeaderValue::from_static(self.content_type),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// The body of an answer: whole, or line by line.
pub struct AnswerBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Watch(Box<WatchBody>),
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, Cut>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(body) => Poll::Ready(body.take().map(|bytes| Ok(BodyFrame::data(bytes)))),
            Kind::Watch(watch) => watch
                .poll_line(context)
                .map(|line| line.map(|line| line.map(BodyFrame::data))),
        }
    }
}

/// The lines of a watch, its bookmarks and its end.
struct WatchBody {
    watch: Watch,
    server: Weak<Inner>,
    deadline: Pin<Box<Sleep>>,
    bookmark: Option<Pin<Box<Sleep>>>,
    interval: Duration,
    /// The last bookmark is sent shortly before the end.
    last_bookmark: Option<Instant>,
    broken: bool,
}

impl WatchBody {
    fn new(server: &ApiServer, watch: Watch) -> Self {
        let now = Instant::now();
        let timeout = watch.timeout.min(FOR_EVER);
        let interval = server.store().options.bookmark_interval;
        let last_bookmark = timeout
            .checked_sub(Duration::from_secs(2))
            .map(|before| now + before);
        let first = last_bookmark
            .map(|last| last.min(now + interval))
            .filter(|first| watch.bookmarks && *first > now);
        Self {
            watch,
            server: Arc::downgrade(&server.inner),
            deadline: Box::pin(sleep_until(now + timeout)),
            bookmark: first.map(|first| Box::pin(sleep_until(first))),
            interval,
            last_bookmark,
            broken: false,
        }
    }

    fn poll_line(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        loop {
            match self.watch.frames.poll_recv(context) {
                Poll::Ready(Some(Ok(line))) => return Poll::Ready(Some(Ok(line))),
                Poll::Ready(Some(Err(cut))) if !self.broken => {
                    self.broken = true;
                    return Poll::Ready(Some(Err(cut)));
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
                Poll::Pending => {}
            }
            if self.deadline.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            let due = self
                .bookmark
                .as_mut()
                .is_some_and(|timer| timer.as_mut().poll(context).is_ready());
            if !due {
                return Poll::Pending;
            }
            self.send_bookmark();
        }
    }

    fn send_bookmark(&mut self) {
        if let Some(inner) = self.server.upgrade() {
            inner
                .store
                .lock()
                .expect("no request panics")
                .bookmark(self.watch.collection, self.watch.id);
        }
        let now = Instant::now();
        let next = self
            .last_bookmark
            .map(|last| last.min(now + self.interval))
            .filter(|next| *next > now);
        self.bookmark = next.map(|next| Box::pin(sleep_until(next)));
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        if let Some(inner) = self.server.upgrade() {
            // A request that panicked leaves nothing to unsubscribe from.
            if let Ok(mut store) = inner.store.lock() {
                store.unwatch(self.watch.collection, self.watch.id);
            }
        }
    }
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
    Ok(Request {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        accept: header(ACCEPT),
        content_type: header(CONTENT_TYPE),
        user_agent: match header(USER_AGENT) {
            agent if agent.is_empty() => user.to_owned(),
            agent => agent,
        },
        user: user.to_owned(),
        body,
    })
}
