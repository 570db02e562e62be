//! Serves one connection, from its first byte to its last.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use dogwatch_runtime::connections::ConnectionSlot;
use futures::future::poll_fn;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::auth::CertificateOwner;
use super::client_certificate;
use super::config::LockApiLimits;
use super::disconnect_aware_stream::{
    ConnectionStage, DisconnectAwareStream, MAX_HEADER_BYTES, closing_response,
};
use super::request_metrics::{LockProtocol, RequestMetrics, RequestTimer};
use super::tls::ReloadingTls;
use super::unauthenticated_limit::{UnauthenticatedLimit, UnauthenticatedPermit};
use super::waiter_limit::Shutdown;

/// TCP keepalive (seconds of silence, seconds between two probes, probes): a host that lost its
/// power while it waited must not be given the lock much later.
const TCP_KEEPALIVE: (u64, u64, u32) = (15, 5, 3);

pub(super) struct ListenerContext {
    pub(super) protocol: LockProtocol,
    pub(super) router: Router,
    pub(super) record: Arc<dyn RequestMetrics>,
    pub(super) limits: Arc<LockApiLimits>,
    pub(super) tls: Option<ReloadingTls>,
    pub(super) handshakes: Semaphore,
    /// `None` where callers are not authenticated.
    pub(super) strangers: Option<UnauthenticatedLimit>,
    pub(super) ending: Shutdown,
}

#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub(super) wire: DisconnectAwareStream,
    pub(super) peer: SocketAddr,
    pub(super) certificate: Arc<CertificateOwner>,
    pub(super) place: Arc<ConnectionSlot>,
    /// Held until the caller is authenticated.
    pub(super) unknown: UnauthenticatedPermit,
}

/// Serves one client until it ends, or until its place is needed and no authorized request waits on
/// it.
pub(super) async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    place: ConnectionSlot,
    door: Arc<ListenerContext>,
) {
    if let Err(error) = set_tcp_options(&stream) {
        tracing::debug!(%peer, %error, "failed to set the options of a connection");
    }
    let place = Arc::new(place);
    let served = async {
        let link = accept_tls(stream, peer, &place, &door).await?;
        let last = match wait_for_header(&link, &door).await {
            Ok(()) => Box::pin(serve_requests(&link, &door)).await,
            Err(last) => last,
        };
        link.unknown.release_permit();
        Some((link, last))
    };
    let served = tokio::select! {
        biased;
        served = served => served,
        () = place.wait_for_close() => {
            tracing::debug!(%peer, "too many connections: closes an idle one to accept a new one");
            None
        }
    };
    if let Some((link, last)) = served {
        link.wire.close_with(last).await;
    }
}

fn set_tcp_options(stream: &TcpStream) -> std::io::Result<()> {
    let (silence, between, questions) = TCP_KEEPALIVE;
    let seconds = std::time::Duration::from_secs;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, seconds(silence))?;
    sockopt::set_tcp_keepintvl(stream, seconds(between))?;
    sockopt::set_tcp_keepcnt(stream, questions)?;
    Ok(())
}

/// The TLS handshake, if the listener has TLS.
async fn accept_tls(
    stream: TcpStream,
    peer: SocketAddr,
    place: &Arc<ConnectionSlot>,
    door: &ListenerContext,
) -> Option<ConnectionContext> {
    let Some(tls) = &door.tls else {
        return Some(ConnectionContext {
            wire: DisconnectAwareStream::new(stream),
            peer,
            certificate: Arc::new(None),
            place: Arc::clone(place),
            unknown: UnauthenticatedPermit::default(),
        });
    };
    // Boxed, so that the handshake's memory is not kept for the hours of a wait.
    let handshake = Box::pin(async {
        let _turn = door.handshakes.acquire().await;
        TlsAcceptor::from(tls.server_config()).accept(stream).await
    });
    match tokio::time::timeout(door.limits.header, handshake).await {
        Ok(Ok(stream)) => {
            let shown = stream.get_ref().1.peer_certificates();
            let certificate = shown
                .and_then(<[_]>::first)
                .map(|der| client_certificate::parse_certificate_owner(der));
            Some(ConnectionContext {
                wire: DisconnectAwareStream::new(stream),
                peer,
                certificate: Arc::new(certificate),
                place: Arc::clone(place),
                unknown: UnauthenticatedPermit::default(),
            })
        }
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// Waits for a whole header, and for a permit among unauthenticated requests: hyper takes 16 KiB
/// for each connection from its first moment. The error is the last answer to the client, if any.
async fn wait_for_header(
    link: &ConnectionContext,
    door: &Arc<ListenerContext>,
) -> Result<(), Option<Bytes>> {
    let mut ending = pin!(door.ending.wait_for_shutdown());
    let mut clock = pin!(tokio::time::sleep(door.limits.idle));
    poll_fn(|cx| {
        if link.wire.poll_header(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if link.wire.current_stage() == ConnectionStage::Idle && ending.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(None));
        }
        poll_deadline(link, door, clock.as_mut(), cx).map(Err)
    })
    .await?;
    let Some(strangers) = &door.strangers else {
        return Ok(());
    };
    let turn = strangers.acquire_permit(door.limits.header).await;
    turn.map(|turn| link.unknown.hold_permit(turn))
        .ok_or_else(|| {
            let line = "too many requests wait for authentication; try again";
            Some(closing_response("503 Service Unavailable", line))
        })
}

/// Serves requests until the client or its time is gone. Returns the last answer to the client, if
/// any.
async fn serve_requests(link: &ConnectionContext, door: &Arc<ListenerContext>) -> Option<Bytes> {
    let service =
        service_fn(|request| Box::pin(answer_request(Arc::clone(door), link.clone(), request)));
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(link.wire.clone()), service);
    let mut ending = pin!(door.ending.wait_for_shutdown());
    let mut clock = pin!(tokio::time::sleep(door.limits.idle));
    let mut closing = false;
    poll_fn(|cx| {
        if !closing && ending.as_mut().poll(cx).is_ready() {
            closing = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if let Poll::Ready(end) = connection.poll_without_shutdown(cx) {
            return Poll::Ready(end.err().and_then(|error| parse_error_reply(link, &error)));
        }
        if closing && link.wire.current_stage() == ConnectionStage::Idle {
            return Poll::Ready(None);
        }
        poll_deadline(link, door, clock.as_mut(), cx)
    })
    .await
}

/// Ready when the client has taken too long, with the last answer to it, if any.
fn poll_deadline(
    link: &ConnectionContext,
    door: &ListenerContext,
    mut clock: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
) -> Poll<Option<Bytes>> {
    let Some(deadline) = link.wire.stage_deadline(&door.limits) else {
        return Poll::Pending;
    };
    if clock.deadline() != deadline {
        clock.as_mut().reset(deadline);
    }
    clock.poll(cx).map(|()| timeout_reply(link, &door.limits))
}

/// hyper itself answers what it cannot parse, except for another protocol.
fn parse_error_reply(link: &ConnectionContext, error: &hyper::Error) -> Option<Bytes> {
    tracing::debug!(peer = %link.peer, %error, "a client's connection broke");
    let other = error.is_parse() && error.to_string().contains("HTTP2");
    other.then(|| closing_response("505 HTTP Version Not Supported", "use HTTP/1.1"))
}

fn timeout_reply(link: &ConnectionContext, limits: &LockApiLimits) -> Option<Bytes> {
    match link.wire.current_stage() {
        ConnectionStage::Header => {
            let seconds = limits.header.as_secs();
            let line = format!("the header did not arrive within {seconds} s");
            Some(closing_response("408 Request Timeout", &line))
        }
        ConnectionStage::Idle | ConnectionStage::Serving => None,
    }
}

async fn answer_request(
    door: Arc<ListenerContext>,
    link: ConnectionContext,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let _serving = link.wire.start_serving();
    let tally = RequestTimer::start_timer(Arc::clone(&door.record), door.protocol);
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(link.clone());
    let mut response = door.router.clone().oneshot(request).await?;
    tally.set_answer(&response);
    if link.unknown.is_held() {
        // A caller who is still not authenticated keeps no buffers for a next request.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    Ok(response)
}
