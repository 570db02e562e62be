//! Follows remediations from step to step.

use std::time::Duration;

use dogwatch_core::explain::RemediationRow;
use tokio::time::Instant;

use crate::cluster::ConnectedCluster;
use crate::command::status::{StatusScope, WatchedStatus};
use crate::exit::CommandFailure;
use crate::wait::sleep_until_deadline;

pub enum FollowEnd {
    /// The last step was observed, with this result.
    Ended(Result<(), CommandFailure>),
    TimedOut,
    Interrupted,
}

/// Passes all remediations to `take` at each change, until it returns the end of the followed one.
pub async fn follow_remediations(
    connected: &ConnectedCluster,
    timeout: Option<Duration>,
    mut take: impl FnMut(
        &[RemediationRow],
    ) -> Result<Option<Result<(), CommandFailure>>, CommandFailure>,
) -> Result<FollowEnd, CommandFailure> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut sight = WatchedStatus::new(connected, StatusScope::all_remediations());
    loop {
        tokio::select! {
            changed = sight.wait_for_change() => match changed {
                Ok(()) => {
                    let Some(status) = sight.current_status(connected).await else {
                        continue;
                    };
                    if let Some(ended) = take(&status.remediations)? {
                        return Ok(FollowEnd::Ended(ended));
                    }
                }
                Err((what, error)) if error.kind() == dogwatch_k8s::ApiErrorKind::Forbidden => {
                    return Err(connected.api_failure(what, &error));
                }
                Err((_, error)) => eprintln!("dogwatch: {}; trying again", error.error_chain()),
            },
            () = sleep_until_deadline(deadline) => return Ok(FollowEnd::TimedOut),
            _ = tokio::signal::ctrl_c() => return Ok(FollowEnd::Interrupted),
        }
    }
}
