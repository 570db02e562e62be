//! `dogwatch confirm-off`: a person's word that a host is off, where its BMC is dead as well.

mod follow;
mod judge;
mod standing;

use std::io::Write as _;
use std::time::Duration;

use dogwatch_core::power::{CONFIRMED_OFF, Confirmation, Host, HostName};
use dogwatch_k8s::fleet::{HostChange, HostChanged};

use super::hosts::{self, Named};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::person;
use crate::table::printable;
use judge::{No, judge};

/// Which host, and why it is certain.
#[derive(Debug, clap::Args)]
pub struct ConfirmOffArgs {
    /// The host: NAMESPACE/NAME, or NAME with -n NAMESPACE
    #[arg(value_name = "NAMESPACE/NAME", value_parser = hosts::named)]
    host: Named,

    /// How you have made sure; it is kept on the host, with your name
    #[arg(long, value_name = "TEXT", value_parser = said)]
    reason: String,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,

    /// Waits until the workloads are released, and tells each step
    #[arg(long)]
    wait: bool,

    /// Gives up waiting after this time; what was said stays
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = dogwatch_core::duration::parse)]
    timeout: Option<Duration>,
}

fn said(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("say how you have made sure that it is off".into());
    }
    Ok(text.to_owned())
}

/// Shows what stands there, asks, and writes.
pub async fn run(cluster: &Cluster, args: &ConfirmOffArgs) -> Result<(), Failure> {
    let connected = hosts::connect(cluster).await?;
    let name = args.host.in_cluster(cluster, &connected);
    let host = hosts::one(&connected, &name).await?;
    match judge(&host, &host) {
        Ok(()) => confirm(&connected, &host, args).await?,
        Err(No::Already(text)) => say(&format!("host/{name} {text}"))?,
        Err(No::Refused { text, next }) => return Err(refused(&name, &text, next)),
    }
    if args.wait {
        return follow::to_the_release(&connected, &name, args.timeout).await;
    }
    Ok(())
}

async fn confirm(connected: &Connected, host: &Host, args: &ConfirmOffArgs) -> Result<(), Failure> {
    let name = &host.name;
    let by = who(connected, name).await?;
    let lost = standing::show(connected, host).await?;
    let question = format!(
        "If host {name} still runs, two writers will have the volumes of {lost}. Have you made sure that it is off?"
    );
    person::confirm(&question, args.yes)?;
    let word = |there: &Host| {
        judge(there, host)?;
        let word = Confirmation::of(there, &by, now().wall, &args.reason);
        Ok(HostChange::Annotate {
            name: CONFIRMED_OFF.to_owned(),
            value: word.value(),
        })
    };
    let written = connected.fleet.change_host(name, word).await;
    let what = format!("say that host {name} is off");
    match written.map_err(|error| connected.failed(&what, &error))? {
        HostChanged::Written { after, .. } => {
            say(&format!("host/{name} is off, on the word of {by}"))?;
            tell(connected, &after, &by, &args.reason).await;
            Ok(())
        }
        HostChanged::Not(_, No::Already(text)) => say(&format!("host/{name} {text}")),
        HostChanged::Not(_, No::Refused { text, next }) => Err(refused(name, &text, next)),
        HostChanged::NoHost => Err(hosts::no_such_host(connected, name).await),
        HostChanged::NoKind => Err(hosts::no_kind()),
    }
}

/// The caller's own name, if they may say it.
async fn who(connected: &Connected, host: &HostName) -> Result<String, Failure> {
    let what = format!("look whether you may say that host {host} is off");
    let fleet = &connected.fleet;
    let may = fleet.may_confirm_off(host).await;
    if !may.map_err(|error| connected.failed(&what, &error))? {
        let text = format!(
            "not allowed to say that host {host} is off: that needs verb update on baremetalhosts/confirm-off of metal3.io"
        );
        return Err(Failure::new(Exit::Forbidden, text)
            .next("have somebody bind ClusterRole dogwatch-confirm-off to you, or take another user with --context"));
    }
    let user = fleet.user().await;
    let user = user.map_err(|error| connected.failed("ask who you are", &error))?;
    user.ok_or_else(|| {
        let text = "the API server does not say who you are: nobody's word releases anything";
        Failure::new(Exit::Forbidden, text)
    })
}

/// It is kept where others look for it.
async fn tell(connected: &Connected, host: &Host, by: &str, reason: &str) {
    let message = format!("{by} says that the host is off: {reason}");
    let said = connected
        .fleet
        .say_of_host(host, "ConfirmedOff", &message, now());
    if let Err(error) = said.await {
        eprintln!(
            "dogwatch: it stands on the host, and could not be said in an Event: {}",
            error.in_words()
        );
    }
}

fn refused(name: &HostName, text: &str, next: String) -> Failure {
    Failure::new(Exit::Failed, printable(&format!("host {name} {text}"))).next(next)
}

fn say(text: &str) -> Result<(), Failure> {
    let mut out = output::stdout();
    writeln!(out, "{}", printable(text))?;
    Ok(out.flush()?)
}
