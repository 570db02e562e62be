//! Implements `dogwatch power`: changes a host's power through its BareMetalHost, so that the power
//! controller carries it out.

mod args;
mod decide;
mod follow;
mod outcome;
mod preflight;
mod request;
mod status;

pub use args::PowerSubcommand;
use dogwatch_core::power::{HostName, HostSnapshot};
use dogwatch_k8s::fleet::HostChangeOutcome;

use super::hosts::{self, HostUnchanged};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::print_line;
use crate::person;
use crate::resource::{ObjectKind, kind_missing};
use args::PowerRequestArgs;
use decide::decide_host_change;
use request::{PowerOperation, RequestReason};

/// Writes the request, and follows it with `--wait`.
pub async fn run(cluster: &ClusterArgs, power: &PowerSubcommand) -> Result<(), CommandFailure> {
    let (asking, wish, yes) = match power {
        PowerSubcommand::Status(args) => return status::run(cluster, args).await,
        PowerSubcommand::On(args) => (&args.asking, PowerOperation::On, true),
        PowerSubcommand::Off(args) => (&args.asking, PowerOperation::Off, args.yes),
        PowerSubcommand::Cycle(args) => (
            &args.asking,
            PowerOperation::Cycle {
                mode: args.how.off_mode(),
                force: args.force,
            },
            args.yes,
        ),
        PowerSubcommand::Hold(args) => (
            &args.asking,
            PowerOperation::Hold {
                key: args.key.clone(),
                mode: args.how.off_mode(),
                force: args.force,
            },
            args.yes,
        ),
        PowerSubcommand::Release(args) => (
            &args.asking,
            PowerOperation::Release {
                key: args.key.clone(),
            },
            args.yes,
        ),
    };
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let name = asking.host.resolve_name(cluster, &connected, HostName::new);
    request_power(&connected, &name, asking, &wish, yes).await
}

async fn request_power(
    connected: &ConnectedCluster,
    name: &HostName,
    asking: &PowerRequestArgs,
    wish: &PowerOperation,
    yes: bool,
) -> Result<(), CommandFailure> {
    let host = hosts::read_host(connected, name).await?;
    let requester = asking.requester.clone().unwrap_or_else(person::user_name);
    let words = RequestReason {
        requester: &requester,
        reason: &asking.reason,
    };
    // Decided before the person is asked, and again when it is written.
    if decide_host_change(&host, wish, &words).is_ok() {
        preflight::confirm_power_cut(connected, &host, wish, yes).await?;
    }
    let changed = connected
        .fleet
        .change_host(name, |host| decide_host_change(host, wish, &words))
        .await
        .map_err(|error| {
            connected.api_failure(&format!("{} host {name}", wish.verb_phrase()), &error)
        })?;
    let (before, after) = match changed {
        HostChangeOutcome::Written { before, after } => {
            print_line(&format!("host/{name} {}", wish.done_text()))?;
            record_reason_event(connected, &after, wish, &words).await;
            (before, after)
        }
        HostChangeOutcome::Not(host, HostUnchanged::AlreadySet(text)) => {
            print_line(&format!("host/{name} {text}"))?;
            (host.clone(), host)
        }
        HostChangeOutcome::Not(_, HostUnchanged::Refused { text, next }) => {
            return Err(
                CommandFailure::new(CliExitCode::Failed, format!("host {name} {text}"))
                    .with_next_step(next),
            );
        }
        HostChangeOutcome::NoHost => return Err(hosts::no_such_host(connected, name).await),
        HostChangeOutcome::NoKind => return Err(kind_missing(ObjectKind::Host)),
    };
    preflight::warn_of_blockers(&after, wish);
    if asking.wait {
        return follow::follow_to_outcome(connected, &before, &after, wish, asking.timeout).await;
    }
    Ok(())
}

/// Records a given reason as an Event on the host.
async fn record_reason_event(
    connected: &ConnectedCluster,
    host: &HostSnapshot,
    wish: &PowerOperation,
    words: &RequestReason<'_>,
) {
    if words.reason.is_empty() {
        return;
    }
    let message = format!(
        "{} {}: {}",
        words.requester,
        wish.event_text(),
        words.reason
    );
    let said = connected
        .fleet
        .write_host_event(host, "PowerRequested", &message, current_time());
    if let Err(error) = said.await {
        eprintln!(
            "dogwatch: the request was written, but the Event with its reason could not be: {}",
            error.error_chain()
        );
    }
}
