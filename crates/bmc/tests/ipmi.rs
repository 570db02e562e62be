//! Tests the IPMI driver with the real `ipmitool` against a real BMC implementation, OpenIPMI's
//! `ipmi_sim`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod conformance;

use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dogwatch_bmc::{
    Bmc, BmcFault, BmcInfo, CommandAnswer, Credentials, DriverOptions, FaultClass, Password,
    PowerCommand, PowerReading, connect_driver,
};
use dogwatch_core::power::BmcAddress;
use dogwatch_testbed::ipmi_sim::{ChassisMode, IpmiSim, PASSWORD, READER_USERNAME, USERNAME};

use conformance::{Devices, Soft};

const WITHIN: Duration = Duration::from_mins(1);
const ALL: [PowerCommand; 3] = [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off];

fn driver_as(address: &str, username: &str, password: &str) -> Arc<dyn Bmc> {
    let credentials = Credentials {
        username: username.to_owned(),
        password: Password::new(password),
        ca: None,
    };
    let address = BmcAddress::parse(address).unwrap();
    connect_driver(&address, &credentials, true, &DriverOptions::default()).unwrap()
}

fn driver(address: &str) -> Arc<dyn Bmc> {
    driver_as(address, USERNAME, PASSWORD)
}

#[tokio::test]
async fn the_driver_keeps_every_drivers_promises() {
    let sim = IpmiSim::start(true).await.unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let devices = Devices {
        good: driver(&sim.address()),
        wrong_password: driver_as(&sim.address(), USERNAME, "another"),
        dead: driver(&format!("ipmi://127.0.0.1:{}", unused_port())),
        silent: driver(&format!("ipmi://{}", silent.local_addr().unwrap())),
        soft: Soft::ShutsDown,
        within: WITHIN,
        shows_within: WITHIN,
    };
    conformance::holds(&devices).await;
}

#[tokio::test]
async fn the_first_call_may_be_a_command() {
    let sim = IpmiSim::start(false).await.unwrap();
    let bmc = driver(&sim.address());
    assert_eq!(
        bmc.send_command(PowerCommand::On, WITHIN).await,
        Ok(CommandAnswer::Accepted),
        "the BMC has no cipher suite 17, so 3 is found first"
    );
    assert_eq!(sim.chassis_commands().unwrap(), ["power 1"]);
}

/// A port on which nothing listens once the socket is dropped.
fn unused_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

#[tokio::test]
async fn power_goes_on_and_off_and_is_read() {
    let sim = IpmiSim::start(false).await.unwrap();
    let bmc = driver(&sim.address());
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::Off));
    for (command, reading) in [
        (PowerCommand::On, PowerReading::On),
        (PowerCommand::SoftOff, PowerReading::Off),
        (PowerCommand::On, PowerReading::On),
        (PowerCommand::Off, PowerReading::Off),
        // The host is off already.
        (PowerCommand::Off, PowerReading::Off),
    ] {
        assert_eq!(
            bmc.send_command(command, WITHIN).await,
            Ok(CommandAnswer::Accepted),
            "{command}"
        );
        assert_eq!(bmc.read_power(WITHIN).await, Ok(reading), "{command}");
        assert_eq!(sim.is_on().unwrap(), reading == PowerReading::On);
    }
    assert_eq!(
        sim.chassis_commands().unwrap(),
        ["power 1", "shutdown 1", "power 1", "power 0", "power 0"]
    );
}

#[tokio::test]
async fn a_command_that_is_taken_proves_nothing() {
    let sim = IpmiSim::start(true).await.unwrap();
    let bmc = driver(&sim.address());
    sim.set_chassis(ChassisMode::IgnoresSoft).unwrap();
    assert_eq!(
        bmc.send_command(PowerCommand::SoftOff, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::On));
    sim.set_chassis(ChassisMode::IgnoresAll).unwrap();
    assert_eq!(
        bmc.send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::On));
}

#[tokio::test]
async fn about_tells_uuid_and_product_and_changes_nothing() {
    let sim = IpmiSim::start(true).await.unwrap();
    let about = driver(&sim.address())
        .describe_device(WITHIN)
        .await
        .unwrap();
    assert_eq!(
        about,
        BmcInfo {
            system_uuid: Some("4c4c4544-0047-4b10-8031-b5c04f4e4833".to_owned()),
            commands: ALL.to_vec(),
            product: Some("MontaVista Software, Inc.".to_owned()),
        }
    );
    assert_eq!(sim.chassis_commands().unwrap(), [""; 0]);
}

/// The faults that `ipmi_sim` causes with this chassis and these credentials.
async fn faults(
    chassis: ChassisMode,
    username: &str,
    password: &str,
    query: &str,
) -> [BmcFault; 2] {
    let sim = IpmiSim::start(false).await.unwrap();
    sim.set_chassis(chassis).unwrap();
    let bmc = driver_as(&format!("{}{query}", sim.address()), username, password);
    let read = bmc.read_power(WITHIN).await.unwrap_err();
    let sent = bmc
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .unwrap_err();
    for fault in [&read, &sent] {
        assert!(!fault.message.contains(PASSWORD), "{fault}");
    }
    [read, sent]
}

#[tokio::test]
async fn a_wrong_password_and_a_wrong_user_are_told_apart_from_a_dead_bmc() {
    for (username, password) in [(USERNAME, "wrong"), ("nobody", PASSWORD)] {
        let faults = faults(ChassisMode::Sound, username, password, "").await;
        for fault in faults {
            assert_eq!(fault.class, FaultClass::WrongCredentials, "{fault}");
            assert!(!fault.may_have_run, "{fault}");
        }
    }
}

#[tokio::test]
async fn a_bmc_that_fails_inside_is_never_off() {
    let [read, sent] = faults(ChassisMode::Fails, USERNAME, PASSWORD, "?ciphersuite=3").await;
    assert_eq!(read.class, FaultClass::Refused, "{read}");
    assert!(read.message.contains("0xff"), "{read}");
    assert!(sent.may_have_run, "the BMC does not say: {sent}");
    let sim = IpmiSim::start(false).await.unwrap();
    sim.set_chassis(ChassisMode::Garbage).unwrap();
    let read = driver(&sim.address()).read_power(WITHIN).await.unwrap_err();
    assert_eq!(read.class, FaultClass::Refused, "{read}");
}

#[tokio::test]
async fn a_cipher_suite_that_the_bmc_has_not_is_named() {
    let faults = faults(ChassisMode::Sound, USERNAME, PASSWORD, "?ciphersuite=17").await;
    for fault in faults {
        assert_eq!(fault.class, FaultClass::Refused, "{fault}");
        assert!(fault.message.contains("?ciphersuite=NUMBER"), "{fault}");
        assert!(!fault.may_have_run, "{fault}");
    }
}

#[tokio::test]
async fn a_user_who_may_not_switch_is_told_so_and_nothing_runs() {
    let sim = IpmiSim::start(true).await.unwrap();
    let address = format!("{}?ciphersuite=3&privilegelevel=USER", sim.address());
    let bmc = driver_as(&address, READER_USERNAME, PASSWORD);
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::On));
    let fault = bmc
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Unsupported, false),
        "{fault}"
    );
    // `describe_device` finds it before it matters.
    assert_eq!(bmc.describe_device(WITHIN).await.unwrap_err(), fault);
    assert_eq!(sim.chassis_commands().unwrap(), [""; 0]);
}

#[tokio::test]
async fn where_nobody_listens_it_is_unreachable_and_nothing_ran() {
    let port = unused_port();
    for address in [
        format!("ipmi://127.0.0.1:{port}"),
        "ipmi://bmc.invalid".to_owned(),
    ] {
        let bmc = driver(&address);
        let fault = bmc.read_power(WITHIN).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Unreachable, "{address}: {fault}");
        let fault = bmc
            .send_command(PowerCommand::Off, WITHIN)
            .await
            .unwrap_err();
        assert_eq!(fault.class, FaultClass::Unreachable, "{address}: {fault}");
        assert!(!fault.may_have_run, "{address}: {fault}");
    }
}

#[tokio::test]
async fn a_silent_port_is_unreachable_long_before_the_deadline() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let bmc = driver(&format!("ipmi://{}", silent.local_addr().unwrap()));
    // At the deadline it would be `TimedOut`.
    let fault = bmc.read_power(WITHIN).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unreachable, "{fault}");
    assert!(fault.message.contains("hangs"), "{fault}");
}

#[tokio::test]
async fn a_bmc_that_hangs_is_left_at_the_deadline_and_may_have_run_the_command() {
    let sim = IpmiSim::start(false).await.unwrap();
    let bmc = driver(&sim.address());
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::Off));
    sim.set_chassis(ChassisMode::Hangs).unwrap();
    let within = Duration::from_secs(3);
    let fault = bmc
        .send_command(PowerCommand::Off, within)
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::TimedOut, true),
        "{fault}"
    );
    let fault = bmc.read_power(within).await.unwrap_err();
    assert!(
        matches!(fault.class, FaultClass::TimedOut | FaultClass::Unreachable),
        "{fault}"
    );
}

/// Everything that any process on this machine shows to other users.
fn command_lines() -> String {
    let mut text = String::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&line).replace('\0', " "));
        text.push('\n');
    }
    text
}

#[tokio::test]
async fn the_password_is_on_no_command_line_and_in_no_environment() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let secret = "on-no-command-line";
    let bmc = driver_as(&format!("ipmi://127.0.0.1:{port}"), USERNAME, secret);
    let reading = tokio::spawn(async move { bmc.read_power(WITHIN).await });
    // The call waits seconds for an answer, and the test reads the command lines meanwhile.
    let deadline = Instant::now() + WITHIN;
    let ours = format!(" -p {port} ");
    let line = loop {
        let all = command_lines();
        if let Some(line) = all.lines().find(|line| line.contains(&ours)) {
            break line.to_owned();
        }
        assert!(Instant::now() < deadline, "ipmitool was not seen");
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    assert!(line.starts_with("ipmitool "), "{line}");
    assert!(!command_lines().contains(secret));
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&environment).contains(secret));
    }
    reading.abort();
}
