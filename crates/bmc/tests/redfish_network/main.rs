//! The Redfish driver's way over a network: classes of what goes wrong, certificates, connections.

#![allow(clippy::unwrap_used)] // a test's server: what fails, fails the test

mod connections;
mod faults;
mod server;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dogwatch_bmc::redfish::{Clients, Exchange, Http};
use dogwatch_bmc::{Bmc, Credentials, Fault, Options, Password, connect};
use dogwatch_core::power::Address;
use http::{Request, Response};

const WITHIN: Duration = Duration::from_mins(1);
const SYSTEM: &str = "/redfish/v1/Systems/1";

fn address(scheme: &str, port: u16) -> Address {
    Address::parse(&format!("{scheme}://127.0.0.1:{port}{SYSTEM}")).expect("an address")
}

fn credentials(ca: Option<&str>) -> Credentials {
    Credentials {
        username: "admin".into(),
        password: Password::new("sekret16"),
        ca: ca.map(|ca| ca.as_bytes().to_vec()),
    }
}

/// One request, without the driver.
async fn ask(address: &Address, within: Duration) -> Result<Response<Bytes>, Fault> {
    let http = Http::new(&Clients::default(), address, None, true).expect("an exchange");
    let request = Request::get(SYSTEM).body(Bytes::new()).expect("a request");
    http.ask(request, within).await
}

fn driver(
    address: &Address,
    ca: Option<&str>,
    verify: bool,
    options: &Options,
) -> Result<Arc<dyn Bmc>, Fault> {
    connect(address, &credentials(ca), verify, options)
}
