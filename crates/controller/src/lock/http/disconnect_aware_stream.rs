//! The byte stream of one connection: limits how long the client may take, notices that it has
//! gone, and adds a text to hyper's empty refusals.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use dogwatch_runtime::mutex::lock_ignoring_poison;
use futures::future::poll_fn;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;

use super::config::LockApiLimits;

/// What a client may send before it has its answer (one more request). A client that sends more is
/// disconnected.
const MAX_EARLY_BYTES: usize = 4096;

/// The longest header, and hyper's buffer: hyper accepts no smaller one.
pub(super) const MAX_HEADER_BYTES: usize = 8 * 1024;

/// The largest number of header fields that hyper accepts.
const MAX_HEADER_FIELDS: usize = 100;

/// The bytes to read from a client that still sends after its answer, and for how long: closing
/// with unread bytes resets the connection, and the client then loses the answer. The bytes only
/// bound the work for a client that never stops.
const CLOSING_READ_LIMITS: (usize, Duration) = (64 * 1024 * 1024, Duration::from_secs(2));

/// TCP, or TLS over it.
pub(super) trait ClientSocket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ClientSocket for S {}

/// What the server waits for from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionStage {
    /// The first byte of a request, and that the client reads the last answer.
    Idle,
    /// The rest of a header.
    Header,
    /// Nothing: the request is being served. Its body has a limit of its own.
    Serving,
}

/// Clones share one connection, and its one task polls all of them.
#[derive(Clone)]
pub(super) struct DisconnectAwareStream(Arc<Mutex<DisconnectAwareStreamState>>);

struct DisconnectAwareStreamState {
    socket: Box<dyn ClientSocket>,
    early: BytesMut,
    stage: ConnectionStage,
    since: Instant,
    unsent: Bytes,
}

/// The connection is in stage `Serving` while this lives.
pub(super) struct ServingGuard(DisconnectAwareStream);

impl Drop for ServingGuard {
    fn drop(&mut self) {
        self.0.lock_state().enter_stage(ConnectionStage::Idle);
    }
}

impl DisconnectAwareStream {
    pub(super) fn new(socket: impl ClientSocket + 'static) -> Self {
        Self(Arc::new(Mutex::new(DisconnectAwareStreamState {
            socket: Box::new(socket),
            early: BytesMut::new(),
            stage: ConnectionStage::Idle,
            since: Instant::now(),
            unsent: Bytes::new(),
        })))
    }

    fn lock_state(&self) -> MutexGuard<'_, DisconnectAwareStreamState> {
        lock_ignoring_poison(&self.0)
    }

    pub(super) fn current_stage(&self) -> ConnectionStage {
        self.lock_state().stage
    }

    /// The deadline of the current stage, if it has one.
    pub(super) fn stage_deadline(&self, limits: &LockApiLimits) -> Option<Instant> {
        let inner = self.lock_state();
        match inner.stage {
            ConnectionStage::Idle => Some(inner.since + limits.idle),
            ConnectionStage::Header => Some(inner.since + limits.header),
            ConnectionStage::Serving => None,
        }
    }

    pub(super) fn start_serving(&self) -> ServingGuard {
        self.lock_state().enter_stage(ConnectionStage::Serving);
        ServingGuard(self.clone())
    }

    /// Ready once the client has disconnected or has sent too much early. For the time after its
    /// body was read.
    ///
    /// hyper checks too, but not once it has bytes of a next request.
    pub(super) async fn wait_for_disconnect(&self) {
        poll_fn(|cx| self.lock_state().poll_disconnect(cx)).await;
    }

    /// Ready once hyper can decide: a whole header, a malformed or too long one, or the end. The
    /// bytes read are kept for hyper.
    pub(super) fn poll_header(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.lock_state().poll_header(cx)
    }

    /// Closes the connection. Reads what the client still sends, so that it receives `last`.
    pub(super) async fn close_with(mut self, last: Option<Bytes>) {
        let (most, patience) = CLOSING_READ_LIMITS;
        let end = async move {
            if let Some(last) = last {
                self.write_all(&last).await?;
            }
            self.shutdown().await?;
            let mut rest = self.take(most as u64);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
        };
        // The result does not matter: the connection is over.
        let _ended = tokio::time::timeout(patience, end).await;
    }
}

impl DisconnectAwareStreamState {
    fn enter_stage(&mut self, stage: ConnectionStage) {
        self.stage = stage;
        self.since = Instant::now();
    }

    fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.early.len() < MAX_EARLY_BYTES {
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
        while self.early.len() < MAX_HEADER_BYTES {
            let mut space = [0; 512];
            let most = space.len().min(MAX_HEADER_BYTES - self.early.len());
            let mut buffer = ReadBuf::new(&mut space[..most]);
            let read = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer));
            let read = read.map(|()| buffer.filled());
            let Some(new) = read.ok().filter(|new| !new.is_empty()) else {
                return Poll::Ready(());
            };
            if self.stage == ConnectionStage::Idle {
                self.enter_stage(ConnectionStage::Header);
            }
            self.early.extend_from_slice(new);
            // Parsed only at the end of a line, so that a header sent byte by byte costs no more.
            if new.contains(&b'\n') && !is_unfinished_header(&self.early) {
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

impl AsyncRead for DisconnectAwareStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.lock_state();
        let before = buffer.filled().len();
        if inner.early.is_empty() {
            ready!(Pin::new(&mut inner.socket).poll_read(cx, buffer))?;
        } else {
            let some = inner.early.len().min(buffer.remaining());
            buffer.put_slice(&inner.early.split_to(some));
            if inner.early.is_empty() {
                // A fresh buffer, because an emptied one keeps its memory.
                inner.early = BytesMut::new();
            }
        }
        if inner.stage == ConnectionStage::Idle && buffer.filled().len() > before {
            inner.enter_stage(ConnectionStage::Header);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for DisconnectAwareStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.lock_state();
        ready!(inner.poll_unsent(cx))?;
        match explain_bare_refusal(data) {
            None => Pin::new(&mut inner.socket).poll_write(cx, data),
            Some(refusal) => {
                inner.unsent = refusal;
                Poll::Ready(Ok(data.len()))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock_state();
        ready!(inner.poll_unsent(cx))?;
        Pin::new(&mut inner.socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock_state();
        ready!(inner.poll_unsent(cx))?;
        Pin::new(&mut inner.socket).poll_shutdown(cx)
    }
}

/// Whether a header is valid so far and incomplete.
fn is_unfinished_header(head: &[u8]) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADER_FIELDS];
    let parsed = httparse::Request::new(&mut fields).parse(head);
    matches!(parsed, Ok(httparse::Status::Partial))
}

/// hyper answers what it cannot parse without a body; this adds a text.
fn explain_bare_refusal(head: &[u8]) -> Option<Bytes> {
    let head = std::str::from_utf8(head).ok()?;
    if !head.contains("\r\ncontent-length: 0\r\n") {
        return None;
    }
    let status = head.strip_prefix("HTTP/1.")?.get(2..5)?;
    match status {
        "400" => Some(closing_response(
            "400 Bad Request",
            "this is not an HTTP/1.1 request: its first line or a header is malformed",
        )),
        "414" => Some(closing_response("414 URI Too Long", "the path is too long")),
        "431" => Some(closing_response(
            "431 Request Header Fields Too Large",
            "the header is longer than 8 KiB, or has more than 100 fields",
        )),
        _ => None,
    }
}

/// A whole response of one line, after which the connection is closed.
pub(super) fn closing_response(status: &str, line: &str) -> Bytes {
    let length = line.len() + 1;
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{line}\n"
    ))
}
