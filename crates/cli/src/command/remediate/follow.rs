//! Implements `dogwatch remediate --wait`: follows the remediation from the mark until the node is
//! back.

use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_k8s::Error;

use crate::cluster::ConnectedCluster;
use crate::command::remediations::WatchedRemediations;
use crate::exit::{CliExitCode, CommandFailure};
use crate::follow::{FollowedRequest, ProgressLine, SignalListener, follow_until_done};
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

/// Prints each step of the remediation of this subject until the Node is Ready with a new boot.
/// `has_begun`: it was under way before; otherwise one that ended before the mark is ignored.
pub async fn follow_until_ready(
    connected: &ConnectedCluster,
    subject: String,
    has_begun: bool,
    timeout: Option<Duration>,
) -> Result<(), CommandFailure> {
    let mut remediation = FollowedRemediation {
        remediations: WatchedRemediations::new(connected),
        subject,
        progress: ProgressLine::default(),
        has_begun,
    };
    follow_until_done(
        connected,
        &mut remediation,
        timeout,
        SignalListener::listen_for_signals()?,
    )
    .await
}

struct FollowedRemediation<'a> {
    remediations: WatchedRemediations<'a>,
    subject: String,
    progress: ProgressLine,
    has_begun: bool,
}

impl FollowedRequest for FollowedRemediation<'_> {
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        self.remediations.wait_for_change().await
    }

    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure> {
        let Some(rows) = self.remediations.current_rows().await else {
            return Ok(ControlFlow::Continue(()));
        };
        let subject = &self.subject;
        let row = rows.iter().find(|row| row.subject == *subject);
        let Some(row) = row.filter(|row| row.under_way || self.has_begun) else {
            if self.has_begun {
                return Err(self.called_off_failure());
            }
            return Ok(ControlFlow::Continue(()));
        };
        self.has_begun = true;
        let state = format!("{subject}: {}: {}", row.reason, row.message);
        self.progress.print_new(state.clone(), &state)?;
        if row.under_way {
            return Ok(ControlFlow::Continue(()));
        }
        if row.steps.iter().any(|step| step.step == "NodeReady") {
            print_line(&format!("{subject}: the Node is Ready with a new boot"))?;
            return Ok(ControlFlow::Break(()));
        }
        if row.steps.iter().any(|step| step.step == "Failed") {
            return Err(self.ended_failure("has failed"));
        }
        Err(self.called_off_failure())
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let (subject, why) = (&self.subject, self.progress.last_state());
        let length = dogwatch_core::duration::format_duration(timeout);
        let text = format!(
            "{subject} is not back in service within {length}; its remediation continues. {why}"
        );
        CommandFailure::new(CliExitCode::Failed, printable_text(&text))
            .with_next_step(format!("dogwatch explain {subject}"))
    }

    fn interrupt_failure(&self) -> CommandFailure {
        let text = format!(
            "stopped following; the remediation of {} continues",
            self.subject
        );
        CommandFailure::new(CliExitCode::Interrupted, text)
    }
}

impl FollowedRemediation<'_> {
    fn called_off_failure(&self) -> CommandFailure {
        self.ended_failure("was cancelled")
    }

    fn ended_failure(&self, how: &str) -> CommandFailure {
        let text = format!("the remediation of {} {how}", self.subject);
        CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain {}", self.subject))
    }
}
