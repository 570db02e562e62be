//! Answers in HTTP's types: whole bodies, or the lines of a watch with bookmarks and an end.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http_body::Frame as BodyFrame;
use tokio::time::{Instant, Sleep, sleep_until};

use super::request::{ApiRequest, ApiResponse};
use super::service::{ApiServer, ApiServerInner};
use super::watch::{ConnectionCut, OpenWatch};
use super::watch_faults::WatchDelivery;

/// The lifetime of a watch without an end of its own; tokio's timer takes at most some years.
const MAX_WATCH_LIFETIME: Duration = Duration::from_hours(24 * 365);

pub(crate) struct HttpAnswer {
    pub(crate) code: u16,
    retry_after: Option<u64>,
    content_type: &'static str,
    warnings: Vec<String>,
    body: AnswerBody,
}

impl HttpAnswer {
    pub(crate) fn from_response(response: ApiResponse) -> Self {
        Self {
            code: response.code,
            retry_after: response.retry_after,
            content_type: response.content_type,
            warnings: response.warnings,
            body: AnswerBody(AnswerBodyKind::Whole(Some(response.body))),
        }
    }

    pub(crate) fn from_watch(server: &ApiServer, request: &ApiRequest, watch: OpenWatch) -> Self {
        Self {
            code: 200,
            retry_after: None,
            content_type: "application/json",
            warnings: Vec::new(),
            body: AnswerBody(AnswerBodyKind::Watch(Box::new(WatchBody::new(
                server, request, watch,
            )))),
        }
    }

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
        for warning in &self.warnings {
            if let Some(value) = warning_header(warning) {
                headers.append(WARNING, value);
            }
        }
        response
    }
}

/// A warning as HTTP quotes it; None for one that no header can hold.
fn warning_header(warning: &str) -> Option<http::HeaderValue> {
    let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
    http::HeaderValue::from_str(&format!("299 - \"{quoted}\"")).ok()
}

pub struct AnswerBody(AnswerBodyKind);

enum AnswerBodyKind {
    Whole(Option<Bytes>),
    Watch(Box<WatchBody>),
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = ConnectionCut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, ConnectionCut>>> {
        match &mut self.get_mut().0 {
            AnswerBodyKind::Whole(body) => {
                Poll::Ready(body.take().map(|bytes| Ok(BodyFrame::data(bytes))))
            }
            AnswerBodyKind::Watch(watch) => watch
                .poll_line(context)
                .map(|line| line.map(|line| line.map(BodyFrame::data))),
        }
    }
}

struct WatchBody {
    watch: OpenWatch,
    delivery: WatchDelivery,
    server: Weak<ApiServerInner>,
    deadline: Pin<Box<Sleep>>,
    bookmark: Option<Pin<Box<Sleep>>>,
    interval: Duration,
    /// The last bookmark is sent shortly before the end.
    last_bookmark: Option<Instant>,
    broken: bool,
}

impl WatchBody {
    fn new(server: &ApiServer, request: &ApiRequest, watch: OpenWatch) -> Self {
        let now = Instant::now();
        let timeout = watch.timeout.min(MAX_WATCH_LIFETIME);
        let interval = server.lock_store().options.bookmark_interval;
        let last_bookmark = timeout
            .checked_sub(Duration::from_secs(2))
            .map(|before| now + before);
        let first = last_bookmark
            .map(|last| last.min(now + interval))
            .filter(|first| watch.bookmarks && *first > now);
        Self {
            watch,
            delivery: WatchDelivery::for_request(request),
            server: Arc::downgrade(&server.inner),
            deadline: Box::pin(sleep_until(now + timeout)),
            bookmark: first.map(|first| Box::pin(sleep_until(first))),
            interval,
            last_bookmark,
            broken: false,
        }
    }

    fn poll_line(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ConnectionCut>>> {
        loop {
            if let Poll::Ready(line) = self.delivery.poll_line(context) {
                return Poll::Ready(Some(Ok(line)));
            }
            match self.watch.frames.poll_recv(context) {
                Poll::Ready(Some(Ok(line))) => {
                    let Some(inner) = self.server.upgrade() else {
                        return Poll::Ready(None);
                    };
                    self.delivery.accept_line(line, &inner.watch_faults);
                    continue;
                }
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
                .send_bookmark(self.watch.collection, self.watch.id);
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
            // A request that panicked has no watch to remove.
            if let Ok(mut store) = inner.store.lock() {
                store.remove_watch(self.watch.collection, self.watch.id);
            }
        }
    }
}
