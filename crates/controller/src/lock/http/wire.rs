//! One connection's bytes: how long the client has for what comes next, whether it is still there, and
//! words for what hyper refuses without any.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::future::poll_fn;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;

use super::config::Limits;

/// What a client may send before it has its answer (a request more); one that sends more is cut off.
const MOST_EARLY: usize = 4096;

/// The longest header, and hyper's buffer: it takes no smaller one.
pub(super) const LONGEST_HEADER: usize = 8 * 1024;

/// The most fields of a header, as hyper has it.
const MOST_FIELDS: usize = 100;

/// What is read from a client that is still sending after its answer, so that the answer is not lost with
/// what was not read, and for how long.
const LAST_WORDS: (usize, Duration) = (1024 * 1024, Duration::from_secs(2));

/// TCP, or TLS over it.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// What is awaited of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The first byte of a request, and that it takes the answer to the last one.
    Idle,
    /// The rest of a header.
    Header,
    /// Nothing: it is being served. Its body has a limit of its own.
    Serving,
}

/// The connection; clones are the same one, and all of them are polled by its one task.
#[derive(Clone)]
pub(super) struct Wire(Arc<Mutex<Inner>>);

struct Inner {
    socket: Box<dyn Socket>,
    early: BytesMut,
    stage: Stage,
    since: Instant,
    unsent: Bytes,
}

/// While it lives its request is being served.
pub(super) struct Serving(Wire);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.inner().enter(Stage::Idle);
    }
}

impl Wire {
    pub(super) fn new(socket: impl Socket + 'static) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            socket: Box::new(socket),
            early: BytesMut::new(),
            stage: Stage::Idle,
            since: Instant::now(),
            unsent: Bytes::new(),
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stage(&self) -> Stage {
        self.inner().stage
    }

    /// Until when the client must have done what is awaited of it.
    pub(super) fn deadline(&self, limits: &Limits) -> Option<Instant> {
        let inner = self.inner();
        match inner.stage {
            Stage::Idle => Some(inner.since + limits.idle),
            Stage::Header => Some(inner.since + limits.header),
            Stage::Serving => None,
        }
    }

    pub(super) fn serving(&self) -> Serving {
        self.inner().enter(Stage::Serving);
        Serving(self.clone())
    }

    /// Ready once the client has gone away, or behaves as none should. For the time after its body was read.
    ///
    /// hyper looks too, but not when it has bytes of a next request already.
    pub(super) async fn gone(&self) {
        poll_fn(|cx| self.inner().poll_gone(cx)).await;
    }

    /// Ready once hyper can say what came: a whole header, one that is malformed or too long, or the end. What
    /// was read is kept for it.
    pub(super) fn poll_header(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner().poll_header(cx)
    }

    /// Ends the connection; the client's last words are heard so that it gets ours.
    pub(super) async fn finish(mut self, last: Option<Bytes>) {
        let (most, patience) = LAST_WORDS;
        let end = async move {
            if let Some(last) = last {
                self.write_all(&last).await?;
            }
            self.shutdown().await?;
            let mut rest = self.take(most as u64);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
        };
        // Whether it went well or not, there is nobody left to tell.
        let _ended = tokio::time::timeout(patience, end).await;
    }
}

impl Inner {
    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.since = Instant::now();
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.early.len() < MOST_EARLY {
            let mut space = [0; 512];
            let mut buffer = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.early.extend_from_slice(buffer.filled());
                }
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Ready(())
    }

    fn poll_header(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.early.len() < LONGEST_HEADER {
            let mut space = [0; 512];
            let most = space.len().min(LONGEST_HEADER - self.early.len());
            let mut buffer = ReadBuf::new(&mut space[..most]);
            let read = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer));
            let read = read.map(|()| buffer.filled());
            let Some(new) = read.ok().filter(|new| !new.is_empty()) else {
                return Poll::Ready(());
            };
            if self.stage == Stage::Idle {
                self.enter(Stage::Header);
            }
            self.early.extend_from_slice(new);
            // Parsed once for each line: a header that comes byte by byte costs no more.
            if new.contains(&b'\n') && !is_unfinished(&self.early) {
                return Poll::Ready(());
            }
        }
        Poll::Ready(())
    }

    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let sent = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.unsent))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(sent);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        let before = buffer.filled().len();
        if inner.early.is_empty() {
            ready!(Pin::new(&mut inner.socket).poll_read(cx, buffer))?;
        } else {
            let some = inner.early.len().min(buffer.remaining());
            buffer.put_slice(&inner.early.split_to(some));
            if inner.early.is_empty() {
                // An empty one keeps its memory.
                inner.early = BytesMut::new();
            }
        }
        if inner.stage == Stage::Idle && buffer.filled().len() > before {
            inner.enter(Stage::Header);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        ready!(inner.poll_unsent(cx))?;
        match in_words(data) {
            None => Pin::new(&mut inner.socket).poll_write(cx, data),
            Some(refusal) => {
                inner.unsent = refusal;
                Poll::Ready(Ok(data.len()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        ready!(inner.poll_unsent(cx))?;
        Pin::new(&mut inner.socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        ready!(inner.poll_unsent(cx))?;
        Pin::new(&mut inner.socket).poll_shutdown(cx)
    }
}

/// Whether a header has begun well and is not at its end.
fn is_unfinished(head: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let parsed = httparse::Request::new(&mut fields).parse(head);
    matches!(parsed, Ok(httparse::Status::Partial))
}

/// hyper answers what it cannot parse by itself, without a body; no answer of ours is empty.
fn in_words(head: &[u8]) -> Option<Bytes> {
    let head = std::str::from_utf8(head).ok()?;
    if !head.contains("\r\ncontent-length: 0\r\n") {
        return None;
    }
    let status = head.strip_prefix("HTTP/1.")?.get(2..5)?;
    match status {
        "400" => Some(refusal(
            "400 Bad Request",
            "this is no HTTP/1.1 request: its first line or a header is malformed",
        )),
        "414" => Some(refusal("414 URI Too Long", "the path is too long")),
        "431" => Some(refusal(
            "431 Request Header Fields Too Large",
            "the header is longer than 8 KiB, or has more than 100 fields",
        )),
        _ => None,
    }
}

/// A whole response with one line, after which the connection is closed.
pub(super) fn refusal(status: &str, line: &str) -> Bytes {
    let length = line.len() + 1;
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{line}\n"
    ))
}
