//! Checks whether a person's confirmation that a host is off counts now. Source: specification
//! §4.2, manual confirmation.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotations::{HostRebootAnnotation, format_names};
use super::confirmation_annotation::{CONFIRMED_OFF_ANNOTATION, OffConfirmation};
use super::context::PowerContext;
use super::{PowerReason, power_off};
use crate::decision::{DecisionEvent, EventSeverity};
use crate::printable::clip_text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ManualConfirmation {
    /// It counts for `keys`; this process first saw it at `since`.
    Valid {
        said: OffConfirmation,
        keys: Vec<String>,
        since: Duration,
    },
    /// It does not count: a reason, and a sentence.
    Invalid {
        reason: PowerReason,
        message: String,
    },
}

/// At most this many characters of a person's text go into a sentence.
const MAX_TEXT_CHARS: usize = 200;

/// Checks the confirmation that stands on the host. `None`: there is none.
pub(super) fn manual_confirmation(ctx: &PowerContext<'_>) -> Option<ManualConfirmation> {
    let said = match OffConfirmation::read_from_host(&ctx.seen.host)? {
        Ok(said) => said,
        Err(bad) => {
            let message = format!(
                "annotation {CONFIRMED_OFF_ANNOTATION} {bad}; the Node is not released because of it"
            );
            return Some(void_confirmation(PowerReason::InvalidConfirmation, message));
        }
    };
    let (text, since) = ctx.seen.memory.manual_confirmation.as_ref()?;
    // An annotation that is not in memory yet is judged once it is.
    ctx.seen
        .host
        .annotations
        .get(CONFIRMED_OFF_ANNOTATION)
        .filter(|standing| *standing == text)?;
    let keys = covered_keys(ctx, &said, *since);
    if keys.is_empty() {
        return Some(void_confirmation(
            PowerReason::ConfirmationWithoutKey,
            describe_missing_key(&said),
        ));
    }
    if let Some(message) = describe_contradiction(ctx, &said, *since) {
        return Some(void_confirmation(
            PowerReason::ConfirmationContradicted,
            message,
        ));
    }
    Some(ManualConfirmation::Valid {
        said,
        keys,
        since: *since,
    })
}

pub(super) fn confirmation_event(ctx: &PowerContext<'_>) -> Option<DecisionEvent> {
    Some(match manual_confirmation(ctx)? {
        ManualConfirmation::Invalid { reason, message } => DecisionEvent {
            severity: EventSeverity::Warning,
            reason: reason.as_str(),
            message,
        },
        ManualConfirmation::Valid { said, .. } => DecisionEvent {
            severity: EventSeverity::Normal,
            reason: PowerReason::OffConfirmedByPerson.as_str(),
            message: format!(
                "{} confirmed that the host is off, at {}: {}",
                clip_text(&said.by, MAX_TEXT_CHARS),
                said.at,
                clip_text(&said.reason, MAX_TEXT_CHARS)
            ),
        },
    })
}

fn void_confirmation(reason: PowerReason, message: String) -> ManualConfirmation {
    ManualConfirmation::Invalid { reason, message }
}

/// The keys that it covers: named in it, still on the host, and not newer than it.
fn covered_keys(ctx: &PowerContext<'_>, said: &OffConfirmation, since: Duration) -> Vec<String> {
    let named: BTreeSet<&String> = said.keys.iter().collect();
    let is_older = |key: &HostRebootAnnotation| {
        ctx.annotation_seen_at(key)
            .is_some_and(|seen| seen <= since)
    };
    let keys = ctx
        .obeyed_annotations()
        .filter(|key| key.key.is_some() && is_older(key));
    keys.map(HostRebootAnnotation::id)
        .filter(|id| named.contains(id))
        .collect()
}

fn describe_missing_key(said: &OffConfirmation) -> String {
    let keys: Vec<String> = said
        .keys
        .iter()
        .map(|key| clip_text(key, MAX_TEXT_CHARS))
        .collect();
    format!(
        "{} confirmed off for {}, and the host has had no such key since; if the host is still off, confirm again",
        clip_text(&said.by, MAX_TEXT_CHARS),
        format_names(&keys)
    )
}

/// The newest reading of a level shows a running machine, or one requested after the confirmation
/// did.
fn describe_contradiction(
    ctx: &PowerContext<'_>,
    said: &OffConfirmation,
    since: Duration,
) -> Option<String> {
    let life = |level| {
        let newest = ctx
            .newest_reading(level)
            .filter(|read| read.shows_running());
        let newest = newest
            .filter(|read| ctx.is_reading_fresh(read))
            .map(|read| read.asked);
        let asked = newest.or_else(|| ctx.last_running_at(level, since))?;
        Some((level, asked))
    };
    let (level, asked) = (0..ctx.seen.host.levels.len()).find_map(life)?;
    // It may be the right machine all the same, with a new board: its life counts.
    let other_machine = if level == 0 && ctx.is_bmc_other_machine() {
        format!(
            " ({}: another machine answers at its address than before; correct the BMC's address first)",
            PowerReason::OtherMachineAnswers
        )
    } else {
        String::new()
    };
    Some(format!(
        "{} confirmed that the host is off, but {} reported at {} that it is not{other_machine}; the Node is not \
         released",
        clip_text(&said.by, MAX_TEXT_CHARS),
        power_off::level_name(level),
        ctx.format_time_of(asked)
    ))
}
