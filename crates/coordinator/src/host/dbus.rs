//! One call on the host's system bus: `org.freedesktop.login1.Manager.Reboot(false)`.
//!
//! By `zbus` without its proxies and services. Measured (release, size-optimised, on a real
//! dbus-daemon): 0.45 MB of binary, and 0.4 MiB RSS, 24 KiB of it anonymous, once it has been
//! used. `rustbus` was last released in 2022 and blocks; a `busctl` child needs systemd's tools in
//! the image.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zbus::DBusError as _;
use zbus::connection::Builder;

/// How long the bus may take to let us in, if the permit to reboot lasts as long.
const CONNECTED_WITHIN: Duration = Duration::from_secs(3);

/// How long logind may take. It answers once it has started the reboot,
/// which takes it milliseconds; inhibitors do not delay its answer (`InhibitDelayMaxSec` runs
/// after it).
const ANSWER_WITHIN: Duration = Duration::from_secs(25);

/// Why logind was not asked, or what it said.
#[derive(Debug, thiserror::Error)]
pub enum DbusError {
    /// No bus there.
    #[error("cannot reach the system bus at {}: mount the host's /run/dbus below --host-root, or choose another --reboot-method", path.display())]
    NoBus {
        /// Its socket.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The permit ended before the bus had let us in: nothing was asked for.
    #[error("the system bus at {} did not answer while the reboot was permitted", path.display())]
    TooLate {
        /// Its socket.
        path: PathBuf,
    },
    /// The bus does not let us in.
    #[error("the system bus at {} refuses the coordinator: run it as root, or as a uid that the host knows", path.display())]
    Refused {
        /// Its socket.
        path: PathBuf,
        /// Why.
        source: zbus::Error,
    },
    /// logind, or the bus in its place, said no: nothing was begun.
    #[error("logind refuses to reboot: {name}: {message}")]
    Denied {
        /// The D-Bus error's name.
        name: String,
        /// Its text.
        message: String,
    },
    /// The call was sent, and no answer came: it may have been begun.
    #[error("logind did not answer: {0}")]
    NoAnswer(String),
}

/// Asks logind to reboot. `Ok` when it said that it does. The call is sent within this time, or never:
/// a permit to reboot is good for 10 s (specification §2.4), and a bus that hangs must not stretch it.
pub(crate) async fn reboot(socket: &Path, within: Duration) -> Result<(), DbusError> {
    let patience = within.min(CONNECTED_WITHIN);
    match tokio::time::timeout(patience, connect(socket)).await {
        Ok(connection) => call(&connection?).await,
        Err(_) if patience < CONNECTED_WITHIN => Err(DbusError::TooLate {
            path: socket.to_owned(),
        }),
        Err(_) => Err(DbusError::NoBus {
            path: socket.to_owned(),
            source: std::io::ErrorKind::TimedOut.into(),
        }),
    }
}

async fn connect(socket: &Path) -> Result<zbus::Connection, DbusError> {
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

async fn call(connection: &zbus::Connection) -> Result<(), DbusError> {
    // `false`: not interactive, nobody is there to type a password.
    let call = connection.call_method(
        Some("org.freedesktop.login1"),
        "/org/freedesktop/login1",
        Some("org.freedesktop.login1.Manager"),
        "Reboot",
        &(false,),
    );
    match tokio::time::timeout(ANSWER_WITHIN, call).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(sorted(&error)),
        Err(_) => Err(DbusError::NoAnswer("it took too long".to_owned())),
    }
}

/// An error message is an answer. `NoReply` is the bus' word for a callee that went away or kept
/// silent, which may have begun; so may everything that is no answer at all.
fn sorted(error: &zbus::Error) -> DbusError {
    match answer(error) {
        Some((name, message)) if !NO_ANSWER.contains(&name.as_str()) => {
            DbusError::Denied { name, message }
        }
        Some(_) | None => DbusError::NoAnswer(error.to_string()),
    }
}

/// The name and text of an error message, if it is one. zbus has a variant of its own for those
/// that the bus' specification names.
fn answer(error: &zbus::Error) -> Option<(String, String)> {
    if let zbus::Error::MethodError(name, message, _) = error {
        return Some((name.to_string(), message.clone().unwrap_or_default()));
    }
    if let zbus::Error::FDO(known) = error {
        let message = known.description().unwrap_or_default();
        return Some((known.name().to_string(), message.to_owned()));
    }
    None
}

/// Errors that leave open whether the call was carried out. The last is zbus' word for its own.
const NO_ANSWER: [&str; 5] = [
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.Timeout",
    "org.freedesktop.DBus.Error.TimedOut",
    "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.zbus.Error",
];
