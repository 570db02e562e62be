//! Tests the Redfish driver against a real emulator, which metal3 and Ironic use for their tests
//! too.

mod conformance;

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::{
    Bmc, BmcFault, Credentials, DriverOptions, FaultClass, Password, connect_driver,
};
use dogwatch_core::power::BmcAddress;
use dogwatch_testbed::ClosedPort;
use dogwatch_testbed::sushy::{EmulatedSystem, PASSWORD, SushyEmulator, USERNAME};
use tokio::net::TcpListener;

use conformance::{Devices, Soft};

const WITHIN: Duration = Duration::from_mins(1);
const FIRST: &str = "7b3c1a52-8f5d-4a11-9a0e-0d6f3f1c0001";
const SECOND: &str = "7b3c1a52-8f5d-4a11-9a0e-0d6f3f1c0002";

fn systems() -> [EmulatedSystem; 2] {
    [FIRST, SECOND].map(|uuid| EmulatedSystem {
        uuid: uuid.to_owned(),
        on: true,
    })
}

fn driver(address: &str, password: &str, ca: Option<Vec<u8>>) -> Arc<dyn Bmc> {
    let credentials = Credentials {
        username: USERNAME.to_owned(),
        password: Password::new(password),
        ca,
    };
    let address = BmcAddress::parse(address).expect("an address");
    connect_driver(&address, &credentials, true, &DriverOptions::default()).expect("a driver")
}

#[tokio::test]
async fn the_driver_keeps_every_drivers_promises() {
    let sushy = SushyEmulator::start(&systems(), Duration::from_secs(1))
        .await
        .expect("sushy");
    let ca = fs::read(sushy.ca_file()).expect("a CA");
    let ca = || Some(ca.clone());
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    let dead = ClosedPort::new().expect("a port");
    let dead_port = dead.port_number().expect("an address");
    let devices = Devices {
        good: driver(&sushy.system_address(FIRST), PASSWORD, ca()),
        wrong_password: driver(&sushy.system_address(FIRST), "another", ca()),
        dead: driver(&format!("redfish://127.0.0.1:{dead_port}"), PASSWORD, None),
        silent: driver(
            &format!("redfish+http://127.0.0.1:{silent_port}"),
            PASSWORD,
            None,
        ),
        soft: Soft::ShutsDown,
        within: WITHIN,
        shows_within: Duration::from_mins(2),
    };
    conformance::holds(&devices).await;
    let other = driver(&sushy.system_address(SECOND), PASSWORD, ca());
    other
        .read_power(WITHIN)
        .await
        .expect("its neighbour is still there");
}

#[tokio::test]
async fn one_of_two_systems_has_to_be_named_and_a_strange_ca_is_refused() {
    let sushy = SushyEmulator::start(&systems(), Duration::ZERO)
        .await
        .expect("sushy");
    let ca = fs::read(sushy.ca_file()).expect("a CA");
    let origin = format!("redfish://127.0.0.1:{}", sushy.port());
    let fault = driver(&origin, PASSWORD, Some(ca.clone()))
        .read_power(WITHIN)
        .await;
    let fault = fault.expect_err("two systems");
    assert_eq!(fault.class, FaultClass::NoSuchSystem);
    assert!(
        fault.message.contains(FIRST) && fault.message.contains(SECOND),
        "{fault}"
    );
    let third = format!("{origin}/redfish/v1/Systems/third");
    let fault = driver(&third, PASSWORD, Some(ca)).read_power(WITHIN).await;
    assert_eq!(fault.expect_err("no third").class, FaultClass::NoSuchSystem);
    let BmcFault { class, .. } = driver(&sushy.system_address(FIRST), PASSWORD, None)
        .read_power(WITHIN)
        .await
        .expect_err("nobody trusts its CA");
    assert_eq!(class, FaultClass::Tls);
}
