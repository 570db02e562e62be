//! Implements `dogwatch confirm-off --wait`: follows the host from the confirmation to the release.

use std::time::Duration;

use dogwatch_core::explain::RemediationRow;
use dogwatch_core::power::HostName;
use jiff::Timestamp;

use super::print_line;
use crate::cluster::ConnectedCluster;
use crate::command::remediations::{self, FollowEnd, follow_remediations};
use crate::exit::{CliExitCode, CommandFailure};

/// Prints each step of the remediation until its workloads are released. Steps up to `after` belong
/// to an earlier remediation.
pub async fn follow_until_release(
    connected: &ConnectedCluster,
    name: &HostName,
    timeout: Option<Duration>,
    after: Option<Timestamp>,
) -> Result<(), CommandFailure> {
    // Read once first: without the right to list a kind, a watch would retry for ever.
    remediations::read_remediations(connected).await?;
    let host = name.to_string();
    let mut told = String::new();
    let stopped = follow_remediations(connected, timeout, |rows| {
        let row = rows.iter().find(|row| row.host.as_deref() == Some(&host));
        report_row(row, name, after, &mut told)
    });
    match stopped.await? {
        FollowEnd::Ended(ended) => ended,
        FollowEnd::TimedOut => Err(timeout_failure(name, timeout.unwrap_or_default(), &told)),
        FollowEnd::Interrupted => {
            let text = format!("stopped following; the confirmation of host {name} stays");
            Err(CommandFailure::new(CliExitCode::Interrupted, text))
        }
    }
}

/// Prints what is new; returns `Some` with the result when the remediation has ended.
fn report_row(
    row: Option<&RemediationRow>,
    name: &HostName,
    after: Option<Timestamp>,
    told: &mut String,
) -> Result<Option<Result<(), CommandFailure>>, CommandFailure> {
    let Some(row) = row else {
        let text = format!("no remediation keeps host {name} off now");
        return Ok(Some(Err(CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain host/{name}")))));
    };
    let newest = format!("{}: {}: {}", row.subject, row.reason, row.message);
    if *told != newest {
        print_line(&newest)?;
        *told = newest;
    }
    // Only steps of the current attempt count.
    let newest =
        row.steps.iter().rev().take_while(|done| {
            done.step != "KeyAdded" && after.is_none_or(|after| done.at > after)
        });
    let newest: Vec<&str> = newest.map(|done| done.step).collect();
    let has = |step: &str| newest.contains(&step);
    if has("Released") {
        print_line(&format!("{}: the workloads are released", row.subject))?;
        return Ok(Some(Ok(())));
    }
    if has("KeyRemoved") || has("Withdrawn") {
        let text = format!(
            "the remediation of {} was cancelled: nothing was released",
            row.subject
        );
        return Ok(Some(Err(CommandFailure::new(CliExitCode::Failed, text))));
    }
    Ok(None)
}

fn timeout_failure(name: &HostName, timeout: Duration, told: &str) -> CommandFailure {
    let length = dogwatch_core::duration::format_duration(timeout);
    let why = if told.is_empty() {
        "Dogwatch has not reported any progress"
    } else {
        told
    };
    let text = format!(
        "nothing was released within {length}; the confirmation of host {name} stays. {why}"
    );
    CommandFailure::new(CliExitCode::Failed, crate::table::to_printable(&text))
        .with_next_step(format!("dogwatch explain host/{name}"))
}
