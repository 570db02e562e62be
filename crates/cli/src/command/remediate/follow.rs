//! `dogwatch remediate --wait`: from the mark until the node is back.

use std::time::Duration;

use dogwatch_core::explain::RemedyRow;
use tokio::time::Instant;

use super::target::Target;
use crate::cluster::Connected;
use crate::command::hosts::say;
use crate::command::status::{Scope, Sight};
use crate::exit::{Exit, Failure};
use crate::wait::until;

/// Tells each step until the Node is Ready with a new boot.
pub async fn to_the_end(
    connected: &Connected,
    target: &Target,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut sight = Sight::new(connected, Scope::of_remediations());
    let mut tale = Tale::new(target);
    loop {
        tokio::select! {
            changed = sight.changed() => match changed {
                Ok(()) => {
                    let Some(status) = sight.status(connected).await else {
                        continue;
                    };
                    if let Some(ended) = tale.take(&status.remediations)? {
                        return ended;
                    }
                }
                Err((what, error)) if error.kind() == dogwatch_k8s::Kind::Forbidden => {
                    return Err(connected.failed(what, &error));
                }
                Err((_, error)) => eprintln!("dogwatch: {}; trying again", error.in_words()),
            },
            () = until(deadline) => return Err(tale.too_late(timeout.unwrap_or_default())),
            _ = tokio::signal::ctrl_c() => {
                let text = format!("not following any more; the remediation of {target} goes on");
                return Err(Failure::new(Exit::Interrupted, text));
            }
        }
    }
}

/// What has been told.
struct Tale<'a> {
    target: &'a Target,
    told: String,
    is_begun: bool,
}

impl<'a> Tale<'a> {
    fn new(target: &'a Target) -> Self {
        Self {
            target,
            told: String::new(),
            is_begun: false,
        }
    }

    /// Tells what is new; `Some`: it has ended so. One that ended before the mark is not this one.
    fn take(&mut self, rows: &[RemedyRow]) -> Result<Option<Result<(), Failure>>, Failure> {
        let subject = self.target.to_string();
        let row = rows.iter().find(|row| row.subject == subject);
        let Some(row) = row.filter(|row| row.under_way || self.is_begun) else {
            return Ok(self.is_begun.then(|| Err(self.called_off())));
        };
        self.is_begun = true;
        let newest = format!("{subject}: {}: {}", row.reason, row.message);
        if self.told != newest {
            say(&newest)?;
            self.told = newest;
        }
        if row.under_way {
            return Ok(None);
        }
        let is_back = row.steps.iter().any(|step| step.step == "NodeReady");
        if is_back {
            say(&format!("{subject}: the Node is Ready with a new boot"))?;
            return Ok(Some(Ok(())));
        }
        Ok(Some(Err(self.called_off())))
    }

    fn called_off(&self) -> Failure {
        let text = format!("the remediation of {} was called off", self.target);
        Failure::new(Exit::Failed, text).next(format!("dogwatch explain {}", self.target))
    }

    fn too_late(&self, timeout: Duration) -> Failure {
        let length = dogwatch_core::duration::format(timeout);
        let why = if self.told.is_empty() {
            "nothing was seen of it"
        } else {
            &self.told
        };
        let text = format!(
            "{} is not back within {length}; its remediation goes on. {why}",
            self.target
        );
        Failure::new(Exit::Failed, crate::table::printable(&text))
            .next(format!("dogwatch explain {}", self.target))
    }
}
