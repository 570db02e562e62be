//! Implements `dogwatch power … --wait`: follows the host until it has the requested power.

use std::ops::ControlFlow;
use std::time::Duration;

use dogwatch_core::explain::{POWER_AS_WANTED, host_condition};
use dogwatch_core::power::{HostSnapshot, PowerState};
use dogwatch_k8s::Error;
use dogwatch_k8s::fleet::FleetHostsWatch;

use super::decide::{held_by_text, obeyed_keys};
use super::outcome::{PowerRequestOutcome, is_older_host, request_outcome};
use super::request::PowerOperation;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::follow::{FollowedRequest, ProgressLine, SignalListener, follow_until_done};
use crate::output::print_line;
use dogwatch_core::printable::printable_text;

/// Prints each step of the host, until the request is done or can no longer be.
pub async fn follow_to_outcome(
    connected: &ConnectedCluster,
    before: &HostSnapshot,
    asked: &HostSnapshot,
    wish: &PowerOperation,
    timeout: Option<Duration>,
) -> Result<(), CommandFailure> {
    let name = &asked.name;
    let mut request = FollowedPowerRequest {
        watch: connected
            .fleet
            .watch_hosts(Some(&name.namespace), Some(&name.name)),
        before,
        asked,
        wish,
        progress: ProgressLine::default(),
        why: None,
    };
    follow_until_done(
        connected,
        &mut request,
        timeout,
        SignalListener::listen_for_signals()?,
    )
    .await
}

struct FollowedPowerRequest<'a> {
    watch: FleetHostsWatch,
    before: &'a HostSnapshot,
    asked: &'a HostSnapshot,
    wish: &'a PowerOperation,
    progress: ProgressLine,
    why: Option<String>,
}

impl FollowedRequest for FollowedPowerRequest<'_> {
    async fn wait_for_change(&mut self) -> Result<(), (String, Error)> {
        let changed = self.watch.wait_for_change().await;
        changed.map_err(|error| ("watch BareMetalHosts".to_owned(), error))
    }

    async fn report_change(&mut self) -> Result<ControlFlow<()>, CommandFailure> {
        let name = &self.asked.name;
        let Some(hosts) = self.watch.current_hosts() else {
            return Ok(ControlFlow::Continue(()));
        };
        let host = hosts.get(name).filter(|host| host.uid == self.asked.uid);
        let Some(host) = host.cloned() else {
            let text = format!("host {name} was deleted");
            return Err(CommandFailure::new(CliExitCode::NotFound, text));
        };
        if is_older_host(&host, self.asked) {
            return Ok(ControlFlow::Continue(()));
        }
        match request_outcome(self.wish, self.before, self.asked, &host) {
            Some(PowerRequestOutcome::Reached(text)) => {
                print_line(&format!("host/{name} {text}"))?;
                Ok(ControlFlow::Break(()))
            }
            Some(PowerRequestOutcome::NotReached(text)) => {
                let text = format!("host {name} {text}");
                Err(CommandFailure::new(CliExitCode::Failed, text)
                    .with_next_step(format!("dogwatch explain host/{name}")))
            }
            None => {
                self.report_state(&host)?;
                Ok(ControlFlow::Continue(()))
            }
        }
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
            printable_text(why)
        );
        CommandFailure::new(CliExitCode::Failed, text)
            .with_next_step(format!("dogwatch explain host/{name}"))
    }

    fn interrupt_failure(&self) -> CommandFailure {
        let name = &self.asked.name;
        let text = format!("stopped following; the request stays on host {name}");
        CommandFailure::new(CliExitCode::Interrupted, text)
    }
}

impl FollowedPowerRequest<'_> {
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
        let line = format!("host/{} {text}", host.name);
        self.progress.print_new(short, &line)
    }
}
