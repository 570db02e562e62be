//! FleetLock version 1, as Zincati speaks it. Source: its protocol page, and `planned-reboots.md` §2 of the
//! project's facts.
//!
//! Clients cannot say who they are, and nobody checks. Zincati sends no content type, and reads the answer's
//! status alone.

use std::sync::Arc;

use axum::Extension;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::post;
use serde::Deserialize;

use super::answer::{Reply, Verdict};
use super::auth::no_browser;
use super::body;
use super::connection::Link;
use super::waiting::App;
use crate::lock::service::{Client, LockRequest, Wait};

/// Guards against requests that were redirected here.
const HEADER: &str = "fleet-lock-protocol";

/// Bytes of an id or a group. The protocol has no limit; Zincati's ids have 32.
const LONGEST_NAME: usize = 253;

pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/pre-reboot", post(pre_reboot))
        .route("/v1/steady-state", post(steady_state))
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn pre_reboot(
    State(app): State<Arc<App>>,
    Extension(link): Extension<Link>,
    request: Request,
) -> Response {
    let reply = match client(&app, request).await {
        Err(refusal) => refusal,
        Ok(client) => match served(&app, &client) {
            Err(refusal) => refusal,
            Ok(()) => lock(&app, &link, client).await,
        },
    };
    reply.fleetlock()
}

/// Before anything is made for it. To give up is open to all groups: a lock that was taken before the flag
/// was changed is not kept for ever.
fn served(app: &App, client: &Client) -> Result<(), Reply> {
    let Client::FleetLock { group, .. } = client else {
        return Ok(());
    };
    app.fleetlock_groups
        .serves(group, [])
        .map_err(|refused| Reply::new(Verdict::Forbidden, refused.to_string()))
}

async fn lock(app: &App, link: &Link, client: Client) -> Reply {
    let (wait, patience) = if app.fleetlock_drain {
        (Wait::No, None)
    } else {
        (Wait::Soon, Some(app.limits.fleetlock_wait))
    };
    app.lock(link, LockRequest { client, wait }, patience).await
}

async fn steady_state(
    State(app): State<Arc<App>>,
    Extension(link): Extension<Link>,
    request: Request,
) -> Response {
    let reply = match client(&app, request).await {
        Err(refusal) => refusal,
        Ok(client) => app.unlock(&link, client).await,
    };
    reply.fleetlock()
}

async fn no_such_path() -> Response {
    let line = "no such path: there are POST /v1/pre-reboot and POST /v1/steady-state";
    Reply::new(Verdict::NoSuchPath, line).fleetlock()
}

async fn wrong_method() -> Response {
    Reply::new(Verdict::WrongMethod, "FleetLock uses POST").fleetlock()
}

#[derive(Deserialize)]
struct Body {
    client_params: ClientParams,
}

#[derive(Deserialize)]
struct ClientParams {
    id: String,
    group: String,
}

async fn client(app: &App, request: Request) -> Result<Client, Reply> {
    no_browser(request.headers())?;
    speaks_fleetlock(request.headers())?;
    let (_, body) = body::read(request, &app.limits).await?;
    let Body { client_params } = serde_json::from_slice(&body).map_err(|error| {
        malformed(format!(
            "the body is no FleetLock request (client_params with id and group): {error}"
        ))
    })?;
    let ClientParams { id, group } = client_params;
    // Both become part of a field manager's name, which Kubernetes wants printable.
    let visible = |c: u8| c.is_ascii_graphic();
    if id.is_empty() || id.len() > LONGEST_NAME || !id.bytes().all(visible) {
        return Err(malformed("id must be 1 to 253 visible ASCII characters"));
    }
    let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-');
    if group.is_empty() || group.len() > LONGEST_NAME || !group.bytes().all(allowed) {
        return Err(malformed(
            "group must be 1 to 253 letters, digits, '.' and '-'",
        ));
    }
    Ok(Client::FleetLock { group, id })
}

fn speaks_fleetlock(headers: &HeaderMap) -> Result<(), Reply> {
    let mut values = headers.get_all(HEADER).iter();
    if values.next().is_some_and(|value| value == "true") && values.next().is_none() {
        return Ok(());
    }
    let line = "the header is missing: fleet-lock-protocol: true";
    Err(Reply::new(Verdict::NoHeader, line))
}

fn malformed(line: impl AsRef<str>) -> Reply {
    Reply::new(Verdict::Malformed, line)
}
