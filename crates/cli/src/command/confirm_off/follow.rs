//! `dogwatch confirm-off --wait`: from the word to the release.

use std::time::Duration;

use dogwatch_core::explain::RemedyRow;
use dogwatch_core::power::HostName;
use jiff::Timestamp;
use tokio::time::Instant;

use super::say;
use crate::cluster::Connected;
use crate::command::remedies;
use crate::command::status::{Scope, Sight};
use crate::exit::{Exit, Failure};
use crate::wait::until;

/// Tells each step of what the host is held off for, until its workloads are released. Steps up to `after` are of
/// an earlier remediation.
pub async fn to_the_release(
    connected: &Connected,
    name: &HostName,
    timeout: Option<Duration>,
    after: Option<Timestamp>,
) -> Result<(), Failure> {
    // A watch would go on trying where a kind may not be read.
    remedies::look(connected).await?;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut sight = Sight::new(connected, Scope::of_remediations());
    let mut told = String::new();
    loop {
        tokio::select! {
            changed = sight.changed() => match changed {
                Ok(()) => {
                    let Some(status) = sight.status(connected).await else {
                        continue;
                    };
                    let host = name.to_string();
                    let mut rows = status.remediations.iter();
                    let row = rows.find(|row| row.host.as_deref() == Some(&host));
                    if let Some(ended) = take(row, name, after, &mut told)? {
                        return ended;
                    }
                }
                Err((what, error)) if error.kind() == dogwatch_k8s::Kind::Forbidden => {
                    return Err(connected.failed(what, &error));
                }
                Err((_, error)) => eprintln!("dogwatch: {}; trying again", error.in_words()),
            },
            () = until(deadline) => return Err(too_late(name, timeout.unwrap_or_default(), &told)),
            _ = tokio::signal::ctrl_c() => {
                let text = format!("not following any more; what was said of host {name} stays");
                return Err(Failure::new(Exit::Interrupted, text));
            }
        }
    }
}

/// Tells what is new; `Some`: it has ended so.
fn take(
    row: Option<&RemedyRow>,
    name: &HostName,
    after: Option<Timestamp>,
    told: &mut String,
) -> Result<Option<Result<(), Failure>>, Failure> {
    let Some(row) = row else {
        let text = format!("no remediation holds host {name} off any more");
        return Ok(Some(Err(
            Failure::new(Exit::Failed, text).next(format!("dogwatch explain host/{name}"))
        )));
    };
    let newest = format!("{}: {}: {}", row.subject, row.reason, row.message);
    if *told != newest {
        say(&newest)?;
        *told = newest;
    }
    // Of the attempt under way.
    let newest =
        row.steps.iter().rev().take_while(|done| {
            done.step != "KeyAdded" && after.is_none_or(|after| done.at > after)
        });
    let newest: Vec<&str> = newest.map(|done| done.step).collect();
    let has = |step: &str| newest.contains(&step);
    if has("Released") {
        say(&format!("{}: the workloads are released", row.subject))?;
        return Ok(Some(Ok(())));
    }
    if has("KeyRemoved") || has("Withdrawn") {
        let text = format!("{} was called off: nothing was released", row.subject);
        return Ok(Some(Err(Failure::new(Exit::Failed, text))));
    }
    Ok(None)
}

fn too_late(name: &HostName, timeout: Duration, told: &str) -> Failure {
    let length = dogwatch_core::duration::format(timeout);
    let why = if told.is_empty() {
        "nothing was seen of it"
    } else {
        told
    };
    let text =
        format!("nothing was released within {length}; what was said of host {name} stays. {why}");
    Failure::new(Exit::Failed, crate::table::printable(&text))
        .next(format!("dogwatch explain host/{name}"))
}
