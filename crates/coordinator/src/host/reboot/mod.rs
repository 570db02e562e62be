//! Rebooting the host, by one of three methods. Source: specification §2.4.
//!
//! | method | how | needs in the DaemonSet |
//! |---|---|---|
//! | `command` | child process; with a host root other than `/` by `nsenter` in PID 1's namespaces | privileged, `hostPID` |
//! | `logind` | D-Bus `Reboot(false)` at `<host-root>/run/dbus/system_bus_socket` | that socket |
//! | `signal` | SIGRTMIN+5 to PID 1, systemd's own for a clean reboot | `hostPID`, capability `KILL` |
//!
//! **Promises:** never an exec, the coordinator lives on. [`Reboot::start`] fails only where
//! nothing was begun; where that cannot be known, it was started. The command is in a process
//! group of its own and writes to no pipe of ours, so that it survives us: killed by a signal or
//! stopped by the reboot itself, the coordinator never takes its command along.

mod output;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use dogwatch_core::reboot::CommandEnd;
use rustix::process::{Pid, Signal};
use rustix_libc_wrappers::process::SignalExt as _;
use tokio::process::Child;

use self::output::Output;
pub use super::dbus::DbusError;
pub use super::namespaces::AloneError;
use super::{child, dbus, namespaces};

/// How to reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// By this program and its arguments; not empty.
    Command(Vec<String>),
    /// By systemd-logind.
    Logind,
    /// By a signal to systemd.
    Signal,
}

/// Everything needed to reboot this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reboot {
    /// How.
    pub method: Method,
    /// `--host-root`.
    pub host_root: PathBuf,
    /// Whom the method `signal` signals: [`PID_1`] in earnest.
    pub init: Pid,
}

/// The host's service manager.
pub const PID_1: Pid = Pid::INIT;

/// systemd's SIGRTMIN+5, "reboot", as a number: systemd counts from glibc's SIGRTMIN, 34, also
/// where we are linked with musl, whose own is 35 (`systemd(1)`, "Signals").
const REBOOT_SIGNAL: i32 = 34 + 5;

/// The method never began, and nothing of it will happen.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command does not exist, may not be executed, or there are no resources for it.
    #[error("cannot start {program:?}: correct --reboot-command")]
    Spawn {
        /// What could not be started.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// PID 1 is not the host's.
    #[error(transparent)]
    Alone(#[from] AloneError),
    /// The permit ended before the method could begin.
    #[error("the reboot was not begun while it was permitted")]
    TooLate(#[source] DbusError),
    /// logind was not reached, or refused.
    #[error("cannot reboot by logind")]
    Logind(#[source] DbusError),
    /// The signal was not delivered.
    #[error(
        "cannot send the reboot signal to process {pid}: the coordinator needs the host's processes (hostPID) and the capability KILL"
    )]
    Signal {
        /// Whom.
        pid: i32,
        /// Why.
        source: std::io::Error,
    },
}

impl Reboot {
    /// Begins the reboot within this time, or not at all.
    pub async fn start(&self, within: Duration) -> Result<Running, StartError> {
        match &self.method {
            Method::Command(argv) => spawn(&self.host_root, argv),
            Method::Logind => ask_logind(&self.host_root, within).await,
            Method::Signal => send_signal(self.init),
        }
    }
}

/// How a method that was started has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// `nsenter` was started, but not the command: as if [`Reboot::start`] had failed.
    NeverBegun(String),
    /// It ran.
    Ran(CommandEnd),
}

/// A reboot method that was started. Dropping it changes nothing for the host.
#[derive(Debug)]
pub struct Running(Kind);

#[derive(Debug)]
enum Kind {
    Child {
        child: Child,
        output: Output,
        elsewhere: bool,
    },
    /// Nothing of ours runs: somebody else was asked.
    Asked(CommandEnd),
}

impl Running {
    /// Its end, for ever the same once it has come. May be dropped and called again.
    pub async fn ended(&mut self) -> Ended {
        match &mut self.0 {
            Kind::Asked(end) => Ended::Ran(end.clone()),
            Kind::Child {
                child,
                output,
                elsewhere,
            } => match child.wait().await {
                Ok(status) => {
                    output.log();
                    judge(status, &output.tail(), *elsewhere)
                }
                Err(error) => Ended::Ran(CommandEnd::Failure(format!("was lost: {error}"))),
            },
        }
    }

    /// The process id of the command, while there is one.
    pub fn id(&self) -> Option<u32> {
        match &self.0 {
            Kind::Child { child, .. } => child.id(),
            Kind::Asked(_) => None,
        }
    }

    /// What the command has said so far: the last KiB, as one line.
    pub fn output(&self) -> String {
        match &self.0 {
            Kind::Child { output, .. } => output.tail(),
            Kind::Asked(_) => String::new(),
        }
    }
}

fn spawn(root: &Path, argv: &[String]) -> Result<Running, StartError> {
    let argv = namespaces::on_host(root, argv)?;
    let failed = |source| StartError::Spawn {
        program: argv[0].clone(),
        source,
    };
    let output = Output::new().map_err(failed)?;
    let child = child::command(&argv)
        .stdout(output.end().map_err(failed)?)
        .stderr(output.end().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    Ok(Running(Kind::Child {
        child,
        output,
        elsewhere: namespaces::elsewhere(root),
    }))
}

fn judge(status: ExitStatus, said: &str, elsewhere: bool) -> Ended {
    if elsewhere && namespaces::never_begun(status.code(), said) {
        return Ended::NeverBegun(format!("{said}: correct --reboot-command"));
    }
    if status.success() {
        return Ended::Ran(CommandEnd::Success);
    }
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    Ended::Ran(CommandEnd::Failure(format!("{status}{said}")))
}

async fn ask_logind(root: &Path, within: Duration) -> Result<Running, StartError> {
    let socket = root.join("run/dbus/system_bus_socket");
    let end = match dbus::reboot(&socket, within).await {
        Ok(()) => CommandEnd::Success,
        Err(error @ DbusError::NoAnswer(_)) => CommandEnd::Failure(error.to_string()),
        Err(error @ DbusError::TooLate { .. }) => return Err(StartError::TooLate(error)),
        Err(
            error
            @ (DbusError::NoBus { .. } | DbusError::Refused { .. } | DbusError::Denied { .. }),
        ) => return Err(StartError::Logind(error)),
    };
    Ok(Running(Kind::Asked(end)))
}

fn send_signal(init: Pid) -> Result<Running, StartError> {
    namespaces::refuse_being_first()?;
    let signal = Signal::from_raw(REBOOT_SIGNAL).expect("39 is a real-time signal on Linux");
    rustix::process::kill_process(init, signal).map_err(|error| StartError::Signal {
        pid: init.as_raw_nonzero().get(),
        source: error.into(),
    })?;
    Ok(Running(Kind::Asked(CommandEnd::Success)))
}

#[cfg(test)]
mod tests;
