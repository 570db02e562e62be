//! The lock API: two calls with a form, made for `curl`. Source: specification §2.7.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;

use super::answer::{Reply, Verdict};
use super::auth::{Identity, no_browser};
use super::connection::Link;
use super::waiting::App;
use super::{body, form, openapi};
use crate::lock::service::{Client, LockRequest};

pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/v1/lock", post(lock))
        .route("/api/v1/unlock", post(unlock))
        .route("/api/openapi.json", get(openapi::serve))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn lock(
    State(app): State<Arc<App>>,
    Extension(link): Extension<Link>,
    request: Request,
) -> Response {
    let reply = checked_lock(&app, &link, request).await;
    reply.unwrap_or_else(|refusal| refusal).text()
}

async fn checked_lock(app: &App, link: &Link, request: Request) -> Result<Reply, Reply> {
    let asked = Asked::read(app, link, request).await?;
    let form = form::lock_form(asked.content_type.as_deref(), asked.body).await?;
    let by = app.guard.check(asked.identity, &form.host).await?;
    tracing::info!(host = form.host, wait = ?form.wait, by, peer = %link.peer, "the lock is asked for");
    let request = LockRequest {
        client: Client::Api { host: form.host },
        wait: form.wait,
    };
    Ok(app.lock(link, request, None).await)
}

async fn unlock(
    State(app): State<Arc<App>>,
    Extension(link): Extension<Link>,
    request: Request,
) -> Response {
    let reply = checked_unlock(&app, &link, request).await;
    reply.unwrap_or_else(|refusal| refusal).text()
}

async fn checked_unlock(app: &App, link: &Link, request: Request) -> Result<Reply, Reply> {
    let asked = Asked::read(app, link, request).await?;
    let host = form::unlock_form(asked.content_type.as_deref(), asked.body).await?;
    let by = app.guard.check(asked.identity, &host).await?;
    tracing::info!(host, by, peer = %link.peer, "the lock is to be given up");
    Ok(app.unlock(link, Client::Api { host }).await)
}

async fn no_such_path() -> Response {
    Reply::new(
        Verdict::NoSuchPath,
        "no such path: there are POST /api/v1/lock, POST /api/v1/unlock and GET /api/openapi.json",
    )
    .text()
}

async fn wrong_method() -> Response {
    let line = "no such method here: the lock is asked for and given up with POST";
    Reply::new(Verdict::WrongMethod, line).text()
}

/// A request whose form was not read yet.
struct Asked {
    identity: Identity,
    content_type: Option<String>,
    body: Bytes,
}

impl Asked {
    /// What costs nothing is checked first, then who asks, and only then is a body read.
    async fn read(app: &App, link: &Link, request: Request) -> Result<Self, Reply> {
        no_browser(request.headers())?;
        if request.uri().query().is_some() {
            let line = "hostname and wait go into the body, nothing after a ? in the path";
            return Err(Reply::new(Verdict::Malformed, line));
        }
        if request.headers().contains_key(CONTENT_ENCODING) {
            let line = "send the form as it is, without a content encoding";
            return Err(Reply::new(Verdict::UnknownType, line));
        }
        let identity = app
            .guard
            .identify(request.headers(), &link.certificate)
            .await?;
        link.unknown.give_up();
        let (parts, body) = body::read(request, &app.limits).await?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
        Ok(Self {
            identity,
            content_type: content_type.map(std::borrow::Cow::into_owned),
            body,
        })
    }
}
