//! Tests the Redfish driver over a network: failure classes, certificates, connections.

#![allow(clippy::unwrap_used)] // a test's server: what fails, fails the test

mod connections;
mod faults;
mod server;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::redfish::{HttpTransport, RedfishTransport, SharedHttpClients};
use dogwatch_bmc::{Bmc, BmcFault, Credentials, DriverOptions, Password, connect_driver};
use dogwatch_core::power::BmcAddress;
use http::{Request, Response};

const WITHIN: Duration = Duration::from_mins(1);
const SYSTEM: &str = "/redfish/v1/Systems/1";

fn address(scheme: &str, port: u16) -> BmcAddress {
    BmcAddress::parse(&format!("{scheme}://127.0.0.1:{port}{SYSTEM}")).expect("an address")
}

fn credentials(ca: Option<&str>) -> Credentials {
    Credentials {
        username: "admin".into(),
        password: Password::new("sekret16"),
        ca: ca.map(|ca| ca.as_bytes().to_vec()),
    }
}

/// Sends one request without the driver.
async fn ask(address: &BmcAddress, within: Duration) -> Result<Response<Bytes>, BmcFault> {
    let http = HttpTransport::new(&SharedHttpClients::default(), address, None, true)
        .expect("an exchange");
    let request = Request::get(SYSTEM).body(Bytes::new()).expect("a request");
    http.send_request(request, within).await
}

fn driver(
    address: &BmcAddress,
    ca: Option<&str>,
    verify: bool,
    options: &DriverOptions,
) -> Result<Arc<dyn Bmc>, BmcFault> {
    connect_driver(address, &credentials(ca), verify, options)
}
