//! Reboots the host by one of three methods. Source: specification §2.4.
//!
//! | method | how | needs in the DaemonSet |
//! |---|---|---|
//! | `command` | child process; with a host root other than `/` by `nsenter` in PID 1's namespaces | privileged, `hostPID` |
//! | `logind` | D-Bus `Reboot(false)` at `<host-root>/run/dbus/system_bus_socket` | that socket |
//! | `signal` | SIGRTMIN+5 to PID 1, systemd's own for a clean reboot | `hostPID`, capability `KILL` |
//!
//! **Promises:** no method replaces the coordinator's process. [`HostRebooter::start_reboot`] fails
//! only if nothing was begun; if that cannot be known, it reports a start. The command runs in its
//! own process group and writes to no pipe of ours, so that it survives when the coordinator is
//! killed by a signal or stopped by the reboot.

mod output;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use dogwatch_core::reboot::CommandEnd;
use rustix::process::{Pid, Signal};
use rustix_libc_wrappers::process::SignalExt as _;
use tokio::process::Child;

use self::output::RebootOutput;
pub use super::dbus::DbusError;
pub use super::namespaces::NoHostPidError;
use super::{child, dbus, namespaces};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRebootMethod {
    /// A program and its arguments; not empty.
    Command(Vec<String>),
    Logind,
    Signal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRebooter {
    pub method: HostRebootMethod,
    /// `--host-root`.
    pub host_root: PathBuf,
    /// Receiver of the signal of method `signal`: [`PID_1`] except in tests.
    pub init: Pid,
}

/// Below the host's root.
const BUS_SOCKET: &str = "run/dbus/system_bus_socket";

/// The host's service manager.
pub const PID_1: Pid = Pid::INIT;

/// systemd's SIGRTMIN+5, "reboot", as a number: systemd counts from glibc's SIGRTMIN, 34, also if
/// we are linked with musl, whose own is 35 (`systemd(1)`, "Signals").
const REBOOT_SIGNAL: i32 = 34 + 5;

/// The method never began, and will not.
#[derive(Debug, thiserror::Error)]
pub enum RebootStartError {
    /// The command does not exist, may not be executed, or there are no resources for it.
    #[error("cannot start {program:?}: correct --reboot-command")]
    Spawn {
        program: String,
        source: std::io::Error,
    },
    /// The host's PID 1 is not visible.
    #[error(transparent)]
    Alone(#[from] NoHostPidError),
    /// The permit expired before the method began.
    #[error("the reboot was not started before its permission ended")]
    TooLate(#[source] DbusError),
    #[error("cannot reboot through logind")]
    Logind(#[source] DbusError),
    /// The signal was not delivered.
    #[error(
        "cannot send the reboot signal to process {pid}: the coordinator needs the host's processes (hostPID) and the capability KILL"
    )]
    Signal {
        /// Receiver of the signal.
        pid: i32,
        source: std::io::Error,
    },
}

impl HostRebooter {
    /// The host's system bus.
    pub(crate) fn bus_socket(&self) -> PathBuf {
        self.host_root.join(BUS_SOCKET)
    }

    /// Begins the reboot within this time, or not at all.
    pub async fn start_reboot(&self, within: Duration) -> Result<StartedReboot, RebootStartError> {
        match &self.method {
            HostRebootMethod::Command(argv) => spawn_reboot_command(&self.host_root, argv),
            HostRebootMethod::Logind => ask_logind(&self.bus_socket(), within).await,
            HostRebootMethod::Signal => send_reboot_signal(self.init),
        }
    }
}

/// How a started method ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedRebootEnd {
    /// `nsenter` was started, but not the command: as if [`HostRebooter::start_reboot`] had failed.
    NeverBegun(String),
    Ran(CommandEnd),
}

/// A started reboot method. Dropping it changes nothing for the host.
#[derive(Debug)]
pub struct StartedReboot(StartedRebootKind);

#[derive(Debug)]
enum StartedRebootKind {
    Child {
        child: Child,
        output: RebootOutput,
        elsewhere: bool,
    },
    /// No process of ours runs: logind or PID 1 was asked.
    Asked(CommandEnd),
}

impl StartedReboot {
    /// Waits for the end. Cancel-safe, and returns the same result when called again.
    pub async fn wait_for_end(&mut self) -> StartedRebootEnd {
        match &mut self.0 {
            StartedRebootKind::Asked(end) => StartedRebootEnd::Ran(end.clone()),
            StartedRebootKind::Child {
                child,
                output,
                elsewhere,
            } => match child.wait().await {
                Ok(status) => {
                    output.log_lines();
                    classify_exit(status, &output.tail_line(), *elsewhere)
                }
                Err(error) => StartedRebootEnd::Ran(CommandEnd::Failure(format!(
                    "its result is unknown: {error}"
                ))),
            },
        }
    }

    /// The process id of the command while it runs.
    pub fn process_id(&self) -> Option<u32> {
        match &self.0 {
            StartedRebootKind::Child { child, .. } => child.id(),
            StartedRebootKind::Asked(_) => None,
        }
    }

    /// The command's output so far: the last KiB, as one line.
    pub fn output_tail(&self) -> String {
        match &self.0 {
            StartedRebootKind::Child { output, .. } => output.tail_line(),
            StartedRebootKind::Asked(_) => String::new(),
        }
    }
}

fn spawn_reboot_command(root: &Path, argv: &[String]) -> Result<StartedReboot, RebootStartError> {
    let argv = namespaces::host_command_argv(root, argv)?;
    let failed = |source| RebootStartError::Spawn {
        program: argv[0].clone(),
        source,
    };
    let output = RebootOutput::new().map_err(failed)?;
    let child = child::build_command(&argv)
        .stdout(output.child_stdio().map_err(failed)?)
        .stderr(output.child_stdio().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    Ok(StartedReboot(StartedRebootKind::Child {
        child,
        output,
        elsewhere: namespaces::needs_nsenter(root),
    }))
}

fn classify_exit(status: ExitStatus, said: &str, elsewhere: bool) -> StartedRebootEnd {
    if elsewhere && namespaces::is_nsenter_failure(status.code(), said) {
        return StartedRebootEnd::NeverBegun(format!("{said}: correct --reboot-command"));
    }
    if status.success() {
        return StartedRebootEnd::Ran(CommandEnd::Success);
    }
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    StartedRebootEnd::Ran(CommandEnd::Failure(format!("{status}{said}")))
}

async fn ask_logind(socket: &Path, within: Duration) -> Result<StartedReboot, RebootStartError> {
    let end = match dbus::call_logind_reboot(socket, within).await {
        Ok(()) => CommandEnd::Success,
        Err(error @ (DbusError::NoAnswer(_) | DbusError::ShutdownUnderWay { .. })) => {
            CommandEnd::Failure(error.to_string())
        }
        Err(error @ DbusError::TooLate { .. }) => return Err(RebootStartError::TooLate(error)),
        Err(
            error
            @ (DbusError::NoBus { .. } | DbusError::Refused { .. } | DbusError::Denied { .. }),
        ) => return Err(RebootStartError::Logind(error)),
    };
    Ok(StartedReboot(StartedRebootKind::Asked(end)))
}

fn send_reboot_signal(init: Pid) -> Result<StartedReboot, RebootStartError> {
    namespaces::ensure_not_pid_1()?;
    let signal = Signal::from_raw(REBOOT_SIGNAL).expect("39 is a real-time signal on Linux");
    rustix::process::kill_process(init, signal).map_err(|error| RebootStartError::Signal {
        pid: init.as_raw_nonzero().get(),
        source: error.into(),
    })?;
    Ok(StartedReboot(StartedRebootKind::Asked(CommandEnd::Success)))
}

#[cfg(test)]
mod tests;
