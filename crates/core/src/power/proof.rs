//! What a release demands: a value that only a proved "off" makes. Source: specification §1 S2, §4.1.

use std::time::Duration;

use jiff::Timestamp;

use super::config::Config;
use super::context::Context;
use super::gate;
use super::host::HostName;
use super::seen::{Read, Seen};
use super::theirs;
use super::word::{Word, word};
use crate::Now;

/// This host is off after each of the annotations it names was asked for: by two readings that this process
/// made itself, or by a person's word. Made by [`proof`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffProof {
    whose: Whose,
    since: Duration,
    source: Source,
    proved_for: Vec<String>,
    readings: Option<Readings>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Whose {
    host: HostName,
    uid: String,
    system_uuid: Option<String>,
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
        &self.whose.host
    }

    /// The host's UID.
    pub fn uid(&self) -> &str {
        &self.whose.uid
    }

    /// The machine's system UUID, as the BMC that was read told it; with a person's word, as the first level
    /// did. To be compared with the Node's by [`super::same_system`].
    pub fn system_uuid(&self) -> Option<&str> {
        self.whose.system_uuid.as_deref()
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
        .or_else(|| by_their_controller(&ctx))
        .or_else(|| by_a_person(&ctx))
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
    read_twice(ctx, [first, second], source, proved_for)
}

fn by_their_controller(ctx: &Context<'_>) -> Option<OffProof> {
    let (readings, proved_for) = theirs::off(ctx)?;
    read_twice(ctx, readings, Source::TheirController, proved_for)
}

fn by_a_person(ctx: &Context<'_>) -> Option<OffProof> {
    let Some(Word::Stands { said, keys, since }) = word(ctx) else {
        return None;
    };
    let source = Source::Person {
        by: said.by,
        at: said.at,
        reason: said.reason,
    };
    Some(OffProof {
        whose: whose(ctx, 0),
        since,
        source,
        proved_for: keys,
        readings: None,
    })
}

/// Two readings, of one machine that is asked who it is before its word counts: a contradiction between it
/// and a Node is not missed because nobody asked.
fn read_twice(
    ctx: &Context<'_>,
    [first, second]: [&Read; 2],
    source: Source,
    proved_for: Vec<String>,
) -> Option<OffProof> {
    let level = first.level;
    let is_contradicted = ctx.living_node().is_some();
    if !ctx.seen.same_system.is_empty() || !ctx.was_checked(level) || is_contradicted {
        return None;
    }
    let both = [moment(first), moment(second)];
    Some(OffProof {
        whose: whose(ctx, level),
        since: first.asked,
        source,
        proved_for,
        readings: Some(Readings { level, both }),
    })
}

fn whose(ctx: &Context<'_>, level: usize) -> Whose {
    let host = &ctx.seen.host;
    let about = ctx.about(level);
    Whose {
        host: host.name.clone(),
        uid: host.uid.clone(),
        system_uuid: about.and_then(|about| about.system_uuid.clone()),
    }
}

fn moment(read: &Read) -> Moment {
    Moment {
        asked: read.asked,
        answered: read.answered,
    }
}
