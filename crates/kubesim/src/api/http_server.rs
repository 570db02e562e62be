//! The API server on a TCP port, for kubectl and for separate programs.

use http::header::AUTHORIZATION;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::answer::AnswerBody;
use super::service::{ApiServer, read_http_request};

/// The user of requests without a bearer token.
const DEFAULT_USER: &str = "system:admin";

impl ApiServer {
    /// Serves plain HTTP/1.1 on a listener until the future is dropped. The bearer token itself is
    /// the user's name; nothing is verified, so bind to loopback.
    pub async fn serve_http(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve_connection(self.clone(), stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    // Mostly out of file descriptors: wait until some are closed.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn serve_connection(server: ApiServer, stream: TcpStream) {
    // Watch events are small and must not wait for Nagle's algorithm.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer_request(server.clone(), request));
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer_request(
    server: ApiServer,
    request: http::Request<Incoming>,
) -> Result<http::Response<AnswerBody>, LostRequest> {
    let token = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let user = token
        .and_then(|token| token.strip_prefix("Bearer "))
        .unwrap_or(DEFAULT_USER)
        .to_owned();
    let request = read_http_request(request, &user)
        .await
        .map_err(|_| LostRequest)?;
    let answer = server
        .serve_with_faults(request)
        .await
        .map_err(|_| LostRequest)?;
    Ok(answer.into_http())
}

/// A fault: the connection closes without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the request was lost on purpose")]
struct LostRequest;
