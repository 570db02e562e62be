//! Reads a request's body with limits for its time and size. The body is copied into one small
//! buffer as it arrives, because each frame would keep alive many times what it carries.

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;

use super::config::LockApiLimits;
use super::reply::{LockReply, RequestOutcome};

pub(super) async fn read_body(
    request: Request,
    limits: &LockApiLimits,
) -> Result<(Parts, Bytes), LockReply> {
    let (parts, body) = request.into_parts();
    // A body that announces too many bytes is refused before it is read.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large_reply(limits));
    }
    match tokio::time::timeout(limits.body, copy_body(body, limits)).await {
        Ok(whole) => Ok((parts, whole?)),
        Err(_) => Err(LockReply::new(
            RequestOutcome::Slow,
            format!("the body did not arrive within {} s", limits.body.as_secs()),
        )),
    }
}

async fn copy_body(mut body: Body, limits: &LockApiLimits) -> Result<Bytes, LockReply> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let line = "the body is incomplete, or its chunks are malformed";
            LockReply::new(RequestOutcome::Malformed, line)
        })?;
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > limits.body_bytes {
            return Err(too_large_reply(limits));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large_reply(limits: &LockApiLimits) -> LockReply {
    let most = limits.body_bytes / 1024;
    LockReply::new(
        RequestOutcome::TooLarge,
        format!("the body is longer than {most} KiB"),
    )
}
