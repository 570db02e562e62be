//! The real exchange: HTTP/1.1 over TCP and, mostly, OpenSSL, because old BMCs know only RSA key exchange.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::CONNECTION;
use ::http::{HeaderValue, Request, Response};
use bytes::{Bytes, BytesMut};
use dogwatch_core::power::Address;
use futures::future::BoxFuture;
use reqwest::Client;

use super::clients::{Clients, Idle, Trust};
use super::exchange::Last;
use super::origin::Origin;
use super::{Exchange, failure};
use crate::{Class, Fault};

/// The most that an answer may take; a system's document takes 5 to 30 KiB.
const LARGEST: usize = 1 << 20;
/// One BMC on the network.
pub struct Http {
    client: Arc<Client>,
    idle: Idle,
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
        let (client, idle) = clients.client(Trust::of(ca, verify))?;
        Ok(Self {
            client,
            idle,
            origin: origin.to_string(),
        })
    }

    async fn carry(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, Fault> {
        let (mut head, body) = request.into_parts();
        let is_last = head.extensions.get::<Last>().is_some();
        if is_last && self.idle == Idle::Closed {
            let close = HeaderValue::from_static("close");
            head.headers.insert(CONNECTION, close);
        }
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

    #[test]
    fn an_address_of_another_kind_is_none_of_ours() {
        let address = Address::parse("ipmi://bmc.example").expect("an address");
        let fault = Http::new(&Clients::default(), &address, None, true).err();
        assert_eq!(fault.expect("not Redfish").class, Class::Unsupported);
    }
}
