//! The real transport: HTTP/1.1 over TCP and usually TLS by OpenSSL, because old BMCs know only RSA
//! key exchange.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::CONNECTION;
use ::http::{HeaderValue, Request, Response};
use bytes::{Bytes, BytesMut};
use dogwatch_core::power::BmcAddress;
use futures::future::BoxFuture;
use reqwest::Client;

use super::http_clients::{CertificateTrust, IdlePolicy, SharedHttpClients};
use super::origin::BmcOrigin;
use super::transport::LastRequest;
use super::{RedfishTransport, http_failure};
use crate::{BmcFault, FaultClass};

/// The largest answer in bytes; a system's document takes 5 to 30 KiB.
const ANSWER_BYTES_LIMIT: usize = 1 << 20;
/// The HTTP transport to one BMC.
pub struct HttpTransport {
    client: Arc<Client>,
    idle: IdlePolicy,
    /// `https://HOST:PORT`.
    origin: String,
}

impl HttpTransport {
    /// Makes a transport to this address. With a CA (PEM), only that CA may have issued the BMC's
    /// certificate; without one, any CA that this machine trusts. With `verify` off, any
    /// certificate is accepted.
    ///
    /// # Errors
    /// [`FaultClass::Tls`]: the CA is not valid. [`FaultClass::Unsupported`]: the address is not a
    /// Redfish address.
    pub fn new(
        clients: &SharedHttpClients,
        address: &BmcAddress,
        ca: Option<&[u8]>,
        verify: bool,
    ) -> Result<Self, BmcFault> {
        let none = || {
            BmcFault::without_effect(
                FaultClass::Unsupported,
                "the address is not a Redfish address",
            )
        };
        let origin = BmcOrigin::from_address(address).ok_or_else(none)?;
        if origin.is_encrypted() && !cfg!(feature = "tls") {
            let message = "this build has no TLS for BMCs: build it with the feature `bmc-tls`";
            return Err(BmcFault::without_effect(FaultClass::Unsupported, message));
        }
        let (client, idle) = clients.acquire_client(CertificateTrust::from_secret(ca, verify))?;
        Ok(Self {
            client,
            idle,
            origin: origin.to_string(),
        })
    }

    async fn perform_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, BmcFault> {
        let (mut head, body) = request.into_parts();
        let is_last = head.extensions.get::<LastRequest>().is_some();
        if is_last && self.idle == IdlePolicy::Closed {
            let close = HeaderValue::from_static("close");
            head.headers.insert(CONNECTION, close);
        }
        let url = format!("{}{}", self.origin, head.uri);
        let request = self.client.request(head.method, url).headers(head.headers);
        let response = request.body(body).timeout(within).send().await;
        let mut response = response.map_err(|error| http_failure::fault_from_error(&error))?;
        let answer = copy_head(&response);
        let mut body = BytesMut::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| http_failure::fault_from_error(&error))?
        {
            if body.len() + chunk.len() > ANSWER_BYTES_LIMIT {
                return Err(too_large_fault());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(answer.map(|()| body.freeze()))
    }
}

impl RedfishTransport for HttpTransport {
    fn send_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        Box::pin(self.perform_request(request, within))
    }
}

fn copy_head(response: &reqwest::Response) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = response.status();
    head.headers_mut().clone_from(response.headers());
    head
}

fn too_large_fault() -> BmcFault {
    let message = format!("an answer of more than {} KiB", ANSWER_BYTES_LIMIT >> 10);
    BmcFault::with_unknown_effect(FaultClass::Contradiction, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_kind_is_none_of_ours() {
        let address = BmcAddress::parse("ipmi://bmc.example").expect("an address");
        let fault = HttpTransport::new(&SharedHttpClients::default(), &address, None, true).err();
        assert_eq!(fault.expect("not Redfish").class, FaultClass::Unsupported);
    }
}
