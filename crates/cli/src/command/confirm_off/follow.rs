//! Implements `dogwatch confirm-off --wait`: follows the host from the confirmation to the release.

use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_core::explain::RemediationRow;
use dogwatch_core::power::HostName;
use dogwatch_k8s::Error;
use jiff::Timestamp;

use crate::cluster::ConnectedCluster;
use crate::command::remediations::{WatchedRemediations, read_remediations};
use crate::exit::{CliExitCode, CommandFailure};
use crate::follow::{FollowedRequest, ProgressLine, SignalListener, follow_until_done};
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

/// Prints each step of the remediation until its workloads are released. Steps up to `after` belong
/// to an earlier remediation.
pub async fn follow_until_release(
    connected: &ConnectedCluster,
    name: &HostName,
    timeout: Option<Duration>,
    after: Option<Timestamp>,
) -> Result<(), CommandFailure> {
    // Read once first: without the right to list a kind, a watch would retry for ever.
    read_remediations(connected).await?;
    let mut release = FollowedRelease {
        remediations: WatchedRemediations::new(connected),
        name,
        after,
        progress: ProgressLine::default(),
    };
    follow_until_done(
        connected,
        &mut release,
        timeout,
        SignalListener::listen_for_signals()?,
    )
    .await
}

struct FollowedRelease<'a> {
    remediations: WatchedRemediations<'a>,
    name: &'a HostName,
    after: Option<Timestamp>,
    progress: ProgressLine,
}

impl FollowedRequest for FollowedRelease<'_> {
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        self.remediations.wait_for_change().await
    }

    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure> {
        let Some(rows) = self.remediations.current_rows().await else {
            return Ok(ControlFlow::Continue(()));
        };
        let host = self.name.to_string();
        if let Some(row) = rows.iter().find(|row| row.host.as_ref() == Some(&host)) {
            return self.report_row(row);
        }
        let text = format!("no remediation keeps host {host} off now");
        Err(CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain host/{host}")))
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let (name, why) = (self.name, self.progress.last_state());
        let length = dogwatch_core::duration::format_duration(timeout);
        let text = format!(
            "nothing was released within {length}; the confirmation of host {name} stays. {why}"
        );
        CommandFailure::new(CliExitCode::Failed, printable_text(&text))
            .with_next_step(format!("dogwatch explain host/{name}"))
    }

    fn interrupt_failure(&self) -> CommandFailure {
        let name = self.name;
        let text = format!("stopped following; the confirmation of host {name} stays");
        CommandFailure::new(CliExitCode::Interrupted, text)
    }
}

impl FollowedRelease<'_> {
    fn report_row(&mut self, row: &RemediationRow) -> Result<ControlFlow<()>, CommandFailure> {
        let state = format!("{}: {}: {}", row.subject, row.reason, row.message);
        self.progress.print_new(state.clone(), &state)?;
        // Only steps of the current attempt count.
        let newest = row.steps.iter().rev().take_while(|done| {
            done.step != "KeyAdded" && self.after.is_none_or(|after| done.at > after)
        });
        let newest: Vec<&str> = newest.map(|done| done.step).collect();
        let has = |step: &str| newest.contains(&step);
        if has("Released") {
            print_line(&format!("{}: the workloads are released", row.subject))?;
            return Ok(ControlFlow::Break(()));
        }
        if has("KeyRemoved") || has("Withdrawn") {
            let text = format!(
                "the remediation of {} was cancelled: nothing was released",
                row.subject
            );
            return Err(CommandFailure::new(CliExitCode::Failed, text));
        }
        Ok(ControlFlow::Continue(()))
    }
}
