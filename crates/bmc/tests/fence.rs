//! Runs the fence driver with real agents from Debian: fence_redfish against a real Redfish
//! emulator, and fence_dummy (whose device is a file) under another name. Scripts replace only
//! agents that hang or print nonsense.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod conformance;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dogwatch_bmc::{
    Bmc, BmcFault, CommandAnswer, Credentials, DriverOptions, FaultClass, Password, PowerCommand,
    PowerReading, connect_driver,
};
use dogwatch_core::power::BmcAddress;
use dogwatch_testbed::ClosedPort;
use dogwatch_testbed::sushy::{EmulatedSystem, PASSWORD, SushyEmulator, USERNAME};
use tempfile::TempDir;

use conformance::{Devices, Soft};
use tokio::signal::unix::{SignalKind, signal};

/// One call of an agent takes half a second of CPU time.
const WITHIN: Duration = Duration::from_mins(2);
const UUID: &str = "0b7ab6a2-5c3f-4f0f-8e0f-6f1d3b1f0002";
const AGENTS: &str = "/usr/sbin";

fn connected(
    folder: &Path,
    address: &str,
    credentials: &Credentials,
) -> Result<Arc<dyn Bmc>, BmcFault> {
    let options = DriverOptions {
        fence_agents: folder.to_owned(),
        ..DriverOptions::default()
    };
    connect_driver(
        &BmcAddress::parse(address).unwrap(),
        credentials,
        true,
        &options,
    )
}

fn credentials(password: &str, ca: Option<PathBuf>) -> Credentials {
    Credentials {
        username: USERNAME.to_owned(),
        password: Password::new(password),
        ca: ca.map(|file| fs::read(file).unwrap()),
    }
}

fn in_folder(folder: &TempDir, address: &str) -> Result<Arc<dyn Bmc>, BmcFault> {
    connected(folder.path(), address, &credentials(PASSWORD, None))
}

async fn sushy() -> (SushyEmulator, String) {
    let system = EmulatedSystem {
        uuid: UUID.to_owned(),
        on: true,
    };
    let sushy = SushyEmulator::start(&[system], Duration::from_secs(1))
        .await
        .unwrap();
    let uri = format!("/redfish/v1/Systems/{UUID}");
    let address = format!(
        "fence+fence_redfish://127.0.0.1:{}?systems_uri={uri}",
        sushy.port()
    );
    (sushy, address)
}

#[tokio::test]
async fn the_driver_keeps_every_drivers_promises() {
    let (sushy, address) = sushy().await;
    let (silent, dead) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        ClosedPort::new().unwrap(),
    );
    let elsewhere = |port: u16| address.replace(&sushy.port().to_string(), &port.to_string());
    let driver = |address: &str, password: &str| {
        let credentials = credentials(password, Some(sushy.ca_file()));
        connected(Path::new(AGENTS), address, &credentials).unwrap()
    };
    let devices = Devices {
        good: driver(&address, PASSWORD),
        wrong_password: driver(&address, "another"),
        dead: driver(&elsewhere(dead.port_number().unwrap()), PASSWORD),
        silent: driver(&elsewhere(silent.local_addr().unwrap().port()), PASSWORD),
        soft: Soft::Unsupported,
        within: WITHIN,
        shows_within: WITHIN,
    };
    conformance::holds(&devices).await;
}

#[tokio::test]
async fn a_host_behind_fence_redfish_is_read_and_switched_with_its_certificate_verified() {
    let (sushy, address) = sushy().await;
    let credentials = credentials(PASSWORD, Some(sushy.ca_file()));
    let bmc = connected(Path::new(AGENTS), &address, &credentials).unwrap();
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::On));
    assert_eq!(
        bmc.send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::Accepted)
    );
    // The agent has already waited for the new state.
    assert_eq!(bmc.read_power(WITHIN).await, Ok(PowerReading::Off));
    assert_eq!(
        bmc.send_command(PowerCommand::Off, WITHIN).await,
        Ok(CommandAnswer::AlreadyThere)
    );
    let about = bmc.describe_device(WITHIN).await.unwrap();
    assert_eq!(about.commands, [PowerCommand::On, PowerCommand::Off]);
    let soft = bmc
        .send_command(PowerCommand::SoftOff, WITHIN)
        .await
        .unwrap_err();
    assert_eq!(
        (soft.class, soft.may_have_run),
        (FaultClass::Unsupported, false)
    );
}

#[tokio::test]
async fn a_wrong_password_and_a_certificate_of_nobody_known_are_told() {
    let (sushy, address) = sushy().await;
    for (credentials, class) in [
        (
            credentials("wrong", Some(sushy.ca_file())),
            FaultClass::WrongCredentials,
        ),
        (credentials(PASSWORD, None), FaultClass::Tls),
    ] {
        let bmc = connected(Path::new(AGENTS), &address, &credentials).unwrap();
        let fault = bmc.read_power(WITHIN).await.unwrap_err();
        assert_eq!(fault.class, class, "{fault}");
        assert!(!fault.message.contains(PASSWORD), "{fault}");
    }
}

#[tokio::test]
async fn an_unknown_option_is_refused_by_name_before_the_agent_sees_anything() {
    let address = "fence+fence_redfish://127.0.0.1:1?systems_uri=/x&plugg=1";
    let bmc = connected(Path::new(AGENTS), address, &credentials(PASSWORD, None)).unwrap();
    for fault in [
        bmc.read_power(WITHIN).await.unwrap_err(),
        bmc.send_command(PowerCommand::Off, WITHIN)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(
            fault,
            BmcFault::without_effect(FaultClass::Unsupported, "fence_redfish has no option plugg")
        );
    }
}

/// A folder with one agent under another name, which is not refused.
fn alias(agent: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(
        Path::new(AGENTS).join(agent),
        folder.path().join("fence_alias"),
    )
    .unwrap();
    folder
}

#[tokio::test]
async fn every_answer_of_a_real_agent_is_read_back() {
    let folder = alias("fence_dummy");
    let file = folder.path().join("power");
    fs::write(&file, "off").unwrap();
    let address = format!(
        "fence+fence_alias://127.0.0.1?type=file&status_file={}",
        file.display()
    );
    let bmc = in_folder(&folder, &address).unwrap();
    for (command, answer, reading) in [
        (
            PowerCommand::Off,
            CommandAnswer::AlreadyThere,
            PowerReading::Off,
        ),
        (PowerCommand::On, CommandAnswer::Accepted, PowerReading::On),
        (
            PowerCommand::On,
            CommandAnswer::AlreadyThere,
            PowerReading::On,
        ),
        (
            PowerCommand::Off,
            CommandAnswer::Accepted,
            PowerReading::Off,
        ),
    ] {
        assert_eq!(
            bmc.send_command(command, WITHIN).await,
            Ok(answer),
            "{command}"
        );
        assert_eq!(bmc.read_power(WITHIN).await, Ok(reading), "{command}");
    }
}

#[tokio::test]
async fn what_an_agent_runs_or_cuts_is_seen_in_its_metadata_whatever_its_name() {
    for (agent, says) in [
        ("fence_ipmilan", "ipmi://HOST"),
        ("fence_apc_snmp", "snmpset"),
        ("fence_brocade", "proves nothing"),
    ] {
        let folder = alias(agent);
        let bmc = in_folder(&folder, "fence+fence_alias://127.0.0.1?plug=1").unwrap();
        let fault = bmc.read_power(WITHIN).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Unsupported, "{fault}");
        assert!(fault.message.contains(says), "{fault}");
        let fault = bmc
            .send_command(PowerCommand::Off, WITHIN)
            .await
            .unwrap_err();
        assert!(!fault.may_have_run, "{fault}");
    }
}

/// An agent with valid metadata that runs this script for each action.
fn scripted(action: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"#!/bin/sh
cd "${{0%/*}}"
read -r first
if [ "$first" = action=metadata ]; then
  echo '<resource-agent><parameters><parameter name="plug"/></parameters>'
  echo '<actions><action name="on"/><action name="off"/><action name="status"/></actions></resource-agent>'
  exit 0
fi
{action}
"#
    );
    // Written under another name and then renamed: a file that is open for writing cannot be run.
    let agent = folder.path().join("fence_script");
    let partial = agent.with_extension("partial");
    fs::write(&partial, script).unwrap();
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&partial, &agent).unwrap();
    folder
}

async fn gone(pid_file: &Path) {
    let deadline = Instant::now() + WITHIN;
    let is_gone = || {
        let pid = fs::read_to_string(pid_file).ok()?;
        // If no process reaps it, a killed process stays a zombie.
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        Some(!pid.trim().is_empty() && stat.map_or(true, |stat| stat.contains(") Z ")))
    };
    while is_gone() != Some(true) {
        assert!(Instant::now() < deadline, "a child of the agent lives on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_agent_that_hangs_is_killed_with_what_it_started_and_the_command_may_have_run() {
    let folder = scripted("sleep 600 & echo $! > child\nwait");
    let bmc = in_folder(&folder, "fence+fence_script://127.0.0.1?plug=1").unwrap();
    // By then, after its metadata, the agent must have started its child.
    let within = Duration::from_secs(10);
    let fault = bmc
        .send_command(PowerCommand::Off, within)
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::TimedOut, true),
        "{fault}"
    );
    gone(&folder.path().join("child")).await;
}

#[tokio::test]
async fn nonsense_is_never_off() {
    for action in [
        "exit 2",
        "echo maybe; exit 2",
        "echo Status: OFF; exit 0",
        "kill -9 $$",
    ] {
        let folder = scripted(action);
        let bmc = in_folder(&folder, "fence+fence_script://127.0.0.1?plug=1").unwrap();
        assert!(bmc.read_power(WITHIN).await.is_err(), "{action}");
    }
}

#[tokio::test]
async fn an_agent_that_is_not_installed_or_not_allowed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let bmc = in_folder(&folder, "fence+fence_none://127.0.0.1?plug=1").unwrap();
    let fault = bmc
        .send_command(PowerCommand::Off, WITHIN)
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Unsupported, false),
        "{fault}"
    );
    assert!(
        fault.message.contains("fence_none is not installed"),
        "{fault}"
    );
    // The address grammar refuses it already.
    assert!(BmcAddress::parse("fence+fence_ipmilan://127.0.0.1").is_err());
    let fault = in_folder(&folder, "fence+fence_apc_snmp://127.0.0.1?plug=1")
        .err()
        .unwrap();
    assert!(fault.message.contains("snmpset"), "{fault}");
}

#[tokio::test]
async fn the_password_is_on_no_command_line_while_an_agent_runs() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let secret = "on-no-agents-command-line";
    let address =
        format!("fence+fence_redfish://127.0.0.1:{port}?systems_uri=/redfish/v1/Systems/1");
    let bmc = connected(Path::new(AGENTS), &address, &credentials(secret, None)).unwrap();
    let reading = tokio::spawn(async move { bmc.read_power(WITHIN).await });
    // When the agent connects, it has read its options.
    let silent = tokio::net::TcpListener::from_std({
        silent.set_nonblocking(true).unwrap();
        silent
    });
    let connection = tokio::time::timeout(WITHIN, silent.unwrap().accept())
        .await
        .unwrap();
    let mut seen = false;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let text = fs::read(entry.path().join(file)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            seen |= text.contains("fence_redfish");
            assert!(
                !text.contains(secret),
                "{file} of {}",
                entry.path().display()
            );
        }
    }
    assert!(seen, "the agent runs");
    reading.abort();
    drop(connection);
}

/// The processes whose command line contains this word.
fn processes(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

/// pexpect starts ssh in its own session, where a signal to the agent's group does not reach it.
#[tokio::test]
async fn the_ssh_of_an_agent_goes_with_it() {
    // Under nohup this process ignores SIGHUP, and so would its children. If it catches the signal
    // instead, the children get the default action.
    let _hangs_up = signal(SignalKind::hangup()).unwrap();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let address = format!("fence+fence_apc://127.0.0.1:{port}?plug=1&ssh=1&login_timeout=60");
    let bmc = connected(Path::new(AGENTS), &address, &credentials(PASSWORD, None)).unwrap();
    let sending = tokio::spawn(async move { bmc.send_command(PowerCommand::Off, WITHIN).await });
    // So that the agent uses a protocol that today's ssh still has.
    let connection = tokio::time::timeout(WITHIN, silent.accept()).await.unwrap();
    let ours = format!(" -p {port} ");
    assert_eq!(processes(&ours).len(), 1);
    sending.abort();
    let deadline = Instant::now() + WITHIN;
    while !processes(&ours).is_empty() {
        assert!(Instant::now() < deadline, "its ssh lives on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(connection);
}
