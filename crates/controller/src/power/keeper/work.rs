//! What runs beside a keeper's loop, and what comes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{About, Answer, Fault, Host, HostName, Read, SignsOfLife, StatusWrite};
use tracing::warn;

use super::super::lanes::{Errand, Place};
use super::super::links::Secret;
use super::super::services::Services;
use super::super::store::WriteError;
use super::super::turns::Turn;
use super::turn::WhoseTurn;

/// What has ended.
pub(super) enum Done {
    /// A reading.
    Read {
        read: Read,
        is_urgent: bool,
        epoch: u64,
    },
    /// A check of power control.
    Checked {
        level: usize,
        found: Result<About, Fault>,
        epoch: u64,
    },
    /// The Leases of the host's Nodes were read; asked at this moment.
    SignsOfLife {
        answer: Result<SignsOfLife, String>,
        asked: std::time::Duration,
    },
    /// A command.
    Commanded {
        /// Its intention's id.
        id: String,
        how: Result<Answer, Fault>,
    },
    /// There is a place for a command to this level.
    Placed { level: usize, place: Place },
    /// It may write what only tells.
    Turn(Turn),
    /// Secrets were read, for a check of a level or because some were lacking.
    Secrets {
        found: BTreeMap<String, Secret>,
        check: Option<usize>,
    },
    /// A write was answered, or not.
    Wrote {
        answer: Result<Host, WriteError>,
        /// The command that was in it and not on the host before.
        intention: Option<String>,
        /// What is to be said now that it is so.
        events: Vec<Event>,
    },
    /// The host was read afresh; asked at this moment.
    Fresh {
        answer: Result<Option<Host>, String>,
        asked: std::time::Duration,
    },
    /// Events were said, or it was tried.
    Said,
}

/// One write of a host's status.
pub(super) struct StatusJob {
    pub(super) services: Arc<Services>,
    pub(super) host: Arc<Host>,
    pub(super) write: StatusWrite,
    pub(super) conditions: Vec<Write>,
    pub(super) intention: Option<String>,
    pub(super) events: Vec<Event>,
    pub(super) turn: WhoseTurn,
}

impl StatusJob {
    pub(super) async fn run(self) -> Done {
        let services = &self.services;
        let answer = match turn(services, self.turn).await {
            Ok(_turn) => {
                let (now, hosts) = (services.clock.now(), &services.hosts);
                let write = hosts.write_status(&self.host, &self.write, &self.conditions, now);
                write.await
            }
            Err(error) => Err(error),
        };
        Done::Wrote {
            answer,
            intention: self.intention,
            events: self.events,
        }
    }
}

/// Waits for the turn of a write. Who has lost the lead meanwhile writes nothing more.
async fn turn(services: &Services, whose: WhoseTurn) -> Result<Turn, WriteError> {
    let turn = match whose {
        WhoseTurn::Ours(turn) => turn,
        WhoseTurn::Next => services.turns.pressing().await,
        WhoseTurn::AfterTrouble => services.turns.after_trouble().await,
    };
    let leads = services.leadership.leads().is_some();
    let lost = || WriteError::Failed("the lead was lost".to_owned());
    leads.then_some(turn).ok_or_else(lost)
}

pub(super) async fn remove(
    services: Arc<Services>,
    host: Arc<Host>,
    names: Vec<String>,
    events: Vec<Event>,
    whose: WhoseTurn,
) -> Done {
    let answer = match turn(&services, whose).await {
        Ok(_turn) => services.hosts.remove_annotations(&host, &names).await,
        Err(error) => Err(error),
    };
    Done::Wrote {
        answer,
        intention: None,
        events,
    }
}

pub(super) async fn fresh(services: Arc<Services>, name: HostName) -> Done {
    let asked = services.clock.now().mono;
    Done::Fresh {
        answer: services.hosts.read(&name).await,
        asked,
    }
}

pub(super) async fn signs_of_life(services: Arc<Services>, host: Arc<Host>) -> Done {
    let asked = services.clock.now().mono;
    Done::SignsOfLife {
        answer: services.hosts.signs_of_life(&host).await,
        asked,
    }
}

pub(super) async fn say(services: Arc<Services>, host: Arc<Host>, events: Vec<Event>) -> Done {
    let _turn = services.turns.telling().await;
    for event in &events {
        let now = services.clock.now();
        if let Err(error) = services.hosts.say(&host, event, now).await {
            warn!(host = %host.name, reason = event.reason, error, "cannot say an Event");
        }
    }
    Done::Said
}

pub(super) async fn secrets(
    services: Arc<Services>,
    errand: Errand,
    namespace: String,
    names: Vec<String>,
    check: Option<usize>,
) -> Done {
    let _turn = services.lanes.secrets(errand).await;
    let mut found = BTreeMap::new();
    for name in names {
        let secret = services.hosts.secret(&namespace, &name).await;
        found.insert(name, secret);
    }
    Done::Secrets { found, check }
}
