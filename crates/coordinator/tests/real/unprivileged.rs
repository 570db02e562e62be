//! The coordinator as `deploy/unprivileged` runs it, as far as a test can: an ordinary uid, no
//! capability, and of the host only the sentinel's folder and the system bus. Polkit and a
//! container's namespaces are missing here.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use futures::StreamExt as _;
use tokio::task::JoinHandle;

use crate::support::{Cluster, Machine, Setting};

/// `nobody`. dbus-daemon refuses a uid that the host does not know; hosts have a user of uid 65532
/// for `deploy/unprivileged`, and Debian has this one.
const UID: u32 = 65534;

const CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/>
    <allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>"#;

/// A system bus with a logind that reboots the machine for every caller.
struct Bus {
    daemon: Child,
    logind: JoinHandle<()>,
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.logind.abort();
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Bus {
    fn start(machine: &Machine) -> Self {
        fs::create_dir(machine.file("run/dbus")).expect("a folder");
        let socket = machine.file("run/dbus/system_bus_socket");
        let configuration = machine.file("bus.conf");
        let text = CONFIGURATION.replace("SOCKET", &socket.display().to_string());
        fs::write(&configuration, text).expect("a file");
        let mut daemon = Command::new("dbus-daemon")
            .args(["--nofork", "--print-address"])
            .arg(format!("--config-file={}", configuration.display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon: install the Debian package dbus");
        // dbus-daemon prints its address once it listens.
        let output = daemon.stdout.take().expect("asked for above");
        let mut address = String::new();
        let read = BufReader::new(output).read_line(&mut address);
        read.expect("an address");
        let logind = tokio::spawn(reboots(socket, machine.file("power")));
        Self { daemon, logind }
    }
}

/// Writes a line to the machine's power switch for each call of `Reboot`.
async fn reboots(socket: std::path::PathBuf, power: std::path::PathBuf) {
    let stream = std::os::unix::net::UnixStream::connect(socket).expect("a bus");
    let logind = zbus::connection::Builder::unix_stream(stream)
        .name("org.freedesktop.login1")
        .build()
        .await
        .expect("a bus");
    let mut calls = zbus::MessageStream::from(&logind);
    while let Some(Ok(message)) = calls.next().await {
        let header = message.header();
        if header.member().is_some_and(|name| name == "Reboot") {
            logind.reply(&header, &()).await.expect("a bus");
            fs::write(&power, "reboot\n").expect("a fifo");
        }
    }
}

fn readable_by_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("a folder of ours");
}

fn status_of(id: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.expect("Linux has it").trim().to_owned()
}

#[tokio::test]
async fn an_ordinary_uid_without_capabilities_reboots_its_node_through_logind() {
    let cluster = Cluster::new().await;
    let flags = [
        "--reboot-method=logind",
        "--host-root={host}",
        "--sentinel=/run/reboot-needed",
    ];
    // Only root can change its user; any other user is an ordinary uid already.
    let uid = rustix::process::getuid().is_root().then_some(UID);
    let setting = Setting {
        uid,
        ..Setting::flags(flags)
    };
    let machine = cluster.machine_without_coordinator(setting).await;
    readable_by_all(&machine.file(""));
    readable_by_all(cluster.plane.folder());
    let _bus = Bus::start(&machine);
    machine.start_coordinator().await;
    machine.touch("new kernel");
    machine.until_back().await;
    let coordinator = machine.take_coordinator().await;
    let is_root = status_of(coordinator.id(), "Uid:").starts_with("0\t");
    let capabilities = status_of(coordinator.id(), "CapEff:");
    assert!(!is_root, "it ran as root");
    assert_eq!(capabilities.trim_matches('0'), "", "{capabilities}");
}
