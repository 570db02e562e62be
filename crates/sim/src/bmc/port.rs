//! Simulated BMCs on a port, over plain HTTP.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::park::Park;
use super::request::Reply;
use super::simulated::SimBmc;

/// Serves one BMC until the future is dropped; its connections end with it. A dead BMC closes
/// connections as they come; one that refuses them is a listener that is gone.
pub async fn serve(listener: TcpListener, bmc: SimBmc) {
    accept(listener, |_| Some(bmc.clone())).await;
}

/// Serves a whole park until the future is dropped: each BMC at its own address
/// ([`Park::address`]). The listener has to hear all of loopback, so it is bound to the unspecified
/// address; who comes by any other address than loopback's is sent away unheard.
pub async fn serve_park(listener: TcpListener, park: Park) {
    accept(listener, |address| park.at(address)).await;
}

async fn accept(listener: TcpListener, find: impl Fn(IpAddr) -> Option<SimBmc>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                let local = stream.local_addr().map(|address| address.ip()).ok();
                let local = local.filter(IpAddr::is_loopback);
                if let Some(bmc) = local.and_then(&find) {
                    connections.spawn(connection(bmc, stream));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                // Out of file descriptors, mostly: somebody has to let go of one first.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(bmc: SimBmc, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(bmc.clone(), request));
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to a simulated BMC ended early");
    }
}

async fn answer(
    bmc: SimBmc,
    request: http::Request<Incoming>,
) -> Result<http::Response<Sent>, Closed> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    match bmc.reply(http::Request::from_parts(head, body)).await {
        Reply::Answer(answer) => Ok(answer.map(Sent::whole)),
        Reply::Half(answer) => Ok(answer.map(|body| Sent::half(&body))),
        Reply::Silence => std::future::pending().await,
        Reply::Broken | Reply::NoConnection => Err(Closed),
    }
}

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
struct Closed;

/// A body, or half of one.
struct Sent {
    part: Option<Bytes>,
    total: u64,
    stalls: bool,
}

impl Sent {
    fn whole(body: Bytes) -> Self {
        Self {
            total: body.len() as u64,
            part: Some(body).filter(|body| !body.is_empty()),
            stalls: false,
        }
    }

    fn half(body: &Bytes) -> Self {
        let half = body.slice(..body.len() / 2);
        Self {
            total: body.len() as u64,
            part: Some(half).filter(|half| !half.is_empty()),
            stalls: !body.is_empty(),
        }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.part.take() {
            Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
            // Nobody wakes it: the connection stays as it is until the client goes.
            None if self.stalls => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.total)
    }

    fn is_end_stream(&self) -> bool {
        self.part.is_none() && !self.stalls
    }
}
