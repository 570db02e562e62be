//! `dogwatch confirm-off`: a person's word that a host is off, where its BMC is dead as well.

mod follow;
mod judge;
mod standing;

use std::time::Duration;

use dogwatch_core::power::{CONFIRMED_OFF, Confirmation, Host, HostName};
use dogwatch_core::remedy::{Case, KeyOwner, record_on, wanting};
use dogwatch_k8s::fleet::{HostChange, HostChanged};

use super::hosts::{self, Named, No, say};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::person;
use crate::table::printable;
use judge::{is_held_off, judge};

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
    let cases = standing::cases_of(&connected, &host).await?;
    let (key, shown) = match keyed(&host, &cases) {
        Ok(keyed) => keyed,
        Err(text) => {
            let text = format!("carries no key of a remediation, and {text}");
            let next = "dogwatch status remediations".to_owned();
            return Err(refused(&name, &text, next));
        }
    };
    match judge(&shown, &shown) {
        Ok(()) => {
            let wish = Wish { key, shown, cases };
            confirm(&connected, &wish, args).await?;
        }
        Err(No::Already(text)) => say(&format!("host/{name} {text}"))?,
        Err(No::Refused { text, next }) => return Err(refused(&name, &text, next)),
    }
    if args.wait {
        let after = record_on(&host).and_then(|record| Some(record.steps.last()?.at));
        let after = after.filter(|_| !is_held_off(&host));
        return follow::to_the_release(&connected, &name, args.timeout, after).await;
    }
    Ok(())
}

/// What is to stand on the host.
struct Wish {
    /// The key that is put there with the word; `None`: keys stand there.
    key: Option<KeyOwner>,
    /// The host, with that key.
    shown: Host,
    /// What it is linked to.
    cases: Vec<Case>,
}

/// By the table no key is put on a host whose power cannot be read. Who knows that it is off puts it there.
fn keyed(host: &Host, cases: &[Case]) -> Result<(Option<KeyOwner>, Host), String> {
    if is_held_off(host) {
        return Ok((None, host.clone()));
    }
    let key = wanting(cases, host)?.key.clone();
    let shown = key.put_on(host);
    Ok((Some(key), shown))
}

impl Wish {
    /// The key and the word mean nothing without each other: they come at once.
    fn change(&self, there: &Host, by: &str, reason: &str) -> Result<HostChange, No> {
        let there = match &self.key {
            Some(key) => key.put_on(there),
            None => there.clone(),
        };
        judge(&there, &self.shown)?;
        let word = Confirmation::of(&there, by, now().wall, reason);
        let word = (CONFIRMED_OFF.to_owned(), word.value());
        let key = self.key.as_ref().map(|key| (key.key(), key.value()));
        Ok(HostChange::AnnotateAll(
            key.into_iter().chain([word]).collect(),
        ))
    }
}

async fn confirm(connected: &Connected, wish: &Wish, args: &ConfirmOffArgs) -> Result<(), Failure> {
    let name = &wish.shown.name;
    let by = who(connected, name, wish.key.is_some()).await?;
    let lost = standing::show(&wish.shown, &wish.cases, wish.key.as_ref())?;
    let question = format!(
        "If host {name} still runs, two writers will have the volumes of {lost}. Have you made sure that it is off?"
    );
    person::confirm(&question, args.yes)?;
    let word = |there: &Host| wish.change(there, &by, &args.reason);
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
async fn who(connected: &Connected, host: &HostName, has_key: bool) -> Result<String, Failure> {
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
    if has_key {
        may_put_key(connected, host).await?;
    }
    let user = fleet.user().await;
    let user = user.map_err(|error| connected.failed("ask who you are", &error))?;
    user.ok_or_else(|| {
        let text = "the API server does not say who you are: nobody's word releases anything";
        Failure::new(Exit::Forbidden, text)
    })
}

/// A key on a host is a reboot annotation, whoever puts it there.
async fn may_put_key(connected: &Connected, host: &HostName) -> Result<(), Failure> {
    let what = format!("look whether you may have host {host} held off");
    let may = connected.fleet.may_reboot_host(host).await;
    if may.map_err(|error| connected.failed(&what, &error))? {
        return Ok(());
    }
    let text = format!(
        "not allowed to have host {host} held off, which nothing does yet: that needs verb update on baremetalhosts/reboot of metal3.io"
    );
    Err(Failure::new(Exit::Forbidden, text)
        .next("have somebody bind ClusterRole dogwatch-operator to you as well, or take another user with --context"))
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
