//! The server on a port, for kubectl and for programs of their own.

use http::header::AUTHORIZATION;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::answer::AnswerBody;
use super::service::{ApiServer, read};

/// Who asks when nobody says.
const ANYBODY: &str = "system:admin";

impl ApiServer {
    /// Serves plain HTTP/1.1 on a listener until the future is dropped. A bearer token names the
    /// user, as it stands; there are no passwords here: bind to loopback.
    pub async fn serve(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(connection(self.clone(), stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    // Out of file descriptors, mostly: somebody has to let go of one first.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn connection(server: ApiServer, stream: TcpStream) {
    // Events are small and somebody waits for each of them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(server.clone(), request));
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(
    server: ApiServer,
    request: http::Request<Incoming>,
) -> Result<http::Response<AnswerBody>, Lost> {
    let token = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let user = token
        .and_then(|token| token.strip_prefix("Bearer "))
        .unwrap_or(ANYBODY)
        .to_owned();
    let request = read(request, &user).await.map_err(|_| Lost)?;
    let answer = server.serve_one(request).await.map_err(|_| Lost)?;
    Ok(answer.into_http())
}

/// The connection is dropped without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the request was lost on purpose")]
struct Lost;
