//! Runs child processes that speak to BMCs. No child outlives its deadline, and secrets reach it
//! through a pipe.
//!
//! Every user of the host can read a process's arguments. The same user and its children can read
//! its environment, which is in core dumps too. A file can be left behind. A pipe is read once and
//! then empty.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use dogwatch_core::power::{BmcFault, FaultClass};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::secret::redact_secret;

/// An agent's metadata is about 20 KiB, an answer one or two lines.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// A killed process ends within a millisecond, unless the kernel blocks it; then it is not waited
/// for.
const REAP_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest part of a program's output that goes into a message, in characters.
const MESSAGE_LENGTH_LIMIT: usize = 200;

pub(crate) struct ChildCommand<'a> {
    /// A path, or a name that is looked up in our PATH.
    pub(crate) program: &'a Path,
    /// Must not contain secrets.
    pub(crate) arguments: &'a [&'a str],
    /// Variables beside PATH and LANG. Must not contain secrets.
    pub(crate) environment: &'a [(&'a str, &'a Path)],
    /// The child's standard input; it may contain secrets.
    pub(crate) input: &'a str,
}

/// How a process ended by itself.
#[derive(Debug)]
pub(crate) struct ChildExit {
    /// `None`: a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why there is no [`ChildExit`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("{0} is not installed where the controller runs")]
    Missing(String),
    #[error("{0} could not be started: {1}")]
    Start(String, io::Error),
    #[error("no time was left to start {0}")]
    TooLate(String),
    /// The text names no duration: a message that changes each time is written to the API each
    /// time.
    #[error("{0} did not answer in time and was killed")]
    TimedOut(String),
    #[error("{0} printed more than 64 KiB and was killed")]
    TooMuch(String),
    #[error("the output of {0} could not be read: {1}")]
    Io(String, io::Error),
}

impl From<ChildError> for BmcFault {
    fn from(failure: ChildError) -> Self {
        let message = failure.to_string();
        match failure {
            ChildError::Missing(_) => BmcFault::without_effect(FaultClass::Unsupported, message),
            ChildError::Start(..) => BmcFault::without_effect(FaultClass::Refused, message),
            ChildError::TooLate(_) => BmcFault::without_effect(FaultClass::TimedOut, message),
            ChildError::TimedOut(_) => BmcFault::with_unknown_effect(FaultClass::TimedOut, message),
            ChildError::TooMuch(_) => {
                BmcFault::with_unknown_effect(FaultClass::Contradiction, message)
            }
            ChildError::Io(..) => BmcFault::with_unknown_effect(FaultClass::Refused, message),
        }
    }
}

/// Runs the program in its own process group, with nothing of our environment but PATH. When this
/// future ends or is dropped, the whole group has been killed. A process that left the group is not
/// killed.
pub(crate) async fn run_child(
    call: &ChildCommand<'_>,
    within: Duration,
) -> Result<ChildExit, ChildError> {
    let name = program_name(call.program);
    // A process runs for a moment before it can be killed: long enough to send a command.
    if within.is_zero() {
        return Err(ChildError::TooLate(name));
    }
    // Register before the child exists, so that its end cannot be missed.
    let mut ends = signal(SignalKind::child()).map_err(|e| ChildError::Io(name.clone(), e))?;
    let mut child = spawn_child(call).map_err(|error| start_error(name.clone(), error))?;
    // Declared after the child, so dropped before it: see `ChildProcessGroup`.
    let group = ChildProcessGroup::from_child(&child);
    let talk = exchange_pipes(&mut child, call.input, &name);
    let leader = async {
        while !group.leader_has_ended() {
            ends.recv().await;
        }
        // Processes that the child left running keep the pipes open, which `exchange_pipes` reads
        // to their end.
        group.kill_group();
        Ok(())
    };
    let outcome = tokio::time::timeout(within, async { tokio::try_join!(talk, leader) }).await;
    drop(group);
    let status = tokio::time::timeout(REAP_TIMEOUT, child.wait()).await;
    let Ok(told) = outcome else {
        return Err(ChildError::TimedOut(name));
    };
    let ((stdout, stderr), ()) = told?;
    match status {
        Ok(Ok(status)) => Ok(ChildExit {
            code: status.code(),
            stdout,
            stderr,
        }),
        Ok(Err(error)) => Err(ChildError::Io(name, error)),
        Err(_) => Err(ChildError::TimedOut(name)),
    }
}

/// Returns the last line of output in a form fit for a message: short, without control characters
/// and without the secret.
pub(crate) fn redacted_last_line<'a>(lines: impl Iterator<Item = &'a str>, secret: &str) -> String {
    // The whole text at once: the secret may stand across a line break.
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = redact_secret(&text, secret);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    let visible = last
        .unwrap_or("nothing")
        .chars()
        .filter(|c| !c.is_control());
    visible.take(MESSAGE_LENGTH_LIMIT).collect()
}

fn start_error(name: String, error: io::Error) -> ChildError {
    if error.kind() == io::ErrorKind::NotFound {
        ChildError::Missing(name)
    } else {
        ChildError::Start(name, error)
    }
}

fn program_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or(program.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Without a PATH of our own, the standard search path is used.
fn spawn_child(call: &ChildCommand<'_>) -> io::Result<Child> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into());
    Command::new(call.program)
        .args(call.arguments)
        .current_dir("/")
        .env_clear()
        .env("PATH", path)
        .env("LANG", "C")
        .envs(call.environment.iter().copied())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

async fn exchange_pipes(
    child: &mut Child,
    input: &str,
    name: &str,
) -> Result<(String, String), ChildError> {
    let asked = "all three are pipes";
    let stdin = child.stdin.take().expect(asked);
    let stdout = child.stdout.take().expect(asked);
    let stderr = child.stderr.take().expect(asked);
    let ((), stdout, stderr) = tokio::try_join!(
        write_stdin(stdin, input),
        read_output(stdout, name),
        read_output(stderr, name)
    )?;
    Ok((stdout, stderr))
}

/// A write error is ignored: the child may end or close its input without reading, and its exit
/// then says why.
async fn write_stdin(mut stdin: ChildStdin, input: &str) -> Result<(), ChildError> {
    let _ = stdin.write_all(input.as_bytes()).await;
    Ok(())
}

async fn read_output(pipe: impl AsyncRead + Unpin, name: &str) -> Result<String, ChildError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(OUTPUT_LIMIT).expect("64 KiB") + 1;
    let read = pipe.take(limit).read_to_end(&mut bytes).await;
    read.map_err(|error| ChildError::Io(name.to_owned(), error))?;
    if bytes.len() > OUTPUT_LIMIT {
        return Err(ChildError::TooMuch(name.to_owned()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The process group of a child that is not yet reaped, so its number cannot belong to another
/// process. The group is killed on drop, which happens before the child is waited for.
struct ChildProcessGroup(Pid);

impl ChildProcessGroup {
    fn from_child(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = id.and_then(Pid::from_raw);
        Self(pid.expect("a child that nobody has waited for has an id"))
    }

    /// Checks without reaping.
    fn leader_has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child: it has ended.
        !matches!(waitid(WaitId::Pid(self.0), look), Ok(None))
    }

    /// An error means that the whole group is already gone.
    fn kill_group(&self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

impl Drop for ChildProcessGroup {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
mod tests;
