//! A body, but not for ever and not without end: it is copied into one small buffer as it comes, for what
//! each frame of it would keep alive is many times what it carries.

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;

use super::answer::{Reply, Verdict};
use super::config::Limits;

/// Reads the body whole.
pub(super) async fn read(request: Request, limits: &Limits) -> Result<(Parts, Bytes), Reply> {
    let (parts, body) = request.into_parts();
    // What says that it is too long is not even begun.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large(limits));
    }
    match tokio::time::timeout(limits.body, copied(body, limits)).await {
        Ok(whole) => Ok((parts, whole?)),
        Err(_) => Err(Reply::new(
            Verdict::Slow,
            format!("the body was not there within {} s", limits.body.as_secs()),
        )),
    }
}

async fn copied(mut body: Body, limits: &Limits) -> Result<Bytes, Reply> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            let line = "the body breaks off or its chunks are malformed";
            Reply::new(Verdict::Malformed, line)
        })?;
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > limits.body_bytes {
            return Err(too_large(limits));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large(limits: &Limits) -> Reply {
    let most = limits.body_bytes / 1024;
    Reply::new(
        Verdict::TooLarge,
        format!("the body is longer than {most} KiB"),
    )
}
