//! The sentinel command: a program that knows whether the host wants a reboot. Source:
//! specification §2.1.
//!
//! Exit 0 is "needed", 1 is "not needed"; everything else, a timeout and a command that cannot be
//! started are `Unknown`. After a timeout it is killed with everything that it started in its process group.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use dogwatch_core::duration;
use dogwatch_core::reboot::{Fingerprint, TriggerSeen, TriggerState};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::{child, namespaces, text};

/// What to run, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentinelCommand {
    /// The program and its arguments; not empty.
    pub argv: Vec<String>,
    /// From start to start. A run that takes longer delays the next.
    pub interval: Duration,
    /// How long one run may take.
    pub timeout: Duration,
    /// `--host-root`: `/` runs it here, anything else in PID 1's namespaces.
    pub host_root: PathBuf,
}

/// The source of its trigger.
pub const SOURCE: &str = "command";

impl SentinelCommand {
    /// Runs it now and then every interval, until every receiver is gone. `None` until the first
    /// run has ended: nothing is known before.
    pub fn watch(self) -> watch::Receiver<Option<TriggerSeen>> {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            tokio::select! {
                () = sender.closed() => {}
                () = self.follow(&sender) => {}
            }
        });
        receiver
    }

    /// Runs it once.
    pub async fn run(&self) -> TriggerSeen {
        let state = match self.spawn() {
            Ok(child) => self.judge(child).await,
            Err(why) => unknown(&why),
        };
        TriggerSeen {
            source: SOURCE.to_owned(),
            state,
        }
    }

    async fn follow(&self, sender: &watch::Sender<Option<TriggerSeen>>) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let seen = Some(self.run().await);
            sender.send_if_modified(|held| {
                let changed = *held != seen;
                *held = seen;
                changed
            });
        }
    }

    fn spawn(&self) -> Result<Child, String> {
        let argv = namespaces::on_host(&self.host_root, &self.argv)
            .map_err(|error| format!("cannot start: {error}"))?;
        child::command(&argv)
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

    async fn judge(&self, mut child: Child) -> TriggerState {
        let group = child::Group::of(&child);
        let ended = tokio::time::timeout(self.timeout, finish(&mut child)).await;
        match ended {
            Ok(Ok((status, output, errors))) => {
                group.leave();
                verdict(status, &output, &errors)
            }
            Ok(Err(error)) => unknown(&format!("was lost: {error}")),
            Err(_) => unknown(&format!(
                "took longer than {} and was killed: make it faster, or raise --sentinel-timeout",
                duration::format(self.timeout)
            )),
        }
    }
}

/// The end of the process and of its output, whichever comes last.
async fn finish(child: &mut Child) -> io::Result<(ExitStatus, Digest, Digest)> {
    let output = child.stdout.take().expect("stdout is piped");
    let errors = child.stderr.take().expect("stderr is piped");
    tokio::try_join!(child.wait(), digest(output), digest(errors))
}

fn verdict(status: ExitStatus, output: &Digest, errors: &Digest) -> TriggerState {
    match status.code() {
        Some(0) => TriggerState::Present {
            fingerprint: Fingerprint(format!("output {:016x}", output.hash)),
            reason: text::reason(&output.head),
        },
        Some(1) if namespaces::never_begun(Some(1), &text::reason(&errors.head)) => {
            unknown(&format!("cannot start: {}", text::reason(&errors.head)))
        }
        Some(1) => TriggerState::Absent,
        Some(_) | None => {
            let said = text::reason(&errors.head);
            let said = if said.is_empty() {
                "it said nothing"
            } else {
                &said
            };
            unknown(&format!(
                "ended with {status}, which is neither 0 (needed) nor 1 (not needed): {said}"
            ))
        }
    }
}

fn unknown(why: &str) -> TriggerState {
    TriggerState::Unknown {
        why: format!("the sentinel command {why}"),
    }
}

/// A stream's beginning, and the hash of all of it.
struct Digest {
    head: Vec<u8>,
    hash: u64,
}

async fn digest(mut stream: impl AsyncRead + Unpin) -> io::Result<Digest> {
    let mut digest = Digest {
        head: Vec::new(),
        hash: FNV_OFFSET,
    };
    let mut buffer = [0; 1024];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(digest);
        }
        digest.add(&buffer[..length]);
    }
}

/// FNV-1a, 64 bits: written on the cluster, so it must stay the same in every later version, and
/// nobody gains by a collision.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
        // One more than is shown, so that a cut is known as one.
        let room = (text::REASON_BYTES + 1).saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests;
