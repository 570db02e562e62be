//! A small server for `/metrics` and the probes, over HTTP/1.
//!
//! **For:** Prometheus and the kubelet's probes.
//! **May touch:** one listening socket. What is said is asked of the program each time.
//! **Promises:** at most [`MOST_CONNECTIONS`] at once, each with a limit for its header and for its
//! idleness, so that no client costs more than a few KiB.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::listen::Listen;

/// How long a client may take for its header, and stay silent between requests.
pub const HEADER_WITHIN: Duration = Duration::from_secs(10);

/// Connections served at once: a Prometheus or two, the kubelet, a person. Others wait.
pub const MOST_CONNECTIONS: usize = 16;

/// After a failed accept (no file descriptors left, say), so that it does not spin.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Somebody else listens there.
    #[error(
        "cannot serve on {0}, the port is in use: set --listen to another one, :0 for any, or off"
    )]
    InUse(Listen),
    /// Another reason: no such address, no right to the port.
    #[error("cannot serve on {listen}: set --listen to an address of this host, or off")]
    Bind {
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

/// A server that has its socket.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Takes the socket; nothing for `off`.
    pub async fn bind(listen: &Listen) -> Result<Option<Self>, HttpError> {
        let (host, port) = match listen {
            Listen::Off => return Ok(None),
            Listen::At { host, port } => (host.as_deref(), *port),
        };
        let bound = match host {
            Some(host) => TcpListener::bind((host, port)).await,
            None => everywhere(port).await,
        };
        let ready = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        match ready {
            Ok((address, listener)) => Ok(Some(Self { listener, address })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(HttpError::InUse(listen.clone()))
            }
            Err(source) => Err(HttpError::Bind {
                listen: listen.clone(),
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
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let place = Arc::clone(&room).acquire_owned().await;
            let place = place.expect("nobody closes the semaphore");
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let shown = shown.clone();
                    tokio::spawn(async move {
                        serve_connection(stream, shown).await;
                        drop(place);
                    });
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

async fn serve_connection(stream: TcpStream, shown: impl Shown) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &shown);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WITHIN)
        .max_buf_size(8 * 1024)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client's connection broke");
    }
}

fn respond(request: &Request<Incoming>, shown: &impl Shown) -> Response<Full<Bytes>> {
    let answer = match request.uri().path() {
        "/metrics" => (StatusCode::OK, shown.metrics()),
        "/healthz" => verdict(shown.health()),
        "/readyz" => verdict(shown.ready()),
        _ => (
            StatusCode::NOT_FOUND,
            "not found: there are /metrics, /healthz and /readyz\n".to_owned(),
        ),
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
