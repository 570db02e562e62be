//! The proof of off that a release requires. Source: specification §1 S2, §4.1.

use std::time::Duration;

use jiff::Timestamp;

use super::config::PowerConfig;
use super::context::PowerContext;
use super::host::HostName;
use super::manual_confirmation::{ManualConfirmation, manual_confirmation};
use super::metal3_managed;
use super::refusal;
use super::snapshot::{LevelReading, PowerSnapshot};
use crate::Now;

/// Proves that this host is off, by evidence that is later than each annotation that the proof
/// covers: two readings of this process, or a person's confirmation. Only [`find_off_proof`] makes
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerOffProof {
    proved_host: ProvedHost,
    since: Duration,
    source: ProofSource,
    proved_for: Vec<String>,
    readings: Option<OffReadings>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ProvedHost {
    host: HostName,
    uid: String,
    system_uuid: Option<String>,
}

/// Who switched the host off, or confirms it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofSource {
    /// Dogwatch's power-off, and two readings since.
    OurCommand { id: String },
    /// metal3's own controller switched it off for a key; Dogwatch read off twice since.
    Metal3Controller,
    /// A person confirms it, and no reading of Dogwatch's contradicts.
    Person {
        by: String,
        /// When, by the person's clock.
        at: Timestamp,
        /// Why, or how, in the person's words.
        reason: String,
    },
}

impl ProofSource {
    /// As a request's status and decision logs write it.
    pub fn as_str(&self) -> &'static str {
        match self {
            ProofSource::OurCommand { .. } => "OurCommand",
            ProofSource::Metal3Controller => "TheirController",
            ProofSource::Person { .. } => "Person",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffReadings {
    /// Every device of this level said off.
    pub level: usize,
    /// The older one first.
    pub both: [ReadingTimes; 2],
}

/// When a reading was requested and answered, by this process' monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingTimes {
    pub asked: Duration,
    pub answered: Duration,
}

impl PowerOffProof {
    pub fn host(&self) -> &HostName {
        &self.proved_host.host
    }

    pub fn uid(&self) -> &str {
        &self.proved_host.uid
    }

    /// The machine's system UUID, of the readings themselves or of a check while the level read off;
    /// for a person's confirmation, of the first level's last answer. Compare it with the Node's by
    /// [`super::compare_system_uuids`].
    pub fn system_uuid(&self) -> Option<&str> {
        self.proved_host.system_uuid.as_deref()
    }

    /// When the first reading was requested, or the person's confirmation was first seen, by this
    /// process' monotonic clock. A later sign of life contradicts the proof.
    pub fn valid_since(&self) -> Duration {
        self.since
    }

    pub fn source(&self) -> &ProofSource {
        &self.source
    }

    /// Whether the proof is later than this annotation with this value.
    pub fn covers_annotation(&self, request: &super::HostRebootAnnotation) -> bool {
        self.proved_for.contains(&request.id())
    }

    /// The two newest readings. `None`: a person confirmed it.
    pub fn off_readings(&self) -> Option<OffReadings> {
        self.readings
    }
}

/// Proves that the host is off now. `None`: it cannot be proved.
pub fn find_off_proof(
    seen: &PowerSnapshot,
    config: &PowerConfig,
    now: Now,
) -> Option<PowerOffProof> {
    let ctx = PowerContext::new(seen, config, "", 0.0, now);
    prove_by_own_command(&ctx)
        .or_else(|| prove_by_metal3(&ctx))
        .or_else(|| prove_by_person(&ctx))
}

fn prove_by_own_command(ctx: &PowerContext<'_>) -> Option<PowerOffProof> {
    if ctx.seen.host.disable_power_off || refusal::find_refusal(ctx).is_some() {
        return None;
    }
    let power = &ctx.host_status().power;
    let command = ctx.answered_power_off()?;
    power.off_confirmed_at?;
    let is_elsewhere = ctx.level_digest(command.level).as_ref() != Some(&command.target);
    if is_elsewhere || ctx.machine_change(command).is_some() {
        return None;
    }
    let (first, second) = ctx.current_off_readings(command.level)?;
    let source = ProofSource::OurCommand {
        id: command.id.clone(),
    };
    let proved_for = power.confirmed_for.clone();
    prove_by_readings(ctx, [first, second], source, proved_for)
}

fn prove_by_metal3(ctx: &PowerContext<'_>) -> Option<PowerOffProof> {
    let (readings, proved_for) = metal3_managed::proved_off_keys(ctx)?;
    prove_by_readings(ctx, readings, ProofSource::Metal3Controller, proved_for)
}

fn prove_by_person(ctx: &PowerContext<'_>) -> Option<PowerOffProof> {
    let Some(ManualConfirmation::Valid { said, keys, since }) = manual_confirmation(ctx) else {
        return None;
    };
    let source = ProofSource::Person {
        by: said.by,
        at: said.at,
        reason: said.reason,
    };
    let known = ctx.seen.memory.known_system_uuid(0);
    Some(PowerOffProof {
        proved_host: proved_host(ctx, known.map(str::to_owned)),
        since,
        source,
        proved_for: keys,
        readings: None,
    })
}

/// Two readings prove off only after the machine's identity was checked: otherwise a contradiction
/// between the machine and a Node could go unnoticed.
fn prove_by_readings(
    ctx: &PowerContext<'_>,
    [first, second]: [&LevelReading; 2],
    source: ProofSource,
    proved_for: Vec<String>,
) -> Option<PowerOffProof> {
    let level = first.level;
    let is_contradicted = ctx.living_node().is_some();
    if !ctx.seen.same_system.is_empty() || !ctx.was_checked(level) || is_contradicted {
        return None;
    }
    let both = [reading_times(first), reading_times(second)];
    let system_uuid = ctx.system_uuid_read_off([first, second]);
    Some(PowerOffProof {
        proved_host: proved_host(ctx, system_uuid),
        since: first.asked,
        source,
        proved_for,
        readings: Some(OffReadings { level, both }),
    })
}

fn proved_host(ctx: &PowerContext<'_>, system_uuid: Option<String>) -> ProvedHost {
    let host = &ctx.seen.host;
    ProvedHost {
        host: host.name.clone(),
        uid: host.uid.clone(),
        system_uuid,
    }
}

fn reading_times(read: &LevelReading) -> ReadingTimes {
    ReadingTimes {
        asked: read.asked,
        answered: read.answered,
    }
}
