//! Implements `dogwatch power … --wait`: follows the host until it has the requested power.

use std::time::Duration;

use dogwatch_core::explain::{POWER_AS_WANTED, host_condition};
use dogwatch_core::power::{HostSnapshot, PowerState};
use tokio::time::Instant;

use super::decide::{held_by_text, obeyed_keys};
use super::outcome::{PowerRequestOutcome, is_older_host, request_outcome};
use super::print_line;
use super::request::PowerOperation;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::table::to_printable;
use crate::wait::sleep_until_deadline;

/// Prints each step of the host, until the request is done or can no longer be.
pub async fn follow_to_outcome(
    connected: &ConnectedCluster,
    before: &HostSnapshot,
    asked: &HostSnapshot,
    wish: &PowerOperation,
    timeout: Option<Duration>,
) -> Result<(), CommandFailure> {
    let name = &asked.name;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut watch = connected
        .fleet
        .watch_hosts(Some(&name.namespace), Some(&name.name));
    let mut tale = PowerProgress::new(before, asked, wish);
    loop {
        tokio::select! {
            changed = watch.wait_for_change() => match changed {
                Ok(()) => {
                    let seen = watch.current_hosts().map(|hosts| hosts.get(name));
                    if let Some(host) = seen
                        && let Some(ended) = tale.observe_host(host)?
                    {
                        return ended;
                    }
                }
                Err(error) if error.kind() == dogwatch_k8s::ApiErrorKind::Forbidden => {
                    return Err(connected.api_failure("watch BareMetalHosts", &error));
                }
                Err(error) => eprintln!("dogwatch: {}; trying again", error.error_chain()),
            },
            () = sleep_until_deadline(deadline) => return Err(tale.timeout_failure(timeout.unwrap_or_default())),
            _ = tokio::signal::ctrl_c() => {
                let text = format!("stopped following; the request stays on host {name}");
                return Err(CommandFailure::new(CliExitCode::Interrupted, text));
            }
        }
    }
}

struct PowerProgress<'a> {
    before: &'a HostSnapshot,
    asked: &'a HostSnapshot,
    wish: &'a PowerOperation,
    last_reported: String,
    why: Option<String>,
}

impl<'a> PowerProgress<'a> {
    fn new(before: &'a HostSnapshot, asked: &'a HostSnapshot, wish: &'a PowerOperation) -> Self {
        Self {
            before,
            asked,
            wish,
            last_reported: String::new(),
            why: None,
        }
    }

    /// Prints what is new; returns `Some` with the result when the request has ended.
    fn observe_host(
        &mut self,
        host: Option<&HostSnapshot>,
    ) -> Result<Option<Result<(), CommandFailure>>, CommandFailure> {
        let name = &self.asked.name;
        let Some(host) = host.filter(|host| host.uid == self.asked.uid) else {
            let text = format!("host {name} was deleted");
            return Ok(Some(Err(CommandFailure::new(CliExitCode::NotFound, text))));
        };
        if is_older_host(host, self.asked) {
            return Ok(None);
        }
        match request_outcome(self.wish, self.before, self.asked, host) {
            Some(PowerRequestOutcome::Reached(text)) => {
                print_line(&format!("host/{name} {text}"))?;
                Ok(Some(Ok(())))
            }
            Some(PowerRequestOutcome::NotReached(text)) => {
                let failure =
                    CommandFailure::new(CliExitCode::Failed, format!("host {name} {text}"));
                Ok(Some(Err(
                    failure.with_next_step(format!("dogwatch explain host/{name}"))
                )))
            }
            None => {
                self.report_state(host)?;
                Ok(None)
            }
        }
    }

    /// Prints each state and each reason once: the message counts seconds.
    fn report_state(&mut self, host: &HostSnapshot) -> Result<(), CommandFailure> {
        let state = host
            .status
            .power
            .state
            .map_or("power not read yet", PowerState::as_str);
        let said = host_condition(host, POWER_AS_WANTED);
        let reason = said.map(|said| said.reason.as_str());
        let short = format!(
            "{state} {}{}",
            reason.unwrap_or_default(),
            held_by_text(&obeyed_keys(host))
        );
        let text = match said {
            Some(said) => format!("{state}: {}: {}", said.reason, said.message),
            None => format!("{state}{}", held_by_text(&obeyed_keys(host))),
        };
        self.why = Some(text.clone());
        if self.last_reported != short {
            print_line(&format!("host/{} {text}", host.name))?;
            self.last_reported = short;
        }
        Ok(())
    }

    fn timeout_failure(&self, timeout: Duration) -> CommandFailure {
        let name = &self.asked.name;
        let length = dogwatch_core::duration::format_duration(timeout);
        let why = self
            .why
            .as_deref()
            .unwrap_or("Dogwatch has not reported any progress");
        let text = format!(
            "host {name} did not reach the requested state within {length}; the request stays. {}",
            to_printable(why)
        );
        CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain host/{name}"))
    }
}
