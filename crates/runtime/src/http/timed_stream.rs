//! Limits how long a client may take to read what is written to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// Writing fails once more than `within` has passed from the first byte that waits to be sent until
/// nothing waits any more, however slowly the client reads meanwhile.
pub struct TimedStream {
    stream: TcpStream,
    within: Duration,
    deadline: Pin<Box<Sleep>>,
    writing: bool,
}

impl TimedStream {
    pub fn new(stream: TcpStream, within: Duration) -> Self {
        Self {
            stream,
            within,
            deadline: Box::pin(sleep(within)),
            writing: false,
        }
    }

    fn poll_write_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.writing {
            self.writing = true;
            self.deadline.as_mut().reset(Instant::now() + self.within);
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_deadline(context)?;
        Pin::new(&mut self.stream).poll_write(context, data)
    }

    /// Large answers are handed on in place: without this, hyper copies them into a buffer of each
    /// connection.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_deadline(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, data)
    }

    /// hyper flushes when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.writing = false;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
