//! One connection, from its first byte to its last.

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
use dogwatch_process::connections::Connection;
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
use super::config::Limits;
use super::peer;
use super::record::{Protocol, Record, Tally};
use super::strangers::{Strangers, Unknown};
use super::tls::Tls;
use super::waiting::Ending;
use super::wire::{LONGEST_HEADER, Stage, Wire, refusal};

/// When a client that says nothing is asked whether it is there (seconds of silence, seconds between two
/// questions, questions): a host that lost its power while it waited must not be given the lock much later.
const KEEP_ALIVE: (u64, u64, u32) = (15, 5, 3);

/// What all connections of one listener share.
pub(super) struct Door {
    pub(super) protocol: Protocol,
    pub(super) router: Router,
    pub(super) record: Arc<dyn Record>,
    pub(super) limits: Arc<Limits>,
    pub(super) tls: Option<Tls>,
    pub(super) handshakes: Semaphore,
    /// Nothing where nobody is asked who they are.
    pub(super) strangers: Option<Strangers>,
    pub(super) ending: Ending,
}

/// What a handler knows of its connection.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) wire: Wire,
    pub(super) peer: SocketAddr,
    pub(super) certificate: Arc<CertificateOwner>,
    pub(super) place: Arc<Connection>,
    /// Held until it is known who asks.
    pub(super) unknown: Unknown,
}

/// Serves one client to its end, or until its place is needed and nobody checked waits on it.
pub(super) async fn run(stream: TcpStream, peer: SocketAddr, place: Connection, door: Arc<Door>) {
    if let Err(error) = stay_in_touch(&stream) {
        tracing::debug!(%peer, %error, "cannot set a connection's options");
    }
    let place = Arc::new(place);
    let served = async {
        let link = greet(stream, peer, &place, &door).await?;
        let last = match header(&link, &door).await {
            Ok(()) => Box::pin(serve(&link, &door)).await,
            Err(last) => last,
        };
        link.unknown.give_up();
        Some((link, last))
    };
    let served = tokio::select! {
        served = served => served,
        () = place.closed() => {
            tracing::debug!(%peer, "an idle connection is closed for a newcomer");
            None
        }
    };
    if let Some((link, last)) = served {
        link.wire.finish(last).await;
    }
}

fn stay_in_touch(stream: &TcpStream) -> std::io::Result<()> {
    let (silence, between, questions) = KEEP_ALIVE;
    let seconds = std::time::Duration::from_secs;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, seconds(silence))?;
    sockopt::set_tcp_keepintvl(stream, seconds(between))?;
    sockopt::set_tcp_keepcnt(stream, questions)?;
    Ok(())
}

/// The TLS handshake, where there is one.
async fn greet(
    stream: TcpStream,
    peer: SocketAddr,
    place: &Arc<Connection>,
    door: &Door,
) -> Option<Link> {
    let Some(tls) = &door.tls else {
        return Some(Link {
            wire: Wire::new(stream),
            peer,
            certificate: Arc::new(None),
            place: Arc::clone(place),
            unknown: Unknown::default(),
        });
    };
    // Boxed: what a handshake needs is not kept for the hours of a wait.
    let handshake = Box::pin(async {
        let _turn = door.handshakes.acquire().await;
        TlsAcceptor::from(tls.config()).accept(stream).await
    });
    match tokio::time::timeout(door.limits.header, handshake).await {
        Ok(Ok(stream)) => {
            let shown = stream.get_ref().1.peer_certificates();
            let certificate = shown.and_then(<[_]>::first).map(|der| peer::owner(der));
            Some(Link {
                wire: Wire::new(stream),
                peer,
                certificate: Arc::new(certificate),
                place: Arc::clone(place),
                unknown: Unknown::default(),
            })
        }
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// Waits for a whole header, and for its turn among those who are not known: hyper takes 16 KiB of each
/// connection from its first moment. Or else what is still to be said to the client.
async fn header(link: &Link, door: &Arc<Door>) -> Result<(), Option<Bytes>> {
    let mut ending = pin!(door.ending.begun());
    let mut clock = pin!(tokio::time::sleep(door.limits.idle));
    poll_fn(|cx| {
        if link.wire.poll_header(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if link.wire.stage() == Stage::Idle && ending.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(None));
        }
        poll_late(link, door, clock.as_mut(), cx).map(Err)
    })
    .await?;
    let Some(strangers) = &door.strangers else {
        return Ok(());
    };
    let turn = strangers.turn(door.limits.header).await;
    turn.map(|turn| link.unknown.hold(turn)).ok_or_else(|| {
        let line = "too many requests wait until it is known who asks; try again";
        Some(refusal("503 Service Unavailable", line))
    })
}

/// Serves requests until the client or its time is gone; what is still to be said to it.
async fn serve(link: &Link, door: &Arc<Door>) -> Option<Bytes> {
    let service = service_fn(|request| Box::pin(answer(Arc::clone(door), link.clone(), request)));
    let mut connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(LONGEST_HEADER)
        .serve_connection(TokioIo::new(link.wire.clone()), service);
    let mut ending = pin!(door.ending.begun());
    let mut clock = pin!(tokio::time::sleep(door.limits.idle));
    let mut closing = false;
    poll_fn(|cx| {
        if !closing && ending.as_mut().poll(cx).is_ready() {
            closing = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if let Poll::Ready(end) = connection.poll_without_shutdown(cx) {
            return Poll::Ready(end.err().and_then(|error| farewell(link, &error)));
        }
        if closing && link.wire.stage() == Stage::Idle {
            return Poll::Ready(None);
        }
        poll_late(link, door, clock.as_mut(), cx)
    })
    .await
}

/// Ready when the client has taken too long, with what is still to be said to it.
fn poll_late(
    link: &Link,
    door: &Door,
    mut clock: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
) -> Poll<Option<Bytes>> {
    let Some(deadline) = link.wire.deadline(&door.limits) else {
        return Poll::Pending;
    };
    if clock.deadline() != deadline {
        clock.as_mut().reset(deadline);
    }
    clock.poll(cx).map(|()| late(link, &door.limits))
}

/// hyper has answered what it could not parse, but for another protocol.
fn farewell(link: &Link, error: &hyper::Error) -> Option<Bytes> {
    tracing::debug!(peer = %link.peer, %error, "a client's connection broke");
    let other = error.is_parse() && error.to_string().contains("HTTP2");
    other.then(|| refusal("505 HTTP Version Not Supported", "use HTTP/1.1"))
}

fn late(link: &Link, limits: &Limits) -> Option<Bytes> {
    match link.wire.stage() {
        Stage::Header => {
            let seconds = limits.header.as_secs();
            let line = format!("the header was not there within {seconds} s");
            Some(refusal("408 Request Timeout", &line))
        }
        Stage::Idle | Stage::Serving => None,
    }
}

async fn answer(
    door: Arc<Door>,
    link: Link,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let _serving = link.wire.serving();
    let tally = Tally::begin(Arc::clone(&door.record), door.protocol);
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(link.clone());
    let mut response = door.router.clone().oneshot(request).await?;
    tally.answered(&response);
    if link.unknown.is_held() {
        // Who is not known by now keeps no buffers for a next request.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    Ok(response)
}
