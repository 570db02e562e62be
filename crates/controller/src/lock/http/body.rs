//! A body, but not for ever and not without end.

use axum::extract::Request;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;

use super::answer::{Reply, Verdict};
use super::config::Limits;

/// Reads the body whole.
pub(super) async fn read(request: Request, limits: &Limits) -> Result<(Parts, Bytes), Reply> {
    let (parts, body) = request.into_parts();
    // What says that it is too long is not even begun.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large(limits));
    }
    let whole = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body, whole).await {
        Ok(Ok(body)) => Ok((parts, body.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limits)),
        Ok(Err(_)) => Err(Reply::new(
            Verdict::Malformed,
            "the body breaks off or its chunks are malformed",
        )),
        Err(_) => Err(Reply::new(
            Verdict::Slow,
            format!("the body was not there within {} s", limits.body.as_secs()),
        )),
    }
}

fn too_large(limits: &Limits) -> Reply {
    let most = limits.body_bytes / 1024;
    Reply::new(
        Verdict::TooLarge,
        format!("the body is longer than {most} KiB"),
    )
}
