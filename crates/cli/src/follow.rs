//! Follows what a command asked for until it has ended.

use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_k8s::{ApiErrorKind, Error};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;

/// What `--wait` follows.
pub trait FollowedRequest {
    /// Returns at the next change. An error comes with what could not be watched.
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)>;

    /// Prints what is new. Breaks when the request is done, and fails when it can no longer be.
    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure>;

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure;

    fn interrupt_failure(&self) -> CommandFailure;
}

/// Listens for Ctrl-C, which would otherwise end the program without a message.
pub struct SignalListener(Signal);

impl SignalListener {
    pub fn listen_for_signals() -> Result<Self, CommandFailure> {
        let interrupts = signal(SignalKind::interrupt()).map_err(|error| {
            let text = format!("failed to listen for Ctrl-C: {error}");
            CommandFailure::new(CliExitCode::Failed, text)
        })?;
        Ok(Self(interrupts))
    }
}

/// Reports every change until the request has ended. A missing right ends it too; after any other
/// error the watch goes on.
pub async fn follow_until_done(
    connected: &ConnectedCluster,
    request: &mut impl FollowedRequest,
    timeout: Option<Duration>,
    mut interrupts: SignalListener,
) -> Result<(), CommandFailure> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    while request.report_change().await?.is_continue() {
        tokio::select! {
            changed = request.wait_for_change() => match changed {
                Ok(()) => {}
                Err((what, error)) if error.kind() == ApiErrorKind::Forbidden => {
                    return Err(connected.api_failure(&what, &error));
                }
                Err((_, error)) => eprintln!("dogwatch: {}; trying again", error.error_chain()),
            },
            () = sleep_until_deadline(deadline) => {
                return Err(request.timeout_failure(timeout.unwrap_or_default()));
            }
            _ = interrupts.0.recv() => return Err(request.interrupt_failure()),
        }
    }
    Ok(())
}

/// Returns at that time; never returns if `time` is `None`.
pub async fn sleep_until_deadline(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The last line that was printed about a request.
#[derive(Debug, Default)]
pub struct ProgressLine {
    key: String,
}

impl ProgressLine {
    /// Prints the line if its key is another one than that of the line before.
    pub fn print_new(&mut self, key: String, line: &str) -> Result<(), CommandFailure> {
        if self.key != key {
            print_line(line)?;
            self.key = key;
        }
        Ok(())
    }

    /// The last key, as the reason why a request has not ended.
    pub fn last_state(&self) -> &str {
        if self.key.is_empty() {
            "Dogwatch has not reported any progress"
        } else {
            &self.key
        }
    }
}
