//! A small HTTP/1 server for `/metrics` and the probes.
//!
//! **For:** Prometheus and the kubelet's probes, each on a listener of its own: clients of the
//! metrics cannot keep the kubelet from its answer.
//! **May touch:** one listening socket. Each page is computed at its request.
//! **Promises:** at most [`MAX_CONNECTIONS`] at once, and a new connection is served at once: the
//! oldest idle one is closed for it. Header, idle time and the reading of an answer have time
//! limits, so that no client costs more than a few KiB for a few seconds.

mod timed_stream;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

pub use self::timed_stream::TimedStream;
use crate::connections::{ConnectionLimits, ConnectionSlot, ConnectionTable};
use crate::listen::ListenAddress;

/// How long a client may take for its header, and stay silent between requests.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to read its answers.
pub const ANSWER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections served at once: a Prometheus or two, the kubelet, a person.
pub const MAX_CONNECTIONS: usize = 16;

pub const MAX_IDLE_PER_PEER: usize = 4;

/// After a failed accept (no file descriptors left, say), so that the loop does not spin.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error(
        "cannot listen on {listen}: the port is in use: set {flag} to another port, :0 for any free port, or off"
    )]
    InUse {
        flag: &'static str,
        listen: ListenAddress,
    },
    /// Another reason: no such address, no right to the port.
    #[error("cannot listen on {listen}: set {flag} to an address of this host, or off")]
    Bind {
        flag: &'static str,
        listen: ListenAddress,
        source: io::Error,
    },
}

/// The pages of a program.
pub trait HealthSource: Clone + Send + Sync + 'static {
    /// `/metrics`, in Prometheus' text format.
    fn render_metrics(&self) -> String;
    /// `/healthz`: `Err` says what is stuck.
    fn check_health(&self) -> Result<(), String>;
    /// `/readyz`: `Err` says why the program is not ready.
    fn check_readiness(&self) -> Result<(), String>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServedPages {
    /// `--listen`: `/metrics`, and the probes too.
    All,
    /// `--probe-listen`: `/healthz` and `/readyz`.
    Probes,
}

impl ServedPages {
    fn listen_flag(self) -> &'static str {
        match self {
            ServedPages::All => "--listen",
            ServedPages::Probes => "--probe-listen",
        }
    }
}

/// A server that has its socket.
#[derive(Debug)]
pub struct HealthServer {
    listener: TcpListener,
    address: SocketAddr,
    pages: ServedPages,
}

impl HealthServer {
    /// Binds the socket of `--listen`; `None` for `off`.
    pub async fn bind(listen: &ListenAddress) -> Result<Option<Self>, HttpError> {
        Self::bind_for(ServedPages::All, listen).await
    }

    /// Binds the socket of `--probe-listen`; `None` for `off`.
    pub async fn bind_probes(listen: &ListenAddress) -> Result<Option<Self>, HttpError> {
        Self::bind_for(ServedPages::Probes, listen).await
    }

    async fn bind_for(
        pages: ServedPages,
        listen: &ListenAddress,
    ) -> Result<Option<Self>, HttpError> {
        let (host, port) = match listen {
            ListenAddress::Off => return Ok(None),
            ListenAddress::At { host, port } => (host.as_deref(), *port),
        };
        let bound = match host {
            Some(host) => TcpListener::bind((host, port)).await,
            None => bind_all_addresses(port).await,
        };
        let ready = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (flag, listen) = (pages.listen_flag(), listen.clone());
        match ready {
            Ok((address, listener)) => Ok(Some(Self {
                listener,
                address,
                pages,
            })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(HttpError::InUse { flag, listen })
            }
            Err(source) => Err(HttpError::Bind {
                flag,
                listen,
                source,
            }),
        }
    }

    /// The address, with the port that was found for `:0`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn serve_forever(self, shown: impl HealthSource) -> Infallible {
        let connections = ConnectionTable::new(ConnectionLimits {
            connections: MAX_CONNECTIONS,
            idle_per_peer: MAX_IDLE_PER_PEER,
        });
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    if let Some(place) = connections.admit_peer(peer.ip()) {
                        let served = serve_connection(stream, self.pages, shown.clone(), place);
                        tokio::spawn(served);
                    }
                    // The new connection reads its request before the next one can take its place.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                }
            }
        }
    }
}

/// Binds every address: IPv6 with IPv4 (Linux maps it), or IPv4 alone where the kernel has no IPv6.
async fn bind_all_addresses(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(("::", port)).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind(("0.0.0.0", port)).await
        }
        bound => bound,
    }
}

async fn serve_connection(
    stream: TcpStream,
    pages: ServedPages,
    shown: impl HealthSource,
    place: ConnectionSlot,
) {
    let answer = service_fn(|request: Request<Incoming>| {
        // The request was served at once; the connection is idle anew.
        drop(place.mark_busy());
        let response = respond_to(&request, pages, &shown);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(8 * 1024)
        .serve_connection(
            TokioIo::new(TimedStream::new(stream, ANSWER_READ_TIMEOUT)),
            answer,
        );
    tokio::select! {
        biased;
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a client's connection broke");
        },
        () = place.wait_for_close() => tracing::debug!("too many connections: closes an idle one to accept a new one"),
    }
}

fn respond_to(
    request: &Request<Incoming>,
    pages: ServedPages,
    shown: &impl HealthSource,
) -> Response<Full<Bytes>> {
    let answer = match request.uri().path() {
        "/metrics" if pages == ServedPages::All => (StatusCode::OK, shown.render_metrics()),
        "/healthz" => health_answer(shown.check_health()),
        "/readyz" => health_answer(shown.check_readiness()),
        _ => (StatusCode::NOT_FOUND, not_found_text(pages).to_owned()),
    };
    let allowed = [Method::GET, Method::HEAD].contains(request.method());
    if allowed || answer.0 == StatusCode::NOT_FOUND {
        return text_response(answer);
    }
    let mut refusal = text_response((StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned()));
    refusal
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    refusal
}

fn not_found_text(pages: ServedPages) -> &'static str {
    match pages {
        ServedPages::All => "not found: use /metrics, /healthz or /readyz\n",
        ServedPages::Probes => "not found: use /healthz or /readyz; --listen serves /metrics\n",
    }
}

fn health_answer(verdict: Result<(), String>) -> (StatusCode, String) {
    match verdict {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// The content type is that of Prometheus' text format, which other clients read as plain text.
fn text_response((status, body): (StatusCode, String)) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}

#[cfg(test)]
mod tests;
