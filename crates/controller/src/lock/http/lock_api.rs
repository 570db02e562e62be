//! The lock API: two calls with a form, made for `curl`. Source: specification §2.7.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;

use super::auth::{CallerIdentity, reject_browser_request};
use super::connection::ConnectionContext;
use super::reply::{LockReply, RequestOutcome};
use super::waiter_limit::LockApiState;
use super::{body, form, openapi};
use crate::lock::service::{LockRequest, LockRequester};

pub(super) fn lock_api_router(app: Arc<LockApiState>) -> Router {
    Router::new()
        .route("/api/v1/lock", post(handle_lock))
        .route("/api/v1/unlock", post(handle_unlock))
        .route("/api/openapi.json", get(openapi::serve_openapi))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn handle_lock(
    State(app): State<Arc<LockApiState>>,
    Extension(link): Extension<ConnectionContext>,
    request: Request,
) -> Response {
    let reply = checked_lock(&app, &link, request).await;
    reply.unwrap_or_else(|refusal| refusal).into_text_response()
}

async fn checked_lock(
    app: &LockApiState,
    link: &ConnectionContext,
    request: Request,
) -> Result<LockReply, LockReply> {
    let asked = AuthenticatedRequest::read_authenticated(app, link, request).await?;
    let form = form::parse_lock_form(asked.content_type.as_deref(), asked.body).await?;
    let by = app.guard.authorize_host(asked.identity, &form.host).await?;
    tracing::info!(host = form.host, wait = ?form.wait, by, peer = %link.peer, "a client requests the lock");
    let request = LockRequest {
        client: LockRequester::Api { host: form.host },
        wait: form.wait,
    };
    Ok(app.perform_lock(link, request, None).await)
}

async fn handle_unlock(
    State(app): State<Arc<LockApiState>>,
    Extension(link): Extension<ConnectionContext>,
    request: Request,
) -> Response {
    let reply = checked_unlock(&app, &link, request).await;
    reply.unwrap_or_else(|refusal| refusal).into_text_response()
}

async fn checked_unlock(
    app: &LockApiState,
    link: &ConnectionContext,
    request: Request,
) -> Result<LockReply, LockReply> {
    let asked = AuthenticatedRequest::read_authenticated(app, link, request).await?;
    let host = form::parse_unlock_form(asked.content_type.as_deref(), asked.body).await?;
    let by = app.guard.authorize_host(asked.identity, &host).await?;
    tracing::info!(host, by, peer = %link.peer, "a client unlocks");
    Ok(app.perform_unlock(link, LockRequester::Api { host }).await)
}

async fn no_such_path() -> Response {
    LockReply::new(
        RequestOutcome::NoSuchPath,
        "no such path: use POST /api/v1/lock, POST /api/v1/unlock or GET /api/openapi.json",
    )
    .into_text_response()
}

async fn wrong_method() -> Response {
    let line = "wrong method: lock and unlock with POST";
    LockReply::new(RequestOutcome::WrongMethod, line).into_text_response()
}

struct AuthenticatedRequest {
    identity: CallerIdentity,
    content_type: Option<String>,
    body: Bytes,
}

impl AuthenticatedRequest {
    /// Checks first what costs nothing, then authenticates the caller, and only then reads the
    /// body.
    async fn read_authenticated(
        app: &LockApiState,
        link: &ConnectionContext,
        request: Request,
    ) -> Result<Self, LockReply> {
        reject_browser_request(request.headers())?;
        if request.uri().query().is_some() {
            let line = "send hostname and wait in the body, not after a ? in the path";
            return Err(LockReply::new(RequestOutcome::Malformed, line));
        }
        if request.headers().contains_key(CONTENT_ENCODING) {
            let line = "send the form without a content encoding";
            return Err(LockReply::new(RequestOutcome::UnknownType, line));
        }
        let identity = app
            .guard
            .authenticate_request(request.headers(), &link.certificate)
            .await?;
        link.unknown.release_permit();
        let (parts, body) = body::read_body(request, &app.limits).await?;
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
        Ok(Self {
            identity,
            content_type: content_type.map(std::borrow::Cow::into_owned),
            body,
        })
    }
}
