//! What has ended is taken in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::power::{About, Access, Answer, Class, Fault, Host, Read, SignsOfLife, reason};
use futures::FutureExt as _;
use tracing::{error, info, warn};

use super::super::links::Secret;
use super::super::store::WriteError;
use super::Keeper;
use super::turn::Telling;
use super::work::{self, Done};

impl Keeper {
    /// Takes it in; it is decided anew then.
    pub(super) fn take(&mut self, done: Done) {
        self.jitter = self.services.jitter.draw();
        match done {
            Done::Read {
                read,
                is_urgent,
                epoch,
            } => self.has_read(read, is_urgent, epoch),
            Done::Checked {
                level,
                found,
                epoch,
            } => {
                self.under_way.checks.remove(&level);
                self.mind_password(found.as_ref().err());
                if epoch == self.epoch {
                    self.has_checked(level, found);
                }
            }
            Done::SignsOfLife { answer, asked } => self.has_signs_of_life(answer, asked),
            Done::Commanded { id, how } => self.has_commanded(&id, how),
            Done::Placed { level, place } => {
                self.under_way.place = None;
                self.place = Some((level, place));
            }
            Done::Turn(turn) => self.telling = Telling::Here(turn),
            Done::Secrets { found, check } => self.has_secrets(&found, check),
            Done::Wrote {
                answer,
                intention,
                events,
            } => match answer {
                Ok(host) => self.has_written(host, intention, events),
                Err(error) => self.has_not_written(&error),
            },
            Done::Fresh { answer, asked } => self.has_looked(answer, asked),
            Done::Said => {}
        }
    }

    fn has_read(&mut self, read: Read, is_urgent: bool, epoch: u64) {
        let under_way = if is_urgent {
            &mut self.under_way.urgent
        } else {
            &mut self.under_way.polls
        };
        under_way.remove(&read.level);
        self.mind_password(read.said.as_ref().err());
        let memory = &mut self.spot.lock().seen.memory;
        if epoch == self.epoch {
            memory.read(read);
        }
    }

    fn has_checked(&mut self, level: usize, found: Result<About, Fault>) {
        let now = self.now();
        let mut spot = self.spot.lock();
        if let (0, Ok(about)) = (level, &found) {
            let name = &spot.seen.host.name;
            self.spot.tells(name, about.system_uuid.as_deref());
        }
        spot.seen.memory.checked(level, found, now);
    }

    fn has_signs_of_life(&mut self, answer: Result<SignsOfLife, String>, asked: Duration) {
        self.under_way.signs_of_life = false;
        match answer {
            Ok(signs) => {
                self.signs_of_life.well();
                let memory = &mut self.spot.lock().seen.memory;
                memory.signs_of_life(asked, signs);
            }
            Err(error) => {
                let host = self.spot.lock().seen.host.name.clone();
                warn!(%host, error, "cannot read whether a host's Node lives");
                let now = self.now();
                self.signs_of_life.trouble(self.jitter, now);
            }
        }
    }

    fn has_commanded(&mut self, id: &str, how: Result<Answer, Fault>) {
        self.under_way.command = false;
        self.mind_password(how.as_ref().err());
        let now = self.now();
        let mut spot = self.spot.lock();
        match &how {
            Ok(answer) => info!(host = %spot.seen.host.name, ?answer, "a BMC answered a command"),
            Err(fault) => {
                warn!(host = %spot.seen.host.name, reason = fault.class.reason(), error = fault.message, "a command failed");
            }
        }
        spot.seen.memory.ended(id, how, now);
    }

    /// A password that is refused may have been changed: it is read again. Nobody is asked twice with
    /// the same one for that.
    fn mind_password(&mut self, fault: Option<&Fault>) {
        let is_refused = fault.is_some_and(|fault| fault.class == Class::WrongCredentials);
        if is_refused && !self.under_way.secrets && !self.is_finishing {
            self.read_secrets(None);
        }
    }

    fn has_secrets(&mut self, found: &BTreeMap<String, Secret>, check: Option<usize>) {
        self.under_way.secrets = false;
        if self.links.take(found, &self.services.connect) {
            self.epoch += 1;
            self.spot.lock().seen.memory.forget_bmc();
        }
        let now = self.now();
        if self.links.lacks_something() {
            self.secrets.trouble(self.jitter, now);
        } else {
            self.secrets.well();
        }
        if let Some(level) = check {
            self.check(level);
        }
    }

    /// The answer shows the host as it stands: our command in it may be sent now.
    fn has_written(&mut self, host: Host, intention: Option<String>, events: Vec<Event>) {
        let now = self.now();
        self.under_way.write = false;
        self.writes.well();
        self.pruned = None;
        {
            let mut spot = self.spot.lock();
            self.tally.wrote(&spot.seen.host, &host, now);
            if let Some(id) = intention {
                spot.seen.memory.written(id, now);
            }
            spot.seen.host = Arc::new(host);
        }
        self.said.extend(events.iter().cloned());
        self.say(events);
    }

    fn has_not_written(&mut self, error: &WriteError) {
        let now = self.now();
        let host = self.spot.lock().seen.host.name.clone();
        match error {
            WriteError::Changed => {}
            WriteError::Failed(error) => {
                warn!(%host, error, "cannot write a host");
                self.writes.trouble(self.jitter, now);
            }
            WriteError::Pruned(_) => {
                error!(%host, error = %error, "no host can be kept in this cluster");
                self.is_pruned(format!("{error}: install the CRD with Dogwatch's fields"));
                self.writes.trouble(self.jitter, now);
            }
        }
        self.look_afresh();
    }

    /// Conditions may be dropped as well: an Event is not.
    fn is_pruned(&mut self, message: String) {
        if self.pruned.is_none() {
            let event = Event {
                severity: Severity::Warning,
                reason: reason::CRD_TOO_OLD,
                message: message.clone(),
            };
            self.say(vec![event]);
        }
        self.pruned = Some(message);
    }

    /// Nothing is written before it is seen what stands there.
    fn look_afresh(&mut self) {
        self.under_way.write = true;
        let name = self.spot.lock().seen.host.name.clone();
        let job = work::fresh(self.services.clone(), name);
        self.jobs.push(job.boxed());
    }

    fn has_looked(&mut self, answer: Result<Option<Host>, String>, asked: Duration) {
        let now = self.now();
        let host = match answer {
            Ok(Some(host)) => host,
            // It is gone, and the watch will say so.
            Ok(None) => {
                self.under_way.write = false;
                self.writes.trouble(self.jitter, now);
                return;
            }
            Err(error) => {
                let name = self.spot.lock().seen.host.name.clone();
                warn!(host = %name, error, "cannot read a host");
                self.writes.trouble(self.jitter, now);
                let pause = self.writes.until().unwrap_or(now);
                let (services, clock) = (self.services.clone(), self.services.clock.clone());
                let job = async move {
                    clock.sleep_until(pause).await;
                    work::fresh(services, name).await
                };
                self.jobs.push(job.boxed());
                return;
            }
        };
        self.under_way.write = false;
        let mut spot = self.spot.lock();
        if host.uid != spot.seen.host.uid {
            return;
        }
        // A write without an answer was done after all: its command stands there, and was not sent.
        let standing = host.status.power.command.as_ref();
        let standing = standing.map(|standing| standing.id.clone());
        if let Some(id) = standing.filter(|id| spot.seen.memory.tried.as_ref() == Some(id)) {
            spot.seen.memory.written(id, asked);
        }
        spot.seen.host = Arc::new(host);
    }

    /// What the decision is told of the ways to the BMCs.
    pub(super) fn access(&self) -> Vec<Access> {
        let levels = self.links.access();
        let Some(message) = &self.pruned else {
            return levels;
        };
        let missing = |_| Access::Missing {
            reason: reason::CRD_TOO_OLD,
            message: message.clone(),
        };
        levels.into_iter().map(missing).collect()
    }

    fn now(&self) -> Duration {
        self.services.clock.now().mono
    }
}
