//! FleetLock version 1, as Zincati speaks it. Source: its protocol page, and `planned-reboots.md`
//! §2 of the project's facts.
//!
//! Clients do not authenticate themselves. Zincati sends no content type, and reads only the
//! answer's status.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use serde::Deserialize;

use super::auth::reject_browser_request;
use super::body;
use super::connection::ConnectionContext;
use super::reply::{LockReply, RequestOutcome};
use super::waiter_limit::LockApiState;
use crate::lock::service::{LockRequest, LockRequester, WaitMode};

/// Required as a guard against requests that were redirected here.
const FLEETLOCK_HEADER: &str = "fleet-lock-protocol";

/// Bytes of an id or a group. The protocol has no limit; Zincati's ids have 32.
const MAX_NAME_BYTES: usize = 253;

pub(super) fn fleetlock_router(app: Arc<LockApiState>) -> Router {
    Router::new()
        .route("/v1/pre-reboot", post(pre_reboot))
        .route("/v1/steady-state", post(steady_state))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn pre_reboot(
    State(app): State<Arc<LockApiState>>,
    Extension(link): Extension<ConnectionContext>,
    request: Request,
) -> Response {
    let reply = match read_client(&app, request).await {
        Err(refusal) => refusal,
        Ok(client) => match check_group_served(&app, &client) {
            Err(refusal) => refusal,
            Ok(()) => request_lock(&app, &link, client).await,
        },
    };
    reply.into_fleetlock_response()
}

/// Checked before any object is created for the group. Unlocking is allowed for all groups, so that
/// a lock taken before the flag was changed can still be released.
fn check_group_served(app: &LockApiState, client: &LockRequester) -> Result<(), LockReply> {
    let LockRequester::FleetLock { group, .. } = client else {
        return Ok(());
    };
    app.fleetlock_groups
        .check_group_served(group, [])
        .map_err(|refused| LockReply::new(RequestOutcome::Forbidden, refused.to_string()))
}

async fn request_lock(
    app: &LockApiState,
    link: &ConnectionContext,
    client: LockRequester,
) -> LockReply {
    let (wait, patience) = if app.fleetlock_drain {
        (WaitMode::No, None)
    } else {
        (WaitMode::Soon, Some(app.limits.fleetlock_wait))
    };
    app.perform_lock(link, LockRequest { client, wait }, patience)
        .await
}

async fn steady_state(
    State(app): State<Arc<LockApiState>>,
    Extension(link): Extension<ConnectionContext>,
    request: Request,
) -> Response {
    let reply = match read_client(&app, request).await {
        Err(refusal) => refusal,
        Ok(client) => app.perform_unlock(&link, client).await,
    };
    reply.into_fleetlock_response()
}

async fn no_such_path() -> Response {
    let line = "no such path: use POST /v1/pre-reboot or POST /v1/steady-state";
    LockReply::new(RequestOutcome::NoSuchPath, line).into_fleetlock_response()
}

async fn wrong_method() -> Response {
    LockReply::new(RequestOutcome::WrongMethod, "FleetLock uses POST").into_fleetlock_response()
}

#[derive(Deserialize)]
struct FleetlockBody {
    client_params: FleetlockClientParams,
}

#[derive(Deserialize)]
struct FleetlockClientParams {
    id: String,
    group: String,
}

async fn read_client(app: &LockApiState, request: Request) -> Result<LockRequester, LockReply> {
    reject_browser_request(request.headers())?;
    speaks_fleetlock(request.headers())?;
    let (_, body) = body::read_body(request, &app.limits).await?;
    let FleetlockBody { client_params } = serde_json::from_slice(&body).map_err(|error| {
        malformed_reply(format!(
            "the body is not a FleetLock request (client_params with id and group): {error}"
        ))
    })?;
    let FleetlockClientParams { id, group } = client_params;
    // Both become part of a field manager's name, which Kubernetes requires to be printable.
    let visible = |c: u8| c.is_ascii_graphic();
    if id.is_empty() || id.len() > MAX_NAME_BYTES || !id.bytes().all(visible) {
        return Err(malformed_reply(
            "id must be 1 to 253 visible ASCII characters",
        ));
    }
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-');
    if group.is_empty() || group.len() > MAX_NAME_BYTES || !group.bytes().all(allowed) {
        return Err(malformed_reply(
            "group must be 1 to 253 letters, digits, '.' and '-'",
        ));
    }
    Ok(LockRequester::FleetLock { group, id })
}

fn speaks_fleetlock(headers: &HeaderMap) -> Result<(), LockReply> {
    let mut values = headers.get_all(FLEETLOCK_HEADER).iter();
    if values.next().is_some_and(|value| value == "true") && values.next().is_none() {
        return Ok(());
    }
    let line = "the request needs the header fleet-lock-protocol: true";
    Err(LockReply::new(RequestOutcome::NoHeader, line))
}

fn malformed_reply(line: impl AsRef<str>) -> LockReply {
    LockReply::new(RequestOutcome::Malformed, line)
}
