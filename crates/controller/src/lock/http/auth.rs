//! Who asks, and whether they may.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, ORIGIN};
use dogwatch_k8s::access::{AccessClient, Caller};
use dogwatch_k8s::{Client, Error};
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::answer::{Reply, Verdict};
use super::config::LockAuth;

/// Checks asked of the API server at once. More wait: somebody with made-up tokens shall not flood it.
const CHECKS_AT_ONCE: usize = 32;

/// How long a request waits for its turn to be checked: with an API server that answers, much less.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// The audience is not said: the one who asks is not known.
const NOT_OURS: &str = "the API server does not know this token, or it was not made for the lock API: kubectl create token NAME --audience dogwatch (--lock-audience)";

/// Who says who somebody is and what they may do.
pub trait Access: Send + Sync + 'static {
    /// Whose token it is; nothing if it is nobody's.
    fn owner(&self, token: String) -> BoxFuture<'static, Result<Option<Caller>, Error>>;

    /// Whether they may lock and unlock this host.
    fn may_lock(&self, caller: Caller, host: String) -> BoxFuture<'static, Result<bool, Error>>;
}

/// The API server. It is asked for each request: a token or a right that was taken away is of no use at
/// once, and no token is kept in memory. Two calls are few beside those that a lock costs.
#[derive(Clone)]
pub struct KubernetesAccess(AccessClient);

impl KubernetesAccess {
    /// Asks with this client, for tokens of these audiences (`--lock-audience`).
    pub fn new(client: Client, audiences: Vec<String>) -> Self {
        Self(AccessClient::new(client, audiences))
    }
}

impl Access for KubernetesAccess {
    fn owner(&self, token: String) -> BoxFuture<'static, Result<Option<Caller>, Error>> {
        let client = self.0.clone();
        Box::pin(async move { client.owner(&token).await })
    }

    fn may_lock(&self, caller: Caller, host: String) -> BoxFuture<'static, Result<bool, Error>> {
        let client = self.0.clone();
        Box::pin(async move { client.may_lock(&caller, &host).await })
    }
}

/// The owner of the connection's client certificate, or why it names nobody.
pub(super) type CertificateOwner = Option<Result<Caller, String>>;

/// Who asks. No body is read of anybody who is not known.
pub(super) enum Identity {
    /// `--lock-auth none`.
    Anybody,
    Known(Caller),
}

pub(super) struct Guard {
    auth: LockAuth,
    access: Arc<dyn Access>,
    checks: Semaphore,
}

impl Guard {
    pub(super) fn new(auth: LockAuth, access: Arc<dyn Access>) -> Self {
        Self {
            auth,
            access,
            checks: Semaphore::new(CHECKS_AT_ONCE),
        }
    }

    /// Who asks. A token goes before a certificate: who sends one means it.
    pub(super) async fn identify(
        &self,
        headers: &HeaderMap,
        certificate: &CertificateOwner,
    ) -> Result<Identity, Reply> {
        if self.auth == LockAuth::None {
            return Ok(Identity::Anybody);
        }
        match (token(headers)?, certificate) {
            (Some(token), _) => self.owner(token).await.map(Identity::Known),
            (None, Some(Ok(caller))) => Ok(Identity::Known(caller.clone())),
            (None, Some(Err(why))) => Err(unknown(why)),
            (None, None) => {
                let line =
                    "send a bearer token (Authorization: Bearer TOKEN) or a client certificate";
                Err(unknown(line))
            }
        }
    }

    /// Who it is that may lock this host, in words for the log.
    pub(super) async fn check(&self, identity: Identity, host: &str) -> Result<String, Reply> {
        let Identity::Known(caller) = identity else {
            return Ok("anybody on loopback".to_owned());
        };
        let _turn = self.turn().await?;
        let may = self.access.may_lock(caller.clone(), host.to_owned());
        if may.await.map_err(|e| away(&e))? {
            return Ok(caller.to_string());
        }
        let line = format!(
            "{caller} may not lock {host}: this needs verb lock on rebootlocks.dogwatch.dev, named {host}"
        );
        Err(Reply::new(Verdict::Forbidden, line))
    }

    /// The token is copied only when the API server can be asked.
    async fn owner(&self, token: &str) -> Result<Caller, Reply> {
        let _turn = self.turn().await?;
        let owner = self.access.owner(token.to_owned()).await;
        owner
            .map_err(|e| away(&e))?
            .ok_or_else(|| unknown(NOT_OURS))
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, Reply> {
        match tokio::time::timeout(TURN_WITHIN, self.checks.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(cannot_check()),
        }
    }
}

/// Any web page can have its reader's browser post to the reader's own loopback, or into its network.
pub(super) fn no_browser(headers: &HeaderMap) -> Result<(), Reply> {
    if headers.contains_key(ORIGIN) {
        let line = "web pages may not ask for the lock (the request has an Origin header)";
        return Err(Reply::new(Verdict::Forbidden, line));
    }
    Ok(())
}

/// The bearer token, if the header is there.
fn token(headers: &HeaderMap) -> Result<Option<&str>, Reply> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(unknown("there is more than one Authorization header"));
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
    Err(unknown(
        "the Authorization header must be: Bearer TOKEN (no other scheme is taken)",
    ))
}

fn unknown(why: &str) -> Reply {
    Reply::new(
        Verdict::Unauthenticated,
        format!("who you are is not known: {why}"),
    )
}

/// The reason is the operator's to read, not the caller's: nobody knows yet who that is.
fn away(error: &Error) -> Reply {
    tracing::warn!(
        error = error.in_words(),
        "cannot ask the API server who may use the lock API"
    );
    cannot_check()
}

fn cannot_check() -> Reply {
    Reply::new(
        Verdict::Unavailable,
        "cannot check who you are or what you may do: the API server does not answer as it should; nothing was changed, try again",
    )
}
