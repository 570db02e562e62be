//! Makes two calls on the host's system bus: `org.freedesktop.login1.Manager.Reboot(false)`, and the
//! read of systemd's `SoftRebootsCount`.
//!
//! Uses `zbus` without its proxies and services. Measured (release, size-optimised, on a real
//! dbus-daemon): 0.45 MB of binary, and 0.4 MiB RSS after the first use, 24 KiB of it anonymous.
//! `rustbus` was last released in 2022 and blocks; a `busctl` child needs systemd's tools in the
//! image.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zbus::connection::Builder;
use zbus::{DBusError as _, OwnedVariant};

/// Limit for connecting to the bus, if the permit to reboot is valid as long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Limit for logind's answer. It answers milliseconds after it has started the reboot; inhibitors
/// do not delay the answer (`InhibitDelayMaxSec` runs after it).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

/// Why logind was not called, or refused.
#[derive(Debug, thiserror::Error)]
pub enum DbusError {
    /// Nothing listens at the bus' socket.
    #[error("cannot reach the system bus at {}: mount the host's /run/dbus below --host-root, or choose another --reboot-method", path.display())]
    NoBus {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The permit expired before the connection was up: no call was sent.
    #[error("the system bus at {} did not answer before the permission to reboot ended", path.display())]
    TooLate {
        /// The bus' socket.
        path: PathBuf,
    },
    /// The bus refuses the connection.
    #[error("the system bus at {} refuses the coordinator: run it as root, or as a uid that the host knows", path.display())]
    Refused {
        /// The bus' socket.
        path: PathBuf,
        source: zbus::Error,
    },
    /// logind, or the bus in its place, refused: no reboot was begun.
    #[error("logind refuses to reboot: {name}: {message}")]
    Denied {
        /// Name of the D-Bus error.
        name: String,
        message: String,
    },
    /// logind, or the bus in its place, refused because the host is going down or to sleep already:
    /// somebody else has begun a shutdown.
    #[error(
        "logind refuses to reboot, because the host may be shutting down already: {name}: {message}"
    )]
    ShutdownUnderWay {
        /// Name of the D-Bus error.
        name: String,
        message: String,
    },
    /// The call was sent, and no answer came: the reboot may have begun.
    #[error("logind did not answer: {0}")]
    NoAnswer(String),
}

/// Why it is not known how often systemd has restarted userspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SoftRebootsUnknown {
    #[error(transparent)]
    Bus(#[from] DbusError),
    /// systemd is older than the property, or another service manager runs.
    #[error("systemd does not say how many soft reboots it made")]
    NoCount(#[source] zbus::Error),
    #[error("the system bus did not answer in time")]
    TooLate,
}

/// systemd's `SoftRebootsCount`: how often it has restarted userspace in this boot.
pub(crate) async fn read_soft_reboots(socket: &Path) -> Result<u32, SoftRebootsUnknown> {
    let read = async {
        let connection = connect_bus(socket).await?;
        let count = read_count_property(&connection).await;
        count.map_err(SoftRebootsUnknown::NoCount)
    };
    let answer = tokio::time::timeout(CONNECT_TIMEOUT, read).await;
    answer.unwrap_or(Err(SoftRebootsUnknown::TooLate))
}

async fn read_count_property(connection: &zbus::Connection) -> zbus::Result<u32> {
    let property = ("org.freedesktop.systemd1.Manager", "SoftRebootsCount");
    let call = connection.call_method(
        Some("org.freedesktop.systemd1"),
        "/org/freedesktop/systemd1",
        Some("org.freedesktop.DBus.Properties"),
        "Get",
        &property,
    );
    let answer = call.await?;
    let body = answer.body();
    let value: OwnedVariant = body.deserialize()?;
    u32::try_from(value)
}

/// `Ok`: logind says that it reboots. The call is sent within this time, or never: a permit to
/// reboot is valid for 10 s (specification §2.4), and a bus that hangs must not extend it.
pub(crate) async fn call_logind_reboot(socket: &Path, within: Duration) -> Result<(), DbusError> {
    let patience = within.min(CONNECT_TIMEOUT);
    match tokio::time::timeout(patience, connect_bus(socket)).await {
        Ok(connection) => call_reboot_method(&connection?).await,
        Err(_) if patience < CONNECT_TIMEOUT => Err(DbusError::TooLate {
            path: socket.to_owned(),
        }),
        Err(_) => Err(DbusError::NoBus {
            path: socket.to_owned(),
            source: std::io::ErrorKind::TimedOut.into(),
        }),
    }
}

async fn connect_bus(socket: &Path) -> Result<zbus::Connection, DbusError> {
    let stream =
        std::os::unix::net::UnixStream::connect(socket).map_err(|source| DbusError::NoBus {
            path: socket.to_owned(),
            source,
        })?;
    Builder::unix_stream(stream)
        .build()
        .await
        .map_err(|source| DbusError::Refused {
            path: socket.to_owned(),
            source,
        })
}

async fn call_reboot_method(connection: &zbus::Connection) -> Result<(), DbusError> {
    // `false`: not interactive, because nobody can type a password.
    let call = connection.call_method(
        Some("org.freedesktop.login1"),
        "/org/freedesktop/login1",
        Some("org.freedesktop.login1.Manager"),
        "Reboot",
        &(false,),
    );
    match tokio::time::timeout(ANSWER_TIMEOUT, call).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(classify_error(&error)),
        Err(_) => Err(DbusError::NoAnswer("it did not answer in time".to_owned())),
    }
}

/// Only an error reply proves a refusal, and not each one proves that the host stays up. The bus
/// sends `NoReply` if the service went away or stayed silent, and then the reboot may have begun; the
/// same holds for errors that are no reply.
fn classify_error(error: &zbus::Error) -> DbusError {
    match error_reply(error) {
        Some((name, message)) if SHUTDOWN_ERRORS.contains(&name.as_str()) => {
            DbusError::ShutdownUnderWay { name, message }
        }
        Some((name, message)) if !NO_ANSWER_ERRORS.contains(&name.as_str()) => {
            DbusError::Denied { name, message }
        }
        Some(_) | None => DbusError::NoAnswer(error.to_string()),
    }
}

/// Name and text of an error reply. zbus has a separate variant for the errors that the D-Bus
/// specification names.
fn error_reply(error: &zbus::Error) -> Option<(String, String)> {
    if let zbus::Error::MethodError(name, message, _) = error {
        return Some((name.to_string(), message.clone().unwrap_or_default()));
    }
    if let zbus::Error::FDO(known) = error {
        let message = known.description().unwrap_or_default();
        return Some((known.name().to_string(), message.to_owned()));
    }
    None
}

/// Errors that leave open whether the call was carried out. The last one is zbus' name for its own
/// errors.
const NO_ANSWER_ERRORS: [&str; 5] = [
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.Timeout",
    "org.freedesktop.DBus.Error.TimedOut",
    "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.zbus.Error",
];

/// Errors of a host that is shutting down. logind answers the first one from the moment when a
/// shutdown or sleep was accepted until the end, also while an inhibitor delays it (systemd,
/// `method_do_shutdown_or_sleep`). The others are systemd's: its own shutdown is not replaced, and
/// during it no logind is started that could answer (`signal_activation_request`).
const SHUTDOWN_ERRORS: [&str; 3] = [
    "org.freedesktop.login1.OperationInProgress",
    "org.freedesktop.systemd1.TransactionIsDestructive",
    "org.freedesktop.systemd1.ShuttingDown",
];
