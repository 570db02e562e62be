//! What runs beside a keeper's loop, and what comes of it.

use std::collections::BTreeMap;

use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{About, Answer, Fault, Host, HostName, Read, StatusWrite};
use tracing::warn;

use super::super::lanes::{Errand, Place};
use super::super::links::Secret;
use super::super::services::Services;
use super::super::store::WriteError;

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
    /// A command.
    Commanded {
        /// Its intention's id.
        id: String,
        how: Result<Answer, Fault>,
    },
    /// There is a place for a command to this level.
    Placed { level: usize, place: Place },
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
    pub(super) services: Services,
    pub(super) host: Host,
    pub(super) write: StatusWrite,
    pub(super) conditions: Vec<Write>,
    pub(super) intention: Option<String>,
    pub(super) events: Vec<Event>,
}

impl StatusJob {
    pub(super) async fn run(self) -> Done {
        let now = self.services.clock.now();
        let hosts = &self.services.hosts;
        let answer = hosts
            .write_status(&self.host, &self.write, &self.conditions, now)
            .await;
        Done::Wrote {
            answer,
            intention: self.intention,
            events: self.events,
        }
    }
}

pub(super) async fn remove(
    services: Services,
    host: Host,
    names: Vec<String>,
    events: Vec<Event>,
) -> Done {
    Done::Wrote {
        answer: services.hosts.remove_annotations(&host, &names).await,
        intention: None,
        events,
    }
}

pub(super) async fn fresh(services: Services, name: HostName) -> Done {
    let asked = services.clock.now().mono;
    Done::Fresh {
        answer: services.hosts.read(&name).await,
        asked,
    }
}

pub(super) async fn say(services: Services, host: Host, events: Vec<Event>) -> Done {
    for event in &events {
        let now = services.clock.now();
        if let Err(error) = services.hosts.say(&host, event, now).await {
            warn!(host = %host.name, reason = event.reason, error, "cannot say an Event");
        }
    }
    Done::Said
}

pub(super) async fn secrets(
    services: Services,
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
