//! Authenticates callers, and checks that they may lock the host.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, ORIGIN};
use dogwatch_k8s::access::{AccessClient, ApiCaller};
use dogwatch_k8s::{Client, Error};
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::config::LockAuthMode;
use super::reply::{LockReply, RequestOutcome};

/// Checks asked of the API server at once. Others wait, so that made-up tokens cannot flood it.
const MAX_CONCURRENT_CHECKS: usize = 32;

/// How long a request waits for its check to begin; much less while the API server answers.
const CHECK_PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Does not name the audience, because the caller is not authenticated.
const UNKNOWN_TOKEN_MESSAGE: &str = "the API server rejects this token, or the token has another audience than the lock API: create one with kubectl create token NAME --audience dogwatch (--lock-audience)";

/// Finds the owner of a token, and checks what a caller may do.
pub trait LockAccess: Send + Sync + 'static {
    /// `None`: the token is nobody's.
    fn find_token_owner(
        &self,
        token: String,
    ) -> BoxFuture<'static, Result<Option<ApiCaller>, Error>>;

    fn may_lock(&self, caller: ApiCaller, host: String) -> BoxFuture<'static, Result<bool, Error>>;
}

/// Asks the API server for each request: a revoked token or right is useless at once, and no token
/// is kept in memory. Two calls are few beside those that a lock costs.
#[derive(Clone)]
pub struct KubernetesAccess(AccessClient);

impl KubernetesAccess {
    /// `audiences` are those that a token may be made for (`--lock-audience`).
    pub fn new(client: Client, audiences: Vec<String>) -> Self {
        Self(AccessClient::new(client, audiences))
    }
}

impl LockAccess for KubernetesAccess {
    fn find_token_owner(
        &self,
        token: String,
    ) -> BoxFuture<'static, Result<Option<ApiCaller>, Error>> {
        let client = self.0.clone();
        Box::pin(async move { client.find_token_owner(&token).await })
    }

    fn may_lock(&self, caller: ApiCaller, host: String) -> BoxFuture<'static, Result<bool, Error>> {
        let client = self.0.clone();
        Box::pin(async move { client.can_lock_host(&caller, &host).await })
    }
}

/// The owner of the connection's client certificate, or why it names nobody.
pub(super) type CertificateOwner = Option<Result<ApiCaller, String>>;

/// No body is read of a caller who is not authenticated.
pub(super) enum CallerIdentity {
    /// With `--lock-auth none`.
    Anybody,
    Known(ApiCaller),
}

pub(super) struct LockAccessGuard {
    auth: LockAuthMode,
    access: Arc<dyn LockAccess>,
    checks: Semaphore,
}

impl LockAccessGuard {
    pub(super) fn new(auth: LockAuthMode, access: Arc<dyn LockAccess>) -> Self {
        Self {
            auth,
            access,
            checks: Semaphore::new(MAX_CONCURRENT_CHECKS),
        }
    }

    /// Authenticates the caller. A token goes before a client certificate, because it was sent on
    /// purpose.
    pub(super) async fn authenticate_request(
        &self,
        headers: &HeaderMap,
        certificate: &CertificateOwner,
    ) -> Result<CallerIdentity, LockReply> {
        if self.auth == LockAuthMode::None {
            return Ok(CallerIdentity::Anybody);
        }
        match (bearer_token_of(headers)?, certificate) {
            (Some(token), _) => self
                .find_token_owner(token)
                .await
                .map(CallerIdentity::Known),
            (None, Some(Ok(caller))) => Ok(CallerIdentity::Known(caller.clone())),
            (None, Some(Err(why))) => Err(unauthenticated_reply(why)),
            (None, None) => {
                let line =
                    "send a bearer token (Authorization: Bearer TOKEN) or a client certificate";
                Err(unauthenticated_reply(line))
            }
        }
    }

    /// Checks that the caller may lock this host. Returns the caller's name for the log.
    pub(super) async fn authorize_host(
        &self,
        identity: CallerIdentity,
        host: &str,
    ) -> Result<String, LockReply> {
        let CallerIdentity::Known(caller) = identity else {
            return Ok("anybody on loopback".to_owned());
        };
        let _turn = self.acquire_check_permit().await?;
        let may = self.access.may_lock(caller.clone(), host.to_owned());
        if may.await.map_err(|e| access_error_reply(&e))? {
            return Ok(caller.to_string());
        }
        let line = format!(
            "{caller} may not lock {host}: grant verb lock on rebootlocks.dogwatch.dev with resource name {host}"
        );
        Err(LockReply::new(RequestOutcome::Forbidden, line))
    }

    /// Copies the token only once the API server can be asked.
    async fn find_token_owner(&self, token: &str) -> Result<ApiCaller, LockReply> {
        let _turn = self.acquire_check_permit().await?;
        let owner = self.access.find_token_owner(token.to_owned()).await;
        owner
            .map_err(|e| access_error_reply(&e))?
            .ok_or_else(|| unauthenticated_reply(UNKNOWN_TOKEN_MESSAGE))
    }

    async fn acquire_check_permit(&self) -> Result<SemaphorePermit<'_>, LockReply> {
        match tokio::time::timeout(CHECK_PERMIT_TIMEOUT, self.checks.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(cannot_check_reply()),
        }
    }
}

/// Refuses requests of a browser: any web page can make its reader's browser post to loopback or
/// into the reader's network.
pub(super) fn reject_browser_request(headers: &HeaderMap) -> Result<(), LockReply> {
    if headers.contains_key(ORIGIN) {
        let line = "web pages may not request the lock (the request has an Origin header)";
        return Err(LockReply::new(RequestOutcome::Forbidden, line));
    }
    Ok(())
}

/// The bearer token, if the header is there.
fn bearer_token_of(headers: &HeaderMap) -> Result<Option<&str>, LockReply> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(unauthenticated_reply(
            "there is more than one Authorization header",
        ));
    }
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .unwrap_or_default();
    let token = token.trim();
    let fits = !token.is_empty() && !token.contains(' ');
    if scheme.eq_ignore_ascii_case("bearer") && fits {
        return Ok(Some(token));
    }
    Err(unauthenticated_reply(
        "the Authorization header must be: Bearer TOKEN (other schemes are not supported)",
    ))
}

fn unauthenticated_reply(why: &str) -> LockReply {
    LockReply::new(
        RequestOutcome::Unauthenticated,
        format!("the lock API cannot identify you: {why}"),
    )
}

/// The cause is only logged, because the caller is not authenticated yet.
fn access_error_reply(error: &Error) -> LockReply {
    tracing::warn!(
        error = error.error_chain(),
        "failed to ask the API server who may use the lock API"
    );
    cannot_check_reply()
}

fn cannot_check_reply() -> LockReply {
    LockReply::new(
        RequestOutcome::Unavailable,
        "the lock API cannot check your identity or your rights: the API server gave no valid answer; nothing was changed, try again",
    )
}
