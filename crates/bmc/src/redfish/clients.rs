//! HTTP clients, shared by drivers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use reqwest::{Certificate, Client, redirect, retry};

use crate::{Class, Fault};

/// How long a connection may take, TLS included: half of `--bmc-timeout`'s default, so that a BMC which is
/// not there is told from one that hangs, and a command to it is known not to have been sent.
const CONNECT: Duration = Duration::from_secs(5);
/// So many drivers keep their connection between polls: a new one costs a TLS handshake (2.9 ms of
/// processor time against 0.3 ms for the poll), an open one 42 KiB (19 KiB without TLS).
const KEEPERS: usize = 1_000;
/// How long theirs is kept idle: longer than the default poll interval.
const KEPT: Duration = Duration::from_secs(90);
/// How long that of the others is, after requests that others follow: longer than the default confirm
/// interval, so that whatever is under way has one connection.
const BRIEF: Duration = Duration::from_secs(6);

/// The HTTP clients that drivers share: one or two for each way to verify certificates, not one for each
/// BMC. A client goes with the last driver that uses it. Clones share them.
#[derive(Clone, Default)]
pub struct Clients(Arc<Mutex<Shared>>);

/// Those that somebody uses.
type Shared = BTreeMap<(Trust, Idle), Weak<Client>>;

/// What becomes of an idle connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Idle {
    /// It is kept until the next poll.
    Kept,
    /// It is closed: at once after a [`Last`](super::exchange::Last) request, else soon.
    Closed,
}

/// Whose certificates are good.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// Everybody's: `disableCertificateVerification`.
    Everybody,
    /// Those of the authorities that this machine trusts.
    Machine,
    /// Those of these authorities (PEM) alone.
    Only(Vec<u8>),
}

impl Trust {
    /// By the Secret's `ca.crt`, and `disableCertificateVerification` turned round.
    pub(super) fn of(ca: Option<&[u8]>, verify: bool) -> Self {
        match (verify, ca) {
            (false, Some(_) | None) => Trust::Everybody,
            (true, None) => Trust::Machine,
            (true, Some(ca)) => Trust::Only(ca.to_vec()),
        }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clients")
    }
}

impl Clients {
    /// The client for one driver more.
    ///
    /// # Errors
    /// [`Class::Tls`]: the CA is none.
    pub(super) fn client(&self, trust: Trust) -> Result<(Arc<Client>, Idle), Fault> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_used = |client: &Weak<Client>| client.strong_count() > 0;
        clients.retain(|_, client| is_used(client));
        let keepers = clients.iter().filter(|((_, idle), _)| *idle == Idle::Kept);
        let keepers = keepers.map(|(_, client)| client.strong_count());
        let idle = if keepers.sum::<usize>() < KEEPERS {
            Idle::Kept
        } else {
            Idle::Closed
        };
        let key = (trust, idle);
        if let Some(client) = clients.get(&key).and_then(Weak::upgrade) {
            return Ok((client, idle));
        }
        let client = Arc::new(client(&key.0, idle)?);
        clients.insert(key, Arc::downgrade(&client));
        Ok((client, idle))
    }
}

fn client(trust: &Trust, idle: Idle) -> Result<Client, Fault> {
    let kept = match idle {
        Idle::Kept => KEPT,
        Idle::Closed => BRIEF,
    };
    let builder = Client::builder()
        .user_agent(concat!("dogwatch/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        // A BMC is reached directly: a proxy of the environment would be told its password.
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(kept)
        .pool_max_idle_per_host(1);
    let builder = match trust {
        Trust::Everybody => builder.tls_danger_accept_invalid_certs(true),
        Trust::Machine => builder,
        Trust::Only(bundle) => builder.tls_certs_only(certificates(bundle)?),
    };
    builder.build().map_err(|error| {
        let message = format!("cannot set up TLS: {}", error.without_url());
        Fault::harmless(Class::Tls, message)
    })
}

fn certificates(bundle: &[u8]) -> Result<Vec<Certificate>, Fault> {
    let none = "ca.crt in the Secret holds no PEM certificate";
    let found = Certificate::from_pem_bundle(bundle).ok();
    let found = found.filter(|found| !found.is_empty());
    found.ok_or_else(|| Fault::harmless(Class::Tls, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(clients: &Clients, verify: bool) -> Arc<Client> {
        let client = clients.client(Trust::of(None, verify));
        client.expect("a client").0
    }

    #[test]
    fn drivers_share_one_client_for_each_trust_and_it_goes_with_the_last() {
        let clients = Clients::default();
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
        let clients = Clients::default();
        let mut all = (0..=KEEPERS)
            .map(|_| client(&clients, true))
            .collect::<Vec<_>>();
        let keeps = |client: &Arc<Client>, first: &Arc<Client>| Arc::ptr_eq(client, first);
        let kept = all.iter().filter(|client| keeps(client, &all[0])).count();
        assert_eq!((kept, keeps(&all[KEEPERS], &all[0])), (KEEPERS, false));
        all.truncate(KEEPERS - 1);
        assert!(
            keeps(&client(&clients, true), &all[0]),
            "a place that is free again"
        );
    }
}
