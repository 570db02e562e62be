//! `dogwatch power`: a host's power, through its object and never behind the controller's back.

mod args;
mod decide;
mod end;
mod follow;
mod guard;
mod status;
mod wish;

pub use args::Power;
use dogwatch_core::power::{Host, HostName};
use dogwatch_k8s::fleet::HostChanged;

use super::hosts::{self, No, say};
use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::person;
use args::Asking;
use decide::judge;
use wish::{Wish, Words};

/// Asks, and follows where that was asked for.
pub async fn run(cluster: &Cluster, power: &Power) -> Result<(), Failure> {
    let (asking, wish, yes) = match power {
        Power::Status(args) => return status::run(cluster, args).await,
        Power::On(args) => (&args.asking, Wish::On, true),
        Power::Off(args) => (&args.asking, Wish::Off, args.yes),
        Power::Cycle(args) => (
            &args.asking,
            Wish::Cycle {
                mode: args.how.mode(),
                force: args.force,
            },
            args.yes,
        ),
        Power::Hold(args) => (
            &args.asking,
            Wish::Hold {
                key: args.key.clone(),
                mode: args.how.mode(),
                force: args.force,
            },
            args.yes,
        ),
        Power::Release(args) => (
            &args.asking,
            Wish::Release {
                key: args.key.clone(),
            },
            args.yes,
        ),
    };
    let connected = hosts::connect(cluster).await?;
    let name = asking.host.in_cluster(cluster, &connected);
    ask(&connected, &name, asking, &wish, yes).await
}

async fn ask(
    connected: &Connected,
    name: &HostName,
    asking: &Asking,
    wish: &Wish,
    yes: bool,
) -> Result<(), Failure> {
    let host = hosts::one(connected, name).await?;
    let requester = asking.requester.clone().unwrap_or_else(person::name);
    let words = Words {
        requester: &requester,
        reason: &asking.reason,
    };
    // Judged before anybody is asked for a word, and again on what is written.
    if judge(&host, wish, &words).is_ok() {
        guard::confirm(connected, &host, wish, yes).await?;
    }
    let changed = connected
        .fleet
        .change_host(name, |host| judge(host, wish, &words))
        .await
        .map_err(|error| connected.failed(&format!("{} host {name}", wish.verb()), &error))?;
    let (before, after) = match changed {
        HostChanged::Written { before, after } => {
            say(&format!("host/{name} {}", wish.said()))?;
            tell_reason(connected, &after, wish, &words).await;
            (before, after)
        }
        HostChanged::Not(host, No::Already(text)) => {
            say(&format!("host/{name} {text}"))?;
            (host.clone(), host)
        }
        HostChanged::Not(_, No::Refused { text, next }) => {
            return Err(Failure::new(Exit::Failed, format!("host {name} {text}")).next(next));
        }
        HostChanged::NoHost => return Err(hosts::no_such_host(connected, name).await),
        HostChanged::NoKind => return Err(hosts::no_kind()),
    };
    guard::warn(&after, wish);
    if asking.wait {
        return follow::to_the_end(connected, &before, &after, wish, asking.timeout).await;
    }
    Ok(())
}

/// A reason that was given is kept where others look for it.
async fn tell_reason(connected: &Connected, host: &Host, wish: &Wish, words: &Words<'_>) {
    if words.reason.is_empty() {
        return;
    }
    let message = format!("{} {}: {}", words.requester, wish.event(), words.reason);
    let said = connected
        .fleet
        .say_of_host(host, "PowerRequested", &message, now());
    if let Err(error) = said.await {
        eprintln!(
            "dogwatch: it was asked, and the reason could not be said in an Event: {}",
            error.in_words()
        );
    }
}
