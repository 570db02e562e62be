//! Serves one connection.

use std::convert::Infallible;
use std::sync::Arc;

use dogwatch_runtime::connections::ConnectionSlot;
use dogwatch_runtime::http::TimedStream;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::routes::{DashboardState, answer_request};

/// Headers of a request, with the cookies of everything else on loopback.
const MAX_HEADER_BYTES: usize = 16 * 1024;

pub(crate) async fn serve_connection(
    stream: TcpStream,
    slot: ConnectionSlot,
    state: Arc<DashboardState>,
) {
    // An answer is several writes, and must not wait for the peer's acknowledgements.
    let _ = stream.set_nodelay(true);
    let limits = state.limits;
    let answer = service_fn(|request: Request<Incoming>| {
        let (state, busy) = (Arc::clone(&state), slot.mark_busy());
        async move { Ok::<_, Infallible>(answer_request(state, request, busy).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.read_timeout)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(
            TokioIo::new(TimedStream::new(stream, limits.write_timeout)),
            answer,
        );
    tokio::select! {
        biased;
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a viewer's connection broke");
        },
        () = slot.wait_for_close() => {
            tracing::debug!("too many connections: closes an idle one to accept a new one");
        }
    }
}
