//! The number of connections, and to which servers.

use std::process;
use std::sync::Arc;

use dogwatch_bmc::{Bmc, DriverOptions, FaultClass, PowerCommand, PowerReading};

use crate::server::{Authority, Server, Then};
use crate::{WITHIN, address, driver};

#[tokio::test]
async fn polls_share_one_connection() {
    let authority = Authority::new("our CA");
    let plain = Server::http(Then::Serves).await;
    let tls = Server::https(&authority, "127.0.0.1").await;
    for (scheme, server) in [("redfish+http", &plain), ("redfish", &tls)] {
        let options = DriverOptions::default();
        let driver = driver(
            &address(scheme, server.port),
            Some(&authority.pem),
            true,
            &options,
        );
        let driver = driver.expect("a driver");
        for _ in 0..5 {
            assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
        }
        // The first reading also reads the root and tests the password.
        assert_eq!(
            (server.connections(), server.requests()),
            (1, 7),
            "{scheme}"
        );
    }
}

#[tokio::test]
async fn who_is_one_too_many_keeps_no_connection_between_polls_but_after_a_command() {
    let bmc = Server::http(Then::Serves).await;
    let options = DriverOptions::default();
    let address = address("redfish+http", bmc.port);
    let drivers = (0..=500).map(|_| driver(&address, None, true, &options).expect("a driver"));
    let drivers: Vec<_> = drivers.collect();
    let polls = async |driver: &Arc<dyn Bmc>| {
        for _ in 0..3 {
            assert_eq!(driver.read_power(WITHIN).await, Ok(PowerReading::On));
        }
        bmc.connections()
    };
    assert_eq!(polls(&drivers[0]).await, 1, "one of those that keep theirs");
    assert_eq!(polls(&drivers[500]).await, 1 + 3);
    // This BMC cannot switch off; the driver needs a request to find out.
    let sent = drivers[500].send_command(PowerCommand::Off, WITHIN).await;
    assert_eq!(
        sent.map_err(|fault| fault.class),
        Err(FaultClass::Unsupported)
    );
    assert_eq!(polls(&drivers[500]).await, 1 + 3 + 1);
}

/// The environment variable that gives the child process its BMC's port.
const PORT: &str = "DOGWATCH_TEST_BMC_PORT";

/// The child process of the next test.
#[tokio::test]
#[ignore = "the next test runs it with an environment of its own"]
async fn reads_its_bmc() {
    let port = std::env::var(PORT)
        .expect("a port")
        .parse()
        .expect("a port");
    let driver = driver(
        &address("redfish+http", port),
        None,
        true,
        &DriverOptions::default(),
    );
    assert_eq!(
        driver.expect("a driver").read_power(WITHIN).await,
        Ok(PowerReading::On)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_proxy_of_the_environment_is_told_nothing() {
    let bmc = Server::http(Then::Serves).await;
    let proxy = Server::http(Then::Serves).await;
    let mut child = process::Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "connections::reads_its_bmc", "--ignored"]);
    let url = format!("http://127.0.0.1:{}", proxy.port);
    for name in [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ] {
        child.env(name, &url);
    }
    child
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .env(PORT, bmc.port.to_string());
    let run = tokio::task::spawn_blocking(move || child.output()).await;
    let output = run.expect("no panic").expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!((bmc.connections(), proxy.connections()), (1, 0));
}
