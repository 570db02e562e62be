//! Runs the sentinel command: a program that tells whether the host needs a reboot. Source:
//! specification §2.1.
//!
//! Exit code 0 is "needed", 1 is "not needed"; any other code, a timeout and a failed start are
//! `Unknown`. After a timeout the command is killed with its whole process group.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::reboot::{ObservedTrigger, TriggerFingerprint, TriggerState};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::{child, namespaces, text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelCommand {
    /// The program and its arguments; not empty.
    pub argv: Vec<String>,
    /// From start to start. A run that takes longer delays the next.
    pub interval: Duration,
    pub timeout: Duration,
    /// `--host-root`: with `/` the command runs here, otherwise in PID 1's namespaces.
    pub host_root: PathBuf,
}

pub const TRIGGER_SOURCE: &str = "command";

impl SentinelCommand {
    /// Runs the command every interval until every receiver is dropped. `None` until the first run
    /// has ended.
    pub fn watch_trigger(self) -> watch::Receiver<Option<ObservedTrigger>> {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = sender.closed() => {}
                () = self.run_periodically(&sender) => {}
            }
        });
        receiver
    }

    pub async fn run_once(&self) -> ObservedTrigger {
        let state = match self.spawn_child() {
            Ok(child) => self.wait_for_verdict(child).await,
            Err(why) => unknown_state(&why),
        };
        ObservedTrigger {
            source: TRIGGER_SOURCE.to_owned(),
            state,
        }
    }

    async fn run_periodically(&self, sender: &watch::Sender<Option<ObservedTrigger>>) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let seen = Some(self.run_once().await);
            sender.send_if_modified(|held| {
                let changed = *held != seen;
                *held = seen;
                changed
            });
        }
    }

    fn spawn_child(&self) -> Result<Child, String> {
        let argv = namespaces::host_command_argv(&self.host_root, &self.argv)
            .map_err(|error| format!("cannot start: {error}"))?;
        child::build_command(&argv)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                format!(
                    "cannot start {:?}: {error}: correct --sentinel-command",
                    argv[0]
                )
            })
    }

    async fn wait_for_verdict(&self, mut child: Child) -> TriggerState {
        let group = child::ProcessGroupKiller::of_child(&child);
        let ended = tokio::time::timeout(self.timeout, collect_output(&mut child)).await;
        match ended {
            Ok(Ok((status, output, errors))) => {
                group.leave_running();
                classify_exit(status, &output, &errors)
            }
            Ok(Err(error)) => unknown_state(&format!("its result is unknown: {error}")),
            Err(_) => unknown_state(&format!(
                "took longer than {} and was killed: make it faster, or raise --sentinel-timeout",
                duration::format_duration(self.timeout)
            )),
        }
    }
}

/// Waits until the process has ended and its output is closed.
async fn collect_output(child: &mut Child) -> io::Result<(ExitStatus, OutputDigest, OutputDigest)> {
    let output = child.stdout.take().expect("stdout is piped");
    let errors = child.stderr.take().expect("stderr is piped");
    tokio::try_join!(child.wait(), digest_stream(output), digest_stream(errors))
}

fn classify_exit(status: ExitStatus, output: &OutputDigest, errors: &OutputDigest) -> TriggerState {
    match status.code() {
        Some(0) => TriggerState::Present {
            fingerprint: TriggerFingerprint(format!("output {:016x}", output.hash)),
            reason: text::one_line_reason(&output.head),
        },
        Some(1)
            if namespaces::is_nsenter_failure(Some(1), &text::one_line_reason(&errors.head)) =>
        {
            unknown_state(&format!(
                "cannot start: {}",
                text::one_line_reason(&errors.head)
            ))
        }
        Some(1) => TriggerState::Absent,
        Some(_) | None => {
            let said = text::one_line_reason(&errors.head);
            let said = if said.is_empty() {
                "it printed nothing"
            } else {
                &said
            };
            unknown_state(&format!(
                "ended with {status}, which is neither 0 (needed) nor 1 (not needed): {said}"
            ))
        }
    }
}

fn unknown_state(why: &str) -> TriggerState {
    TriggerState::Unknown {
        why: format!("the sentinel command {why}"),
    }
}

/// The first bytes of a stream, and the hash of all of it.
struct OutputDigest {
    head: Vec<u8>,
    hash: u64,
}

async fn digest_stream(mut stream: impl AsyncRead + Unpin) -> io::Result<OutputDigest> {
    let mut digest = OutputDigest {
        head: Vec::new(),
        hash: FNV_OFFSET,
    };
    let mut buffer = [0; 1024];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(digest);
        }
        digest.add_bytes(&buffer[..length]);
    }
}

/// FNV-1a, 64 bits: the hash is written on the cluster, so it must stay the same in every later
/// version, and nobody gains by a collision.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl OutputDigest {
    fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
        // One byte more than is shown, so that a cut can be recognised.
        let room = (text::REASON_BYTES + 1).saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests;
