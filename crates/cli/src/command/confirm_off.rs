//! Implements `dogwatch confirm-off`: a person confirms that a host is off when its BMC cannot.

mod eligibility;
mod follow;
mod host_summary;

use std::time::Duration;

use dogwatch_core::power::{CONFIRMED_OFF_ANNOTATION, HostName, HostSnapshot, OffConfirmation};
use dogwatch_core::remediation::{KeyOwner, Remediation, record_on_host, remediation_to_confirm};
use dogwatch_k8s::fleet::{HostChange, HostChangeOutcome};

use super::hosts::{self, HostUnchanged};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
use crate::person;
use crate::resource::{ObjectArg, ObjectKind, kind_missing, parse_host};
use dogwatch_core::printable::printable_text;
use eligibility::{check_confirmable, is_held_off};

#[derive(Debug, clap::Args)]
pub struct ConfirmOffArgs {
    /// Host to confirm: NAMESPACE/NAME, or NAME with -n NAMESPACE
    #[arg(value_name = "NAMESPACE/NAME", value_parser = parse_host)]
    host: ObjectArg,

    /// How you made sure that the host is off; it is stored on the host with your name
    #[arg(long, value_name = "TEXT", value_parser = parse_reason)]
    reason: String,

    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,

    /// Wait until the workloads are released, and print each step
    #[arg(long)]
    wait: bool,

    /// Stop waiting after this time; the confirmation stays
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = dogwatch_core::duration::parse_duration)]
    timeout: Option<Duration>,
}

fn parse_reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("state how you made sure that the host is off".into());
    }
    Ok(text.to_owned())
}

/// Prints the host's state, asks for confirmation and writes it.
pub async fn run(cluster: &ClusterArgs, args: &ConfirmOffArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let name = args.host.resolve_name(cluster, &connected, HostName::new);
    let host = hosts::read_host(&connected, &name).await?;
    let cases = host_summary::linked_remediations(&connected, &host).await?;
    let (key, shown) = match find_missing_key(&host, &cases) {
        Ok(keyed) => keyed,
        Err(text) => {
            let text = format!("has no key of a remediation, and {text}");
            let next = "dogwatch status remediations".to_owned();
            return Err(refusal_failure(&name, &text, next));
        }
    };
    match check_confirmable(&shown, &shown) {
        Ok(()) => {
            let wish = OffConfirmationRequest {
                key,
                shown,
                remediations: cases,
            };
            confirm_host_off(&connected, &wish, args).await?;
        }
        Err(HostUnchanged::AlreadySet(text)) => print_line(&format!("host/{name} {text}"))?,
        Err(HostUnchanged::Refused { text, next }) => {
            return Err(refusal_failure(&name, &text, next));
        }
    }
    if args.wait {
        let after = record_on_host(&host).and_then(|record| Some(record.steps.last()?.at));
        let after = after.filter(|_| !is_held_off(&host));
        return follow::follow_until_release(&connected, &name, args.timeout, after).await;
    }
    Ok(())
}

struct OffConfirmationRequest {
    /// The key to write together with the confirmation; `None` when the host already carries a key.
    key: Option<KeyOwner>,
    /// The host as the person saw it, including that key.
    shown: HostSnapshot,
    /// The remediations that are linked to the host.
    remediations: Vec<Remediation>,
}

/// The remediator puts no key on a host whose power it cannot read, so the person who knows that
/// the host is off adds it.
fn find_missing_key(
    host: &HostSnapshot,
    cases: &[Remediation],
) -> Result<(Option<KeyOwner>, HostSnapshot), String> {
    if is_held_off(host) {
        return Ok((None, host.clone()));
    }
    let key = remediation_to_confirm(cases, host)?.key.clone();
    let shown = key.with_key_on(host);
    Ok((Some(key), shown))
}

impl OffConfirmationRequest {
    /// Key and confirmation are useless alone, so one patch writes both.
    fn build_host_change(
        &self,
        there: &HostSnapshot,
        by: &str,
        reason: &str,
    ) -> Result<HostChange, HostUnchanged> {
        let there = match &self.key {
            Some(key) => key.with_key_on(there),
            None => there.clone(),
        };
        check_confirmable(&there, &self.shown)?;
        let word = OffConfirmation::for_host(&there, by, current_time().wall, reason);
        let word = (CONFIRMED_OFF_ANNOTATION.to_owned(), word.annotation_value());
        let key = self
            .key
            .as_ref()
            .map(|key| (key.annotation_name(), key.annotation_value()));
        Ok(HostChange::AnnotateAll(
            key.into_iter().chain([word]).collect(),
        ))
    }
}

async fn confirm_host_off(
    connected: &ConnectedCluster,
    wish: &OffConfirmationRequest,
    args: &ConfirmOffArgs,
) -> Result<(), CommandFailure> {
    let name = &wish.shown.name;
    let by = require_confirming_user(connected, name, wish.key.is_some()).await?;
    let lost =
        host_summary::print_host_summary(&wish.shown, &wish.remediations, wish.key.as_ref())?;
    let question = format!(
        "If host {name} is still running, the volumes of {lost} will be written from two hosts at once. Have you made sure that the host is off?"
    );
    person::ask_confirmation(&question, args.yes)?;
    let word = |there: &HostSnapshot| wish.build_host_change(there, &by, &args.reason);
    let written = connected.fleet.change_host(name, word).await;
    let what = format!("confirm that host {name} is off");
    match written.map_err(|error| connected.api_failure(&what, &error))? {
        HostChangeOutcome::Written { after, .. } => {
            print_line(&format!("host/{name}: {by} has confirmed that it is off"))?;
            record_confirmation_event(connected, &after, &by, &args.reason).await;
            Ok(())
        }
        HostChangeOutcome::Not(_, HostUnchanged::AlreadySet(text)) => {
            print_line(&format!("host/{name} {text}"))
        }
        HostChangeOutcome::Not(_, HostUnchanged::Refused { text, next }) => {
            Err(refusal_failure(name, &text, next))
        }
        HostChangeOutcome::NoHost => Err(hosts::no_such_host(connected, name).await),
        HostChangeOutcome::NoKind => Err(kind_missing(ObjectKind::Host)),
    }
}

/// Checks the caller's right to confirm and returns the caller's name.
async fn require_confirming_user(
    connected: &ConnectedCluster,
    host: &HostName,
    has_key: bool,
) -> Result<String, CommandFailure> {
    let what = format!("check whether you may confirm that host {host} is off");
    let fleet = &connected.fleet;
    let may = fleet.can_confirm_off(host).await;
    if !may.map_err(|error| connected.api_failure(&what, &error))? {
        let text = format!(
            "not allowed to confirm that host {host} is off: you need verb update on baremetalhosts/confirm-off of metal3.io"
        );
        return Err(CommandFailure::new(CliExitCode::Forbidden, text)
            .with_next_step("ask an administrator to bind ClusterRole dogwatch-confirm-off to you, or use another user with --context"));
    }
    if has_key {
        require_key_permission(connected, host).await?;
    }
    let user = fleet.read_caller().await;
    let user = user
        .map_err(|error| connected.api_failure("ask the API server for your user name", &error))?;
    user.ok_or_else(|| {
        let text = "the API server does not report your user name, and a confirmation needs one: log in to the cluster as a user";
        CommandFailure::new(CliExitCode::Forbidden, text)
    })
}

/// Checks the right to write reboot annotations, which a remediation's key is.
async fn require_key_permission(
    connected: &ConnectedCluster,
    host: &HostName,
) -> Result<(), CommandFailure> {
    let what = format!("check whether you may keep host {host} off");
    let may = connected.fleet.can_reboot_host(host).await;
    if may.map_err(|error| connected.api_failure(&what, &error))? {
        return Ok(());
    }
    let text = format!(
        "not allowed to keep host {host} off: no remediation keeps it off yet, so you need verb update on baremetalhosts/reboot of metal3.io"
    );
    Err(CommandFailure::new(CliExitCode::Forbidden, text)
        .with_next_step("ask an administrator to bind ClusterRole dogwatch-operator to you as well, or use another user with --context"))
}

/// Records the confirmation as an Event on the host.
async fn record_confirmation_event(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
    by: &str,
    reason: &str,
) {
    let message = format!("{by} confirmed that the host is off: {reason}");
    let said = connected
        .fleet
        .write_host_event(host, "ConfirmedOff", &message, current_time());
    if let Err(error) = said.await {
        eprintln!(
            "dogwatch: the confirmation is stored on the host, but its Event could not be written: {}",
            error.error_chain()
        );
    }
}

fn refusal_failure(name: &HostName, text: &str, next: String) -> CommandFailure {
    CommandFailure::new(
        CliExitCode::Failed,
        printable_text(&format!("host {name} {text}")),
    )
    .with_next_step(next)
}
