//! Tests the method `logind` on a real dbus-daemon (Debian package `dbus`), with a logind of our
//! own made with the same crate.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use futures::StreamExt as _;

use super::*;

const CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=SOCKET</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/>
    <allow send_destination="*"/><allow send_type="signal"/>
    <allow receive_type="method_call"/><allow receive_type="method_return"/>
    <allow receive_type="error"/><allow receive_type="signal"/>
  </policy>
</busconfig>"#;

/// A system bus below its own host root.
struct Bus {
    root: TempDir,
    daemon: Child,
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Bus {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run/dbus");
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("system_bus_socket");
        let configuration = root.path().join("bus.conf");
        let text = CONFIGURATION.replace("SOCKET", socket.to_str().unwrap());
        std::fs::write(&configuration, text).unwrap();
        let mut daemon = Command::new("dbus-daemon")
            .arg("--nofork")
            .arg("--print-address")
            .arg(format!("--config-file={}", configuration.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon: install the Debian package dbus");
        // dbus-daemon prints its address once it listens.
        let mut address = String::new();
        let output = daemon.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut address).unwrap();
        Self { root, daemon }
    }

    fn reboot(&self) -> HostRebooter {
        HostRebooter {
            host_root: self.root.path().to_owned(),
            ..by(HostRebootMethod::Logind)
        }
    }

    /// Takes logind's bus name, and gives each call to `answer`.
    async fn logind(&self, answer: Answer) -> tokio::task::JoinHandle<String> {
        let socket = self.root.path().join("run/dbus/system_bus_socket");
        let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let logind = zbus::connection::Builder::unix_stream(stream)
            .name("org.freedesktop.login1")
            .build()
            .await
            .unwrap();
        tokio::spawn(async move {
            let mut calls = zbus::MessageStream::from(&logind);
            while let Some(message) = calls.next().await {
                let message = message.unwrap();
                let header = message.header();
                if header.member().is_none_or(|name| name != "Reboot") {
                    continue;
                }
                let interactive: bool = message.body().deserialize().unwrap();
                let call = format!(
                    "{} {} {interactive}",
                    header.path().unwrap(),
                    header.interface().unwrap()
                );
                match answer {
                    Answer::Yes => logind.reply(&header, &()).await.unwrap(),
                    Answer::Error(name, text) => {
                        logind.reply_error(&header, name, &text).await.unwrap();
                    }
                    // The process ends during the call, as if the reboot was faster than the
                    // answer.
                    Answer::None => {}
                }
                return call;
            }
            unreachable!("the bus went away first")
        })
    }
}

#[derive(Clone, Copy)]
enum Answer {
    Yes,
    /// Name and text of the D-Bus error.
    Error(&'static str, &'static str),
    None,
}

#[tokio::test]
async fn logind_is_asked_to_reboot_without_asking_back() {
    let bus = Bus::start();
    let logind = bus.logind(Answer::Yes).await;
    assert_eq!(
        end(&bus.reboot()).await,
        StartedRebootEnd::Ran(CommandEnd::Success)
    );
    assert_eq!(
        logind.await.unwrap(),
        "/org/freedesktop/login1 org.freedesktop.login1.Manager false"
    );
}

#[tokio::test]
async fn a_refusal_of_logind_began_nothing_and_is_quoted() {
    let bus = Bus::start();
    let denied = "org.freedesktop.DBus.Error.AccessDenied";
    let logind = bus.logind(Answer::Error(denied, "Permission denied")).await;
    let error = bus.reboot().start_reboot(PERMIT).await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("AccessDenied: Permission denied"), "{cause}");
    logind.await.unwrap();
}

#[tokio::test]
async fn a_refusal_because_of_a_shutdown_under_way_does_not_prove_that_the_host_stays_up() {
    for name in [
        "org.freedesktop.login1.OperationInProgress",
        "org.freedesktop.systemd1.TransactionIsDestructive",
        "org.freedesktop.systemd1.ShuttingDown",
    ] {
        let bus = Bus::start();
        let text = "There's already a shutdown or sleep operation in progress";
        let logind = bus.logind(Answer::Error(name, text)).await;
        let ended = end(&bus.reboot()).await;
        let StartedRebootEnd::Ran(CommandEnd::Failure(why)) = ended else {
            panic!("{name}: {ended:?}");
        };
        assert!(why.contains(name) && why.contains(text), "{why}");
        logind.await.unwrap();
    }
}

#[tokio::test]
async fn a_logind_that_dies_over_the_call_may_have_begun() {
    let bus = Bus::start();
    let logind = bus.logind(Answer::None).await;
    let ended = end(&bus.reboot()).await;
    let StartedRebootEnd::Ran(CommandEnd::Failure(why)) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("logind did not answer"), "{why}");
    logind.await.unwrap();
}

#[tokio::test]
async fn without_logind_or_without_a_bus_nothing_began() {
    let bus = Bus::start();
    let error = bus.reboot().start_reboot(PERMIT).await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("ServiceUnknown"), "{cause}");
    let nowhere = HostRebooter {
        host_root: PathBuf::from("/does/not/exist"),
        ..by(HostRebootMethod::Logind)
    };
    let error = nowhere.start_reboot(PERMIT).await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(
        cause.contains("/does/not/exist/run/dbus/system_bus_socket"),
        "{cause}"
    );
    assert!(cause.contains("--host-root"), "{cause}");
}

#[tokio::test]
async fn a_bus_that_hangs_does_not_stretch_the_permit_and_nothing_began() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run/dbus");
    std::fs::create_dir_all(&folder).unwrap();
    // The socket accepts every connection and sends nothing.
    let _hangs = std::os::unix::net::UnixListener::bind(folder.join("system_bus_socket")).unwrap();
    let reboot = HostRebooter {
        host_root: root.path().to_owned(),
        ..by(HostRebootMethod::Logind)
    };
    let error = reboot
        .start_reboot(Duration::from_millis(100))
        .await
        .unwrap_err();
    assert!(matches!(error, RebootStartError::TooLate(_)), "{error:?}");
}

/// Takes systemd's bus name, and answers one read of a property.
async fn answer_count(bus: &Bus, count: Option<u32>) -> tokio::task::JoinHandle<String> {
    let socket = bus.root.path().join("run/dbus/system_bus_socket");
    let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let systemd = zbus::connection::Builder::unix_stream(stream)
        .name("org.freedesktop.systemd1")
        .build()
        .await
        .unwrap();
    tokio::spawn(async move {
        let mut calls = zbus::MessageStream::from(&systemd);
        while let Some(message) = calls.next().await {
            let message = message.unwrap();
            let header = message.header();
            if header.member().is_none_or(|name| name != "Get") {
                continue;
            }
            let (kind, name): (String, String) = message.body().deserialize().unwrap();
            if let Some(count) = count {
                let value = zbus::Variant::from(count);
                systemd.reply(&header, &value).await.unwrap();
            } else {
                let error = "org.freedesktop.DBus.Error.UnknownProperty";
                let text = "Unknown property SoftRebootsCount";
                systemd.reply_error(&header, error, &text).await.unwrap();
            }
            return format!("{} {kind} {name}", header.path().unwrap());
        }
        unreachable!("the bus went away first")
    })
}

#[tokio::test]
async fn systemd_says_how_many_soft_reboots_it_made() {
    let bus = Bus::start();
    let systemd = answer_count(&bus, Some(3)).await;
    let count = dbus::read_soft_reboots(&bus.reboot().bus_socket()).await;
    assert_eq!(count.unwrap(), 3);
    assert_eq!(
        systemd.await.unwrap(),
        "/org/freedesktop/systemd1 org.freedesktop.systemd1.Manager SoftRebootsCount"
    );
}

#[tokio::test]
async fn a_systemd_without_the_count_or_no_bus_leaves_it_unknown() {
    let bus = Bus::start();
    let systemd = answer_count(&bus, None).await;
    let count = dbus::read_soft_reboots(&bus.reboot().bus_socket()).await;
    assert!(matches!(count, Err(dbus::SoftRebootsUnknown::NoCount(_))));
    systemd.await.unwrap();
    let nowhere = dbus::read_soft_reboots(std::path::Path::new("/does/not/exist")).await;
    assert!(matches!(nowhere, Err(dbus::SoftRebootsUnknown::Bus(_))));
}
