//! The real exchange: HTTP/1.1 over TCP and, mostly, OpenSSL, because old BMCs know only RSA key exchange.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ::http::{Request, Response};
use bytes::{Bytes, BytesMut};
use dogwatch_core::power::Address;
use futures::future::BoxFuture;
use reqwest::{Certificate, Client, redirect, retry};

use super::origin::Origin;
use super::{Exchange, failure};
use crate::{Class, Fault};

/// The most that an answer may take; a system's document takes 5 to 30 KiB.
const LARGEST: usize = 1 << 20;
/// How long a connection may take, TLS included: half of `--bmc-timeout`'s default, so that a BMC which is
/// not there is told from one that hangs, and a command to it is known not to have been sent.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept: longer than the default poll interval, since a new one costs a
/// TLS handshake (3 ms of processor time against 0.15 ms).
const IDLE: Duration = Duration::from_secs(90);

/// The HTTP clients that drivers share: one for each way to verify certificates, not one for each BMC. A
/// client goes with the last driver that uses it. Clones share them.
#[derive(Clone, Default)]
pub struct Clients(Arc<Mutex<BTreeMap<Trust, Weak<Client>>>>);

/// Whose certificates are good.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// Everybody's: `disableCertificateVerification`.
    Everybody,
    /// Those of the authorities that this machine trusts.
    Machine,
    /// Those of these authorities (PEM) alone.
    Only(Vec<u8>),
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clients")
    }
}

impl Clients {
    fn client(&self, trust: Trust) -> Result<Arc<Client>, Fault> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&trust).and_then(Weak::upgrade) {
            return Ok(client);
        }
        clients.retain(|_, client| client.strong_count() > 0);
        let client = Arc::new(client(&trust)?);
        clients.insert(trust, Arc::downgrade(&client));
        Ok(client)
    }
}

fn client(trust: &Trust) -> Result<Client, Fault> {
    let builder = Client::builder()
        .user_agent(concat!("dogwatch/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        // A BMC is reached directly: a proxy of the environment would be told its password.
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
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

/// One BMC on the network.
pub struct Http {
    client: Arc<Client>,
    /// `https://HOST:PORT`.
    origin: String,
}

impl Http {
    /// Where this address says. With a CA (PEM) its certificate must be from that; without, from one that
    /// this machine trusts; `verify` off takes any.
    ///
    /// # Errors
    /// [`Class::Tls`]: the CA is none. [`Class::Unsupported`]: the address is not Redfish's.
    pub fn new(
        clients: &Clients,
        address: &Address,
        ca: Option<&[u8]>,
        verify: bool,
    ) -> Result<Self, Fault> {
        let none = || Fault::harmless(Class::Unsupported, "the address is not Redfish's");
        let origin = Origin::of(address).ok_or_else(none)?;
        let trust = match (verify, ca) {
            (false, _) => Trust::Everybody,
            (true, None) => Trust::Machine,
            (true, Some(ca)) => Trust::Only(ca.to_vec()),
        };
        Ok(Self {
            client: clients.client(trust)?,
            origin: origin.to_string(),
        })
    }

    async fn carry(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, Fault> {
        let (head, body) = request.into_parts();
        let url = format!("{}{}", self.origin, head.uri);
        let request = self.client.request(head.method, url).headers(head.headers);
        let response = request.body(body).timeout(within).send().await;
        let mut response = response.map_err(|error| failure::of(&error))?;
        let answer = head_of(&response);
        let mut body = BytesMut::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| failure::of(&error))?
        {
            if body.len() + chunk.len() > LARGEST {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(answer.map(|()| body.freeze()))
    }
}

impl Exchange for Http {
    fn ask(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Fault>> {
        Box::pin(self.carry(request, within))
    }
}

fn head_of(response: &reqwest::Response) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = response.status();
    head.headers_mut().clone_from(response.headers());
    head
}

fn too_large() -> Fault {
    let message = format!("an answer of more than {} KiB", LARGEST >> 10);
    Fault::unknown_end(Class::Contradiction, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(clients: &Clients, host: usize, verify: bool) -> Http {
        let address = Address::parse(&format!("redfish://bmc-{host}.example"));
        let address = address.expect("an address");
        Http::new(clients, &address, None, verify).expect("an exchange")
    }

    #[test]
    fn drivers_share_one_client_for_each_trust_and_it_goes_with_the_last() {
        let clients = Clients::default();
        let held = || clients.0.lock().expect("a lock").len();
        let exchanges = (0..100).map(|host| exchange(&clients, host, host % 2 == 0));
        let exchanges = exchanges.collect::<Vec<_>>();
        assert_eq!(held(), 2);
        let first = Arc::downgrade(&exchanges[0].client);
        drop(exchanges);
        assert_eq!(first.strong_count(), 0);
        let again = exchange(&clients, 1, false);
        assert_eq!(held(), 1, "what nobody uses is forgotten");
        drop(again);
    }

    #[test]
    fn an_address_of_another_kind_is_none_of_ours() {
        let address = Address::parse("ipmi://bmc.example").expect("an address");
        let fault = Http::new(&Clients::default(), &address, None, true).err();
        assert_eq!(fault.expect("not Redfish").class, Class::Unsupported);
    }
}
