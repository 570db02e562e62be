//! Whether what was asked of a host has come about.

use dogwatch_core::explain::asked;
use dogwatch_core::power::{Command, Host, State};

use super::decide::{held, keys};
use super::wish::Wish;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It came about.
    Reached(String),
    /// It will not.
    Not(String),
}

/// The watch's list may come from before our own write: versions of one object are numbers that grow.
pub fn is_older(host: &Host, asked: &Host) -> bool {
    let version = |host: &Host| host.resource_version.parse::<u64>().ok();
    version(host) < version(asked)
}

/// How it ended, if it did. `before`: as it was when it was asked; `asked`: as our write left it.
pub fn end(wish: &Wish, before: &Host, asked: &Host, host: &Host) -> Option<End> {
    match wish {
        Wish::On => on(host),
        Wish::Off => off(host),
        Wish::Cycle { .. } => cycled(before, asked, host),
        Wish::Hold { key, .. } => held_off(key, host),
        Wish::Release { key } => released(key, host),
    }
}

fn on(host: &Host) -> Option<End> {
    if !host.online {
        return Some(End::Not("is wanted off again (spec.online)".into()));
    }
    is_on(host).then(|| End::Reached("is on".into()))
}

/// On, and nothing is under way or asked for that would take it off.
fn is_on(host: &Host) -> bool {
    let status = &host.status;
    let command = status.power.command.as_ref();
    status.power.state == Some(State::On)
        && command.is_none_or(|command| command.command == Command::On)
        && status.pending_reboot_since <= status.last_powered_on
        && keys(host).is_empty()
}

fn off(host: &Host) -> Option<End> {
    if host.online {
        return Some(End::Not("is wanted on again (spec.online)".into()));
    }
    is_off(host).then(|| End::Reached("is off, and that is confirmed".into()))
}

fn is_off(host: &Host) -> bool {
    let status = &host.status;
    status.power.state == Some(State::Off) && status.power.off_confirmed_at.is_some()
}

fn cycled(before: &Host, asked: &Host, host: &Host) -> Option<End> {
    let status = &host.status;
    if asked_by(host, None).is_some() || status.pending_reboot_since > status.last_powered_on {
        return None;
    }
    if status.last_powered_on > before.status.last_powered_on {
        return is_on(host).then(|| End::Reached("was off, and is on again".into()));
    }
    // Never while our own write is the last that is known of it.
    let changed = host.resource_version != asked.resource_version;
    changed.then(|| {
        End::Not("was not rebooted: the request is gone, and its power was not cut".into())
    })
}

fn held_off(key: &str, host: &Host) -> Option<End> {
    let Some(id) = asked_by(host, Some(key)) else {
        return Some(End::Not(format!("is held off by key {key} no more")));
    };
    let is_proved = is_off(host) && host.status.power.confirmed_for.contains(&id);
    is_proved.then(|| End::Reached("is held off, and that is confirmed".into()))
}

fn released(key: &str, host: &Host) -> Option<End> {
    if asked_by(host, Some(key)).is_some() {
        return Some(End::Not(format!("is held off by key {key} again")));
    }
    let keys = keys(host);
    if !keys.is_empty() {
        return Some(End::Reached(format!("stays off{}", held(&keys))));
    }
    if !host.online {
        return Some(End::Reached("stays off: spec.online is false".into()));
    }
    is_on(host).then(|| End::Reached("is on".into()))
}

/// The id of the annotation, if it is there.
fn asked_by(host: &Host, key: Option<&str>) -> Option<String> {
    let mut asked = asked(host).into_iter();
    let found = asked.find(|asked| asked.request.key.as_deref() == key);
    found.map(|found| found.request.id())
}

#[cfg(test)]
#[path = "end_tests.rs"]
mod tests;
