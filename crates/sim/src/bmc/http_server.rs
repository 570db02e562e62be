//! Serves simulated BMCs on a TCP port, over plain HTTP.

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

use super::bmc_fleet::BmcFleet;
use super::request::BmcReply;
use super::sim_bmc::SimBmc;

/// Serves one BMC until the future is dropped, which also ends its connections. A dead BMC closes
/// each connection as it comes in. To simulate refused connections, drop the listener.
pub async fn serve_bmc(listener: TcpListener, bmc: SimBmc) {
    accept_connections(listener, |_| Some(bmc.clone())).await;
}

/// Serves a whole fleet until the future is dropped, each BMC at its own address
/// ([`BmcFleet::bmc_address`]). The listener must accept all loopback addresses, so it is bound to
/// the unspecified address. Connections to any other address are closed without an answer.
pub async fn serve_fleet(listener: TcpListener, park: BmcFleet) {
    accept_connections(listener, |address| park.bmc_at_address(address)).await;
}

async fn accept_connections(listener: TcpListener, find: impl Fn(IpAddr) -> Option<SimBmc>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let local = stream.local_addr().map(|address| address.ip()).ok();
                let local = local.filter(IpAddr::is_loopback);
                if let Some(bmc) = local.and_then(&find) {
                    connections.spawn(serve_connection(bmc, stream));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                // Usually there are no file descriptors left; wait until a connection ends.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection(bmc: SimBmc, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer_request(bmc.clone(), request));
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to a simulated BMC ended early");
    }
}

async fn answer_request(
    bmc: SimBmc,
    request: http::Request<Incoming>,
) -> Result<http::Response<ResponseBody>, ConnectionClosed> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(|_| ConnectionClosed)?
        .to_bytes();
    match bmc
        .answer_request(http::Request::from_parts(head, body))
        .await
    {
        BmcReply::Answer(answer) => Ok(answer.map(ResponseBody::whole_body)),
        BmcReply::Half(answer) => Ok(answer.map(|body| ResponseBody::half_body(&body))),
        BmcReply::Silence => std::future::pending().await,
        BmcReply::Broken | BmcReply::NoConnection => Err(ConnectionClosed),
    }
}

/// The BMC closes the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
struct ConnectionClosed;

/// A response body that can stop half-way.
struct ResponseBody {
    part: Option<Bytes>,
    total: u64,
    stalls: bool,
}

impl ResponseBody {
    fn whole_body(body: Bytes) -> Self {
        Self {
            total: body.len() as u64,
            part: Some(body).filter(|body| !body.is_empty()),
            stalls: false,
        }
    }

    fn half_body(body: &Bytes) -> Self {
        let half = body.slice(..body.len() / 2);
        Self {
            total: body.len() as u64,
            part: Some(half).filter(|half| !half.is_empty()),
            stalls: !body.is_empty(),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.part.take() {
            Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
            // No waker is registered: the connection stays open until the client closes it.
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
