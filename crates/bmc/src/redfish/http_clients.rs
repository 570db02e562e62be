//! HTTP clients that drivers share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

#[cfg(feature = "tls")]
use reqwest::Certificate;
use reqwest::{Client, ClientBuilder, redirect, retry};

use crate::{BmcFault, FaultClass};

/// How long a connection may take, including TLS: half of `--bmc-timeout`'s default. So a BMC that
/// is absent differs from one that hangs, and a command to an absent BMC is known not to have been
/// sent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// This many drivers keep their connection between polls. A new connection costs a TLS handshake
/// (2.9 ms of CPU time against 0.3 ms for the poll), an open one 42 KiB (19 KiB without TLS).
const KEPT_CONNECTION_LIMIT: usize = 500;
/// Idle timeout of these kept connections: longer than the default poll interval.
const LONG_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Idle timeout of all other connections if more requests follow: longer than the default confirm
/// interval, so that work in progress uses one connection.
const SHORT_IDLE_TIMEOUT: Duration = Duration::from_secs(6);

/// The HTTP clients that drivers share: one or two for each way to verify certificates, not one for
/// each BMC. A client is dropped with the last driver that uses it. Clones share the clients.
#[derive(Clone, Default)]
pub struct SharedHttpClients(Arc<Mutex<ClientsByTrust>>);

/// The clients in use.
type ClientsByTrust = BTreeMap<(CertificateTrust, IdlePolicy), Weak<Client>>;

/// What happens to an idle connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IdlePolicy {
    /// It is kept until the next poll.
    Kept,
    /// It is closed: at once after a request with [`LastRequest`](super::transport::LastRequest),
    /// otherwise soon.
    Closed,
}

/// Which certificates are accepted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CertificateTrust {
    /// All certificates: `disableCertificateVerification`.
    Everybody,
    /// Certificates of the CAs that this machine trusts.
    Machine,
    /// Only certificates of these CAs (PEM).
    Only(Vec<u8>),
}

impl CertificateTrust {
    /// Derives the trust from the Secret's `ca.crt` and the inverse of
    /// `disableCertificateVerification`.
    pub(super) fn from_secret(ca: Option<&[u8]>, verify: bool) -> Self {
        match (verify, ca) {
            (false, Some(_) | None) => CertificateTrust::Everybody,
            (true, None) => CertificateTrust::Machine,
            (true, Some(ca)) => CertificateTrust::Only(ca.to_vec()),
        }
    }
}

impl fmt::Debug for SharedHttpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clients")
    }
}

impl SharedHttpClients {
    /// Returns the client for one more driver.
    ///
    /// # Errors
    /// [`FaultClass::Tls`]: the CA is not valid.
    pub(super) fn acquire_client(
        &self,
        trust: CertificateTrust,
    ) -> Result<(Arc<Client>, IdlePolicy), BmcFault> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_used = |client: &Weak<Client>| client.strong_count() > 0;
        clients.retain(|_, client| is_used(client));
        let keepers = clients
            .iter()
            .filter(|((_, idle), _)| *idle == IdlePolicy::Kept);
        let keepers = keepers.map(|(_, client)| client.strong_count());
        let idle = if keepers.sum::<usize>() < KEPT_CONNECTION_LIMIT {
            IdlePolicy::Kept
        } else {
            IdlePolicy::Closed
        };
        let key = (trust, idle);
        if let Some(client) = clients.get(&key).and_then(Weak::upgrade) {
            return Ok((client, idle));
        }
        let client = Arc::new(build_client(&key.0, idle)?);
        clients.insert(key, Arc::downgrade(&client));
        Ok((client, idle))
    }
}

fn build_client(trust: &CertificateTrust, idle: IdlePolicy) -> Result<Client, BmcFault> {
    let kept = match idle {
        IdlePolicy::Kept => LONG_IDLE_TIMEOUT,
        IdlePolicy::Closed => SHORT_IDLE_TIMEOUT,
    };
    let builder = Client::builder()
        .user_agent(concat!("dogwatch/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        // BMCs are reached directly: a proxy from the environment would receive the password.
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(kept)
        .pool_max_idle_per_host(1);
    set_trust(builder, trust)?.build().map_err(|error| {
        let message = format!("cannot set up TLS: {}", error.without_url());
        BmcFault::without_effect(FaultClass::Tls, message)
    })
}

#[cfg(feature = "tls")]
fn set_trust(builder: ClientBuilder, trust: &CertificateTrust) -> Result<ClientBuilder, BmcFault> {
    Ok(match trust {
        CertificateTrust::Everybody => builder.tls_danger_accept_invalid_certs(true),
        CertificateTrust::Machine => builder,
        CertificateTrust::Only(bundle) => builder.tls_certs_only(parse_certificates(bundle)?),
    })
}

/// Without the feature `tls` no connection is encrypted; `HttpTransport::new` refuses `https`.
#[cfg(not(feature = "tls"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "with the feature `tls` a CA can be wrong"
)]
fn set_trust(builder: ClientBuilder, _: &CertificateTrust) -> Result<ClientBuilder, BmcFault> {
    Ok(builder)
}

#[cfg(feature = "tls")]
fn parse_certificates(bundle: &[u8]) -> Result<Vec<Certificate>, BmcFault> {
    let none = "ca.crt in the Secret holds no PEM certificate";
    let found = Certificate::from_pem_bundle(bundle).ok();
    let found = found.filter(|found| !found.is_empty());
    found.ok_or_else(|| BmcFault::without_effect(FaultClass::Tls, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(clients: &SharedHttpClients, verify: bool) -> Arc<Client> {
        let client = clients.acquire_client(CertificateTrust::from_secret(None, verify));
        client.expect("a client").0
    }

    #[test]
    fn drivers_share_one_client_for_each_trust_and_it_goes_with_the_last() {
        let clients = SharedHttpClients::default();
        let held = || clients.0.lock().expect("a lock").len();
        let all = (0..100).map(|host| client(&clients, host % 2 == 0));
        let all = all.collect::<Vec<_>>();
        assert_eq!(held(), 2);
        let first = Arc::downgrade(&all[0]);
        drop(all);
        assert_eq!(first.strong_count(), 0);
        let again = client(&clients, false);
        assert_eq!(held(), 1, "what nobody uses is forgotten");
        drop(again);
    }

    #[test]
    fn so_many_drivers_keep_their_connection_and_no_more() {
        let clients = SharedHttpClients::default();
        let mut all = (0..=KEPT_CONNECTION_LIMIT)
            .map(|_| client(&clients, true))
            .collect::<Vec<_>>();
        let keeps = |client: &Arc<Client>, first: &Arc<Client>| Arc::ptr_eq(client, first);
        let kept = all.iter().filter(|client| keeps(client, &all[0])).count();
        assert_eq!(
            (kept, keeps(&all[KEPT_CONNECTION_LIMIT], &all[0])),
            (KEPT_CONNECTION_LIMIT, false)
        );
        all.truncate(KEPT_CONNECTION_LIMIT - 1);
        assert!(
            keeps(&client(&clients, true), &all[0]),
            "a place that is free again"
        );
    }
}
