//! What a release demands: a value that only a proved "off" makes. Source: specification §1 S2, §4.1.

use std::time::Duration;

use jiff::Timestamp;

use super::bmc::About;
use super::config::Config;
use super::context::Context;
use super::gate;
use super::host::HostName;
use super::seen::{Read, Seen};
use crate::Now;

/// This host is off after each of the annotations it names was asked for: by two readings that this process
/// made itself, or by a person's word. Made by [`proof`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffProof {
    host: HostName,
    uid: String,
    system_uuid: Option<String>,
    since: Duration,
    source: Source,
    proved_for: Vec<String>,
    readings: Option<Readings>,
}

/// Who made it go off, or says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// We did; read twice since.
    OurCommand {
        /// The id of the power-off that was answered.
        id: String,
    },
    /// metal3's own controller did, for our key; read twice since, by us.
    TheirController,
    /// A person made sure, and no reading of ours contradicts.
    Person {
        /// Who.
        by: String,
        /// When, by their clock.
        at: Timestamp,
        /// Why, or how, in their words.
        reason: String,
    },
}

/// The two readings of off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readings {
    /// The level; every device of it said off.
    pub level: usize,
    /// The older one first.
    pub both: [Moment; 2],
}

/// When a reading was asked and answered, by this process' monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When it was asked.
    pub asked: Duration,
    /// When it was answered.
    pub answered: Duration,
}

impl OffProof {
    /// Whose power it is.
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// The host's UID.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The machine's system UUID, as the BMC that was read told it; with a person's word, as the first level
    /// did. To be compared with the Node's by [`super::same_system`].
    pub fn system_uuid(&self) -> Option<&str> {
        self.system_uuid.as_deref()
    }

    /// When the first of its readings was asked, or the person's word was first seen, by this process'
    /// monotonic clock. A sign of life later than this contradicts it.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// Who made it go off, or says so.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Whether it is later than this annotation, with this value.
    pub fn is_for(&self, request: &super::Request) -> bool {
        self.proved_for.contains(&request.id())
    }

    /// The two newest readings; `None`: a person's word.
    pub fn readings(&self) -> Option<Readings> {
        self.readings
    }
}

/// The proof that the host is off now, if it is.
pub fn proof(seen: &Seen, config: &Config, now: Now) -> Option<OffProof> {
    let ctx = Context::new(seen, config, "", 0.0, now);
    by_our_command(&ctx)
}

fn by_our_command(ctx: &Context<'_>) -> Option<OffProof> {
    if gate::refusal(ctx).is_some() {
        return None;
    }
    let power = &ctx.status().power;
    let command = ctx.answered_off()?;
    power.off_confirmed_at?;
    if ctx.target(command.level).as_ref() != Some(&command.target) {
        return None;
    }
    let (first, second) = ctx.off_now(command.level)?;
    let source = Source::OurCommand {
        id: command.id.clone(),
    };
    let proved_for = power.confirmed_for.clone();
    Some(read_twice(ctx, [first, second], source, proved_for))
}

fn read_twice(
    ctx: &Context<'_>,
    [first, second]: [&Read; 2],
    source: Source,
    proved_for: Vec<String>,
) -> OffProof {
    let host = &ctx.seen.host;
    let about = ctx.about(first.level);
    OffProof {
        host: host.name.clone(),
        uid: host.uid.clone(),
        system_uuid: about.and_then(|about: &About| about.system_uuid.clone()),
        since: first.asked,
        source,
        proved_for,
        readings: Some(Readings {
            level: first.level,
            both: [moment(first), moment(second)],
        }),
    }
}

fn moment(read: &Read) -> Moment {
    Moment {
        asked: read.asked,
        answered: read.answered,
    }
}
