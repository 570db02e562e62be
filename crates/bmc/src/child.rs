//! Child processes that speak to BMCs: nothing of ours outlives its deadline, and what is secret goes
//! in by a pipe.
//!
//! A process' arguments can be read by every user of the host, its environment by the same user and
//! in core dumps and by its own children; a file can be left behind. A pipe is read once and gone.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use dogwatch_core::power::{Class, Fault};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::signal::unix::{SignalKind, signal};

/// An agent's metadata is some 20 KiB, an answer a line or two.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// A killed process is gone in a millisecond, unless the kernel itself holds it; then nobody waits.
const REAPED_WITHIN: Duration = Duration::from_secs(1);
/// The longest part of a program's own words in a message.
const SAID_LIMIT: usize = 200;

/// What to run.
pub(crate) struct Call<'a> {
    /// Which program: a path, or a name that is looked for on our PATH.
    pub(crate) program: &'a Path,
    /// No secret is among them.
    pub(crate) arguments: &'a [&'a str],
    /// Variables beside PATH and LANG. No secret is among them.
    pub(crate) environment: &'a [(&'a str, &'a Path)],
    /// What it reads on its standard input. It may hold secrets.
    pub(crate) input: &'a str,
}

/// How a process ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why there is no [`Ended`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0} is not installed where the controller runs")]
    Missing(String),
    #[error("{0} could not be started: {1}")]
    Start(String, io::Error),
    #[error("no time was left to start {0}")]
    TooLate(String),
    /// Without the time: a message that changes each time is written each time.
    #[error("{0} did not answer in time and was killed")]
    TimedOut(String),
    #[error("{0} printed more than 64 KiB and was killed")]
    TooMuch(String),
    #[error("{0} could not be listened to: {1}")]
    Io(String, io::Error),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::Missing(_) => Fault::harmless(Class::Unsupported, message),
            Failure::Start(..) => Fault::harmless(Class::Refused, message),
            Failure::TooLate(_) => Fault::harmless(Class::TimedOut, message),
            Failure::TimedOut(_) => Fault::unknown_end(Class::TimedOut, message),
            Failure::TooMuch(_) => Fault::unknown_end(Class::Contradiction, message),
            Failure::Io(..) => Fault::unknown_end(Class::Refused, message),
        }
    }
}

/// Runs it in a process group of its own, with nothing of our own environment but PATH. When this returns,
/// or is dropped, the whole group has been killed; a process that left the group is not followed.
pub(crate) async fn run(call: &Call<'_>, within: Duration) -> Result<Ended, Failure> {
    let name = name_of(call.program);
    // A process that starts runs for a moment before it is killed: long enough for a command.
    if within.is_zero() {
        return Err(Failure::TooLate(name));
    }
    // Before the child is there, so that its end cannot be missed.
    let mut ends = signal(SignalKind::child()).map_err(|e| Failure::Io(name.clone(), e))?;
    let mut child = spawn(call).map_err(|error| not_started(name.clone(), error))?;
    // Declared after the child, so dropped before it: see `Group`.
    let group = Group::of(&child);
    let talk = talk(&mut child, call.input, &name);
    let leader = async {
        while !group.leader_has_ended() {
            ends.recv().await;
        }
        // What it left running holds the pipes open that `talk` reads to their end.
        group.kill();
        Ok(())
    };
    let outcome = tokio::time::timeout(within, async { tokio::try_join!(talk, leader) }).await;
    drop(group);
    let status = tokio::time::timeout(REAPED_WITHIN, child.wait()).await;
    let Ok(told) = outcome else {
        return Err(Failure::TimedOut(name));
    };
    let ((stdout, stderr), ()) = told?;
    match status {
        Ok(Ok(status)) => Ok(Ended {
            code: status.code(),
            stdout,
            stderr,
        }),
        Ok(Err(error)) => Err(Failure::Io(name, error)),
        Err(_) => Err(Failure::TimedOut(name)),
    }
}

/// The last line of what it said, fit for a message: short, without control characters, and without
/// the secret should it hold it.
pub(crate) fn said<'a>(lines: impl DoubleEndedIterator<Item = &'a str>, secret: &str) -> String {
    let last = lines.map(str::trim).rfind(|line| !line.is_empty());
    let mut line = last.unwrap_or("nothing").to_owned();
    if !secret.is_empty() {
        line = line.replace(secret, "***");
    }
    line.chars()
        .filter(|c| !c.is_control())
        .take(SAID_LIMIT)
        .collect()
}

fn not_started(name: String, error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        Failure::Missing(name)
    } else {
        Failure::Start(name, error)
    }
}

fn name_of(program: &Path) -> String {
    let name = program.file_name().unwrap_or(program.as_os_str());
    name.to_string_lossy().into_owned()
}

/// The standard search path serves where we have none ourselves.
fn spawn(call: &Call<'_>) -> io::Result<Child> {
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

async fn talk(child: &mut Child, input: &str, name: &str) -> Result<(String, String), Failure> {
    let asked = "all three are pipes";
    let stdin = child.stdin.take().expect(asked);
    let stdout = child.stdout.take().expect(asked);
    let stderr = child.stderr.take().expect(asked);
    let ((), stdout, stderr) =
        tokio::try_join!(write(stdin, input), read(stdout, name), read(stderr, name))?;
    Ok((stdout, stderr))
}

/// It may end, or close its input, without reading: then how it ends says all there is to say.
async fn write(mut stdin: ChildStdin, input: &str) -> Result<(), Failure> {
    let _ = stdin.write_all(input.as_bytes()).await;
    Ok(())
}

async fn read(pipe: impl AsyncRead + Unpin, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(OUTPUT_LIMIT).expect("64 KiB") + 1;
    let read = pipe.take(limit).read_to_end(&mut bytes).await;
    read.map_err(|error| Failure::Io(name.to_owned(), error))?;
    if bytes.len() > OUTPUT_LIMIT {
        return Err(Failure::TooMuch(name.to_owned()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The process group of a child that is not reaped yet: so the number is still the child's, and no
/// other process can be hit. Killed when dropped, which is before the child is waited for.
struct Group(Pid);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let pid = id.and_then(Pid::from_raw);
        Self(pid.expect("a child that nobody has waited for has an id"))
    }

    /// Looks without reaping.
    fn leader_has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child: it has ended.
        !matches!(waitid(WaitId::Pid(self.0), look), Ok(None))
    }

    /// It fails where the whole group is gone, which is what we want.
    fn kill(&self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests;
