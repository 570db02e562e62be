//! A machine's system bus: a real dbus-daemon, with a logind and a systemd of the tests.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt as _;
use tokio::task::JoinSet;

use super::Machine;

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

/// The bus below the machine's folder, for `--host-root={host}`. Dropping it stops the daemon.
pub struct SystemBus {
    daemon: Child,
    soft_reboots: Arc<AtomicU32>,
    _services: JoinSet<()>,
}

impl Drop for SystemBus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl SystemBus {
    /// Returns when both services have their names on the bus.
    pub async fn start(machine: &Machine) -> Self {
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
        let soft_reboots = Arc::new(AtomicU32::new(0));
        let mut services = JoinSet::new();
        let logind = own_name(&socket, "org.freedesktop.login1").await;
        services.spawn(reboot_by_logind(logind, machine.file("power")));
        let systemd = own_name(&socket, "org.freedesktop.systemd1").await;
        services.spawn(count_by_systemd(systemd, Arc::clone(&soft_reboots)));
        Self {
            daemon,
            soft_reboots,
            _services: services,
        }
    }

    /// systemd restarts userspace and counts it; the kernel goes on.
    pub async fn soft_reboot(&self, machine: &Machine) {
        self.soft_reboots.fetch_add(1, Ordering::Relaxed);
        machine.restart_userspace().await;
    }
}

/// Writes a line to the machine's power switch for each call of `Reboot`.
async fn reboot_by_logind(logind: zbus::Connection, power: PathBuf) {
    let mut calls = zbus::MessageStream::from(&logind);
    while let Some(Ok(message)) = calls.next().await {
        let header = message.header();
        if header.member().is_some_and(|name| name == "Reboot") {
            logind.reply(&header, &()).await.expect("a bus");
            fs::write(&power, "reboot\n").expect("a fifo");
        }
    }
}

/// Answers each read of a property with the count of soft reboots: no other one is read.
async fn count_by_systemd(systemd: zbus::Connection, count: Arc<AtomicU32>) {
    let mut calls = zbus::MessageStream::from(&systemd);
    while let Some(Ok(message)) = calls.next().await {
        let header = message.header();
        if header.member().is_some_and(|name| name == "Get") {
            let value = zbus::Variant::from(count.load(Ordering::Relaxed));
            systemd.reply(&header, &value).await.expect("a bus");
        }
    }
}

async fn own_name(socket: &Path, name: &str) -> zbus::Connection {
    let stream = UnixStream::connect(socket).expect("a bus");
    let connection = zbus::connection::Builder::unix_stream(stream).name(name);
    connection.build().await.expect("a bus")
}
