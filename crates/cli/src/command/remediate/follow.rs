//! Implements `dogwatch remediate --wait`: follows the remediation from the mark until the node is
//! back.

use std::time::Duration;

use dogwatch_core::explain::RemediationRow;

use super::target::MarkTarget;
use crate::cluster::ConnectedCluster;
use crate::command::hosts::print_line;
use crate::command::remediations::{FollowEnd, follow_remediations};
use crate::exit::{CliExitCode, CommandFailure};

/// Prints each step until the Node is Ready with a new boot.
pub async fn follow_until_ready(
    connected: &ConnectedCluster,
    target: &MarkTarget,
    timeout: Option<Duration>,
) -> Result<(), CommandFailure> {
    let mut tale = RemediationProgress::new(target);
    match follow_remediations(connected, timeout, |rows| tale.observe_rows(rows)).await? {
        FollowEnd::Ended(ended) => ended,
        FollowEnd::TimedOut => Err(tale.timeout_failure(timeout.unwrap_or_default())),
        FollowEnd::Interrupted => {
            let text = format!("stopped following; the remediation of {target} continues");
            Err(CommandFailure::new(CliExitCode::Interrupted, text))
        }
    }
}

struct RemediationProgress<'a> {
    target: &'a MarkTarget,
    last_reported: String,
    has_begun: bool,
}

impl<'a> RemediationProgress<'a> {
    fn new(target: &'a MarkTarget) -> Self {
        Self {
            target,
            last_reported: String::new(),
            has_begun: false,
        }
    }

    /// Prints what is new; returns `Some` with the result when the remediation has ended. A
    /// remediation that ended before the mark is ignored.
    fn observe_rows(
        &mut self,
        rows: &[RemediationRow],
    ) -> Result<Option<Result<(), CommandFailure>>, CommandFailure> {
        let subject = self.target.to_string();
        let row = rows.iter().find(|row| row.subject == subject);
        let Some(row) = row.filter(|row| row.under_way || self.has_begun) else {
            return Ok(self.has_begun.then(|| Err(self.called_off_failure())));
        };
        self.has_begun = true;
        let newest = format!("{subject}: {}: {}", row.reason, row.message);
        if self.last_reported != newest {
            print_line(&newest)?;
            self.last_reported = newest;
        }
        if row.under_way {
            return Ok(None);
        }
        let is_back = row.steps.iter().any(|step| step.step == "NodeReady");
        if is_back {
            print_line(&format!("{subject}: the Node is Ready with a new boot"))?;
            return Ok(Some(Ok(())));
        }
        Ok(Some(Err(self.called_off_failure())))
    }

    fn called_off_failure(&self) -> CommandFailure {
        let text = format!("the remediation of {} was cancelled", self.target);
        CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain {}", self.target))
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let length = dogwatch_core::duration::format_duration(timeout);
        let why = if self.last_reported.is_empty() {
            "Dogwatch has not reported any progress"
        } else {
            &self.last_reported
        };
        let text = format!(
            "{} is not back in service within {length}; its remediation continues. {why}",
            self.target
        );
        CommandFailure::new(CliExitCode::Failed, crate::table::to_printable(&text))
            .with_next_step(format!("dogwatch explain {}", self.target))
    }
}
