//! Answers in HTTP's types: whole, or line by line with bookmarks and an end.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http_body::Frame as BodyFrame;
use tokio::time::{Instant, Sleep, sleep_until};

use super::request::Response;
use super::service::{ApiServer, Inner};
use super::watch::{Cut, Watch};

/// The longest a watch lives that is given no end; tokio's timer takes no more than some years.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// An answer on its way out.
pub(crate) struct Answer {
    pub(crate) code: u16,
    retry_after: Option<u64>,
    content_type: &'static str,
    body: AnswerBody,
}

impl Answer {
    pub(crate) fn whole(response: Response) -> Self {
        Self {
            code: response.code,
            retry_after: response.retry_after,
            content_type: response.content_type,
            body: AnswerBody(Kind::Whole(Some(response.body))),
        }
    }

    pub(crate) fn watch(server: &ApiServer, watch: Watch) -> Self {
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
