//! `dogwatch power … --wait`: from the wish to the power that is so.

use std::time::Duration;

use dogwatch_core::explain::{POWER_AS_WANTED, host_condition};
use dogwatch_core::power::{Host, State};
use tokio::time::Instant;

use super::decide::{held, keys};
use super::end::{End, end, is_older};
use super::say;
use super::wish::Wish;
use crate::cluster::Connected;
use crate::exit::{Exit, Failure};
use crate::table::printable;
use crate::wait::until;

/// Tells each step of the host, until the wish has come about or cannot any more.
pub async fn to_the_end(
    connected: &Connected,
    before: &Host,
    asked: &Host,
    wish: &Wish,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let name = &asked.name;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let mut watch = connected
        .fleet
        .watch_hosts(Some(&name.namespace), Some(&name.name));
    let mut tale = Tale::new(before, asked, wish);
    loop {
        tokio::select! {
            changed = watch.changed() => match changed {
                Ok(()) => {
                    let seen = watch.hosts().map(|hosts| hosts.get(name));
                    if let Some(host) = seen
                        && let Some(ended) = tale.take(host)?
                    {
                        return ended;
                    }
                }
                Err(error) if error.kind() == dogwatch_k8s::Kind::Forbidden => {
                    return Err(connected.failed("watch BareMetalHosts", &error));
                }
                Err(error) => eprintln!("dogwatch: {}; trying again", error.in_words()),
            },
            () = until(deadline) => return Err(tale.too_late(timeout.unwrap_or_default())),
            _ = tokio::signal::ctrl_c() => {
                let text = format!("not following any more; what was asked of host {name} stays");
                return Err(Failure::new(Exit::Interrupted, text));
            }
        }
    }
}

/// What has been told of the host.
struct Tale<'a> {
    before: &'a Host,
    asked: &'a Host,
    wish: &'a Wish,
    told: String,
    why: Option<String>,
}

impl<'a> Tale<'a> {
    fn new(before: &'a Host, asked: &'a Host, wish: &'a Wish) -> Self {
        Self {
            before,
            asked,
            wish,
            told: String::new(),
            why: None,
        }
    }

    /// Tells what is new; `Some`: it has ended so.
    fn take(&mut self, host: Option<&Host>) -> Result<Option<Result<(), Failure>>, Failure> {
        let name = &self.asked.name;
        let Some(host) = host.filter(|host| host.uid == self.asked.uid) else {
            let text = format!("host {name} was deleted");
            return Ok(Some(Err(Failure::new(Exit::NotFound, text))));
        };
        if is_older(host, self.asked) {
            return Ok(None);
        }
        match end(self.wish, self.before, self.asked, host) {
            Some(End::Reached(text)) => {
                say(&format!("host/{name} {text}"))?;
                Ok(Some(Ok(())))
            }
            Some(End::Not(text)) => {
                let failure = Failure::new(Exit::Failed, format!("host {name} {text}"));
                Ok(Some(Err(
                    failure.next(format!("dogwatch explain host/{name}"))
                )))
            }
            None => {
                self.tell(host)?;
                Ok(None)
            }
        }
    }

    /// Each state and each reason once: the message counts seconds.
    fn tell(&mut self, host: &Host) -> Result<(), Failure> {
        let state = host
            .status
            .power
            .state
            .map_or("not looked at", State::as_str);
        let said = host_condition(host, POWER_AS_WANTED);
        let reason = said.map(|said| said.reason.as_str());
        let short = format!(
            "{state} {}{}",
            reason.unwrap_or_default(),
            held(&keys(host))
        );
        let text = match said {
            Some(said) => format!("{state}: {}: {}", said.reason, said.message),
            None => format!("{state}{}", held(&keys(host))),
        };
        self.why = Some(text.clone());
        if self.told != short {
            say(&format!("host/{} {text}", host.name))?;
            self.told = short;
        }
        Ok(())
    }

    fn too_late(&self, timeout: Duration) -> Failure {
        let name = &self.asked.name;
        let length = dogwatch_core::duration::format(timeout);
        let why = self.why.as_deref().unwrap_or("nothing was seen of it");
        let text = format!(
            "host {name} is not there within {length}; what was asked stays. {}",
            printable(why)
        );
        Failure::new(Exit::Failed, text).next(format!("dogwatch explain host/{name}"))
    }
}
