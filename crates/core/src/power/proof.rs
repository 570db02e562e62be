//! What a release demands: a value that only a proved "off" makes. Source: specification §1 S2, §4.1.

use std::time::Duration;

use jiff::Timestamp;

use super::config::Config;
use super::context::Context;
use super::gate;
use super::host::HostName;
use super::seen::{Read, Seen};
use crate::Now;

/// This host was proved off after each of the annotations it names was asked for, and still is, by two
/// readings that this process made itself. Made by [`proof`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffProof {
    host: HostName,
    uid: String,
    level: usize,
    command: String,
    confirmed_at: Timestamp,
    confirmed_for: Vec<String>,
    readings: [Moment; 2],
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

    /// The level that cut the power; every device of it said off.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The id of the power-off that was answered.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// `status.power.offConfirmedAt`.
    pub fn confirmed_at(&self) -> Timestamp {
        self.confirmed_at
    }

    /// Whether the power-off was decided after this annotation was there, with this value.
    pub fn is_for(&self, request: &super::Request) -> bool {
        self.confirmed_for.contains(&request.id())
    }

    /// The two newest readings, the older one first.
    pub fn readings(&self) -> [Moment; 2] {
        self.readings
    }
}

/// The proof that the host is off now, if it is.
pub fn proof(seen: &Seen, config: &Config, now: Now) -> Option<OffProof> {
    let ctx = Context::new(seen, config, "", 0.0, now);
    if gate::refusal(&ctx).is_some() {
        return None;
    }
    let power = &seen.host.status.power;
    let command = ctx.answered_off()?;
    let confirmed_at = power.off_confirmed_at?;
    if ctx.target(command.level).as_ref() != Some(&command.target) {
        return None;
    }
    let (first, second) = ctx.off_now(command.level)?;
    Some(OffProof {
        host: seen.host.name.clone(),
        uid: seen.host.uid.clone(),
        level: command.level,
        command: command.id.clone(),
        confirmed_at,
        confirmed_for: power.confirmed_for.clone(),
        readings: [moment(first), moment(second)],
    })
}

fn moment(read: &Read) -> Moment {
    Moment {
        asked: read.asked,
        answered: read.answered,
    }
}
