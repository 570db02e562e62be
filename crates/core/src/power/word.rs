//! What a person's word on a host is worth now. Source: specification §4.2, manual confirmation.

use std::collections::BTreeSet;
use std::time::Duration;

use super::annotations::{Request, listed};
use super::confirmation::{CONFIRMED_OFF, Confirmation};
use super::context::Context;
use super::{off, reason};
use crate::decision::{Event, Severity};

/// A person's word on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// It stands: for these keys, seen since then.
    Stands {
        said: Confirmation,
        keys: Vec<String>,
        since: Duration,
    },
    /// It is worth nothing: a reason, and a sentence.
    Void {
        reason: &'static str,
        message: String,
    },
}

/// So much of a person's text goes into a sentence.
const LONGEST: usize = 200;

/// The word that stands on the host, if one does.
pub(super) fn word(ctx: &Context<'_>) -> Option<Word> {
    let said = match Confirmation::read(&ctx.seen.host)? {
        Ok(said) => said,
        Err(bad) => {
            let message = format!("annotation {CONFIRMED_OFF} {bad}; nothing is released on it");
            return Some(void(reason::INVALID_CONFIRMATION, message));
        }
    };
    let (text, since) = ctx.seen.memory.word.as_ref()?;
    // What was not taken in yet is judged when it is.
    ctx.seen
        .host
        .annotations
        .get(CONFIRMED_OFF)
        .filter(|standing| *standing == text)?;
    let keys = covered(ctx, &said, *since);
    if keys.is_empty() {
        return Some(void(reason::CONFIRMATION_OF_NOTHING, of_nothing(&said)));
    }
    if let Some(message) = contradicted(ctx, &said, *since) {
        return Some(void(reason::CONFIRMATION_CONTRADICTED, message));
    }
    Some(Word::Stands {
        said,
        keys,
        since: *since,
    })
}

/// What is to be said of it.
pub(super) fn event(ctx: &Context<'_>) -> Option<Event> {
    Some(match word(ctx)? {
        Word::Void { reason, message } => Event {
            severity: Severity::Warning,
            reason,
            message,
        },
        Word::Stands { said, .. } => Event {
            severity: Severity::Normal,
            reason: reason::CONFIRMED_BY_PERSON,
            message: format!(
                "{} says that the host is off, at {}: {}",
                short(&said.by),
                said.at,
                short(&said.reason)
            ),
        },
    })
}

fn void(reason: &'static str, message: String) -> Word {
    Word::Void { reason, message }
}

/// The keys that it is for: those that it names, that still stand there, and that did not come after it.
fn covered(ctx: &Context<'_>, said: &Confirmation, since: Duration) -> Vec<String> {
    let named: BTreeSet<&String> = said.keys.iter().collect();
    let is_older = |key: &Request| ctx.key_seen(key).is_some_and(|seen| seen <= since);
    let keys = ctx
        .obeyed()
        .filter(|key| key.key.is_some() && is_older(key));
    keys.map(Request::id)
        .filter(|id| named.contains(id))
        .collect()
}

fn of_nothing(said: &Confirmation) -> String {
    let keys: Vec<String> = said.keys.iter().map(|key| short(key)).collect();
    format!(
        "what {} confirmed was for {}, and no such key has stood there since; confirm again if it is still off",
        short(&said.by),
        listed(&keys)
    )
}

/// The newest reading of a level shows life, or one does that was asked after the word was there.
fn contradicted(ctx: &Context<'_>, said: &Confirmation, since: Duration) -> Option<String> {
    let life = |level| {
        let newest = ctx.newest(level).filter(|read| read.shows_life());
        let newest = newest
            .filter(|read| ctx.is_fresh(read))
            .map(|read| read.asked);
        let asked = newest.or_else(|| ctx.life(level, since))?;
        Some((level, asked))
    };
    let (level, asked) = (0..ctx.seen.host.levels.len()).find_map(life)?;
    Some(format!(
        "{} says that the host is off, and {} said at {} that it is not; nothing is released",
        short(&said.by),
        off::name(level),
        ctx.second(asked)
    ))
}

/// Anybody may write anything there.
fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("{start}…")
}
