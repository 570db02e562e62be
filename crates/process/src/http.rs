//! A small server for `/metrics` and the probes, over HTTP/1.
//!
//! **For:** Prometheus and the kubelet's probes, each on a listener of its own: whoever reaches the metrics
//! cannot keep the kubelet from its answer.
//! **May touch:** one listening socket. What is said is asked of the program each time.
//! **Promises:** at most [`MOST_CONNECTIONS`] at once, and a newcomer is served at once: the oldest idle
//! connection is closed for it. Header, idleness and the reading of an answer have time limits, so that no
//! client costs more than a few KiB for a few seconds.

mod timed;

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

use self::timed::Timed;
use crate::connections::{Connection, Connections, Limits};
use crate::listen::Listen;

/// How long a client may take for its header, and stay silent between requests.
pub const HEADER_WITHIN: Duration = Duration::from_secs(10);

/// How long a client may take to read its answers.
pub const READ_WITHIN: Duration = Duration::from_secs(10);

/// Connections served at once: a Prometheus or two, the kubelet, a person.
pub const MOST_CONNECTIONS: usize = 16;

/// Idle ones of one peer.
pub const MOST_IDLE_PER_PEER: usize = 4;

/// After a failed accept (no file descriptors left, say), so that it does not spin.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Somebody else listens there.
    #[error(
        "cannot serve on {listen}, the port is in use: set {flag} to another one, :0 for any, or off"
    )]
    InUse {
        /// The flag.
        flag: &'static str,
        /// Where.
        listen: Listen,
    },
    /// Another reason: no such address, no right to the port.
    #[error("cannot serve on {listen}: set {flag} to an address of this host, or off")]
    Bind {
        /// The flag.
        flag: &'static str,
        /// Where.
        listen: Listen,
        /// Why.
        source: io::Error,
    },
}

/// What a program shows of itself.
pub trait Shown: Clone + Send + Sync + 'static {
    /// `/metrics`, in Prometheus' text format.
    fn metrics(&self) -> String;
    /// `/healthz`: fine, or what is stuck.
    fn health(&self) -> Result<(), String>;
    /// `/readyz`: ready, or why not.
    fn ready(&self) -> Result<(), String>;
}

/// What a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    /// `--listen`: `/metrics`, and the probes for whoever looks there.
    All,
    /// `--probe-listen`: `/healthz` and `/readyz`.
    Probes,
}

impl Pages {
    fn flag(self) -> &'static str {
        match self {
            Pages::All => "--listen",
            Pages::Probes => "--probe-listen",
        }
    }
}

/// A server that has its socket.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    pages: Pages,
}

impl Server {
    /// Takes the socket of `--listen`; nothing for `off`.
    pub async fn bind(listen: &Listen) -> Result<Option<Self>, HttpError> {
        Self::bind_for(Pages::All, listen).await
    }

    /// Takes the socket of `--probe-listen`; nothing for `off`.
    pub async fn bind_probes(listen: &Listen) -> Result<Option<Self>, HttpError> {
        Self::bind_for(Pages::Probes, listen).await
    }

    async fn bind_for(pages: Pages, listen: &Listen) -> Result<Option<Self>, HttpError> {
        let (host, port) = match listen {
            Listen::Off => return Ok(None),
            Listen::At { host, port } => (host.as_deref(), *port),
        };
        let bound = match host {
            Some(host) => TcpListener::bind((host, port)).await,
            None => everywhere(port).await,
        };
        let ready = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (flag, listen) = (pages.flag(), listen.clone());
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

    /// Where it listens: the port that was found for `:0`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for ever.
    pub async fn serve(self, shown: impl Shown) -> Infallible {
        let connections = Connections::new(Limits {
            connections: MOST_CONNECTIONS,
            idle_per_peer: MOST_IDLE_PER_PEER,
        });
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    if let Some(place) = connections.enter(peer.ip()) {
                        let served = serve_connection(stream, self.pages, shown.clone(), place);
                        tokio::spawn(served);
                    }
                    // The newcomer reads its request before the next one can take its place.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }
}

/// Every address, IPv4 as well (Linux maps it), or IPv4 alone where the kernel has no IPv6.
async fn everywhere(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(("::", port)).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind(("0.0.0.0", port)).await
        }
        bound => bound,
    }
}

async fn serve_connection(stream: TcpStream, pages: Pages, shown: impl Shown, place: Connection) {
    let answer = service_fn(|request: Request<Incoming>| {
        // Served at once; from here on it is idle anew.
        drop(place.busy());
        let response = respond(&request, pages, &shown);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WITHIN)
        .max_buf_size(8 * 1024)
        .serve_connection(TokioIo::new(Timed::new(stream, READ_WITHIN)), answer);
    tokio::select! {
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a client's connection broke");
        },
        () = place.closed() => tracing::debug!("an idle connection is closed for a newcomer"),
    }
}

fn respond(request: &Request<Incoming>, pages: Pages, shown: &impl Shown) -> Response<Full<Bytes>> {
    let answer = match request.uri().path() {
        "/metrics" if pages == Pages::All => (StatusCode::OK, shown.metrics()),
        "/healthz" => verdict(shown.health()),
        "/readyz" => verdict(shown.ready()),
        _ => (StatusCode::NOT_FOUND, not_found(pages).to_owned()),
    };
    let allowed = [Method::GET, Method::HEAD].contains(request.method());
    if allowed || answer.0 == StatusCode::NOT_FOUND {
        return text(answer);
    }
    let mut refusal = text((StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned()));
    refusal
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    refusal
}

fn not_found(pages: Pages) -> &'static str {
    match pages {
        Pages::All => "not found: there are /metrics, /healthz and /readyz\n",
        Pages::Probes => "not found: there are /healthz and /readyz; --listen serves /metrics\n",
    }
}

fn verdict(verdict: Result<(), String>) -> (StatusCode, String) {
    match verdict {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// The type is that of Prometheus' text format, which is plain text for everybody else.
fn text((status, body): (StatusCode, String)) -> Response<Full<Bytes>> {
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
