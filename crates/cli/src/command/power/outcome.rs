//! Decides whether a power request is done.

use dogwatch_core::explain::explained_annotations;
use dogwatch_core::power::{HostSnapshot, PowerCommand, PowerState};
use dogwatch_core::resource_version::is_older_version;

use super::decide::{held_by_text, obeyed_keys};
use super::request::PowerOperation;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerRequestOutcome {
    Reached(String),
    NotReached(String),
}

/// The watch's list may be older than our own write.
pub fn is_older_host(host: &HostSnapshot, asked: &HostSnapshot) -> bool {
    is_older_version(&host.resource_version, &asked.resource_version)
}

/// `before` is the host before the request, `asked` the host as our write left it. Returns `None`
/// while the request goes on.
pub fn request_outcome(
    wish: &PowerOperation,
    before: &HostSnapshot,
    asked: &HostSnapshot,
    host: &HostSnapshot,
) -> Option<PowerRequestOutcome> {
    match wish {
        PowerOperation::On => on_outcome(host),
        PowerOperation::Off => off_outcome(host),
        PowerOperation::Cycle { .. } => cycle_outcome(before, asked, host),
        PowerOperation::Hold { key, .. } => hold_outcome(key, host),
        PowerOperation::Release { key } => release_outcome(key, host),
    }
}

fn on_outcome(host: &HostSnapshot) -> Option<PowerRequestOutcome> {
    if !host.online {
        return Some(PowerRequestOutcome::NotReached(
            "was requested to be off again (spec.online)".into(),
        ));
    }
    is_powered_on(host).then(|| PowerRequestOutcome::Reached("is on".into()))
}

/// The host is on, and nothing under way or requested would switch it off.
fn is_powered_on(host: &HostSnapshot) -> bool {
    let status = &host.status;
    let command = status.power.command.as_ref();
    status.power.state == Some(PowerState::On)
        && command.is_none_or(|command| command.command == PowerCommand::On)
        && status.pending_reboot_since <= status.last_powered_on
        && obeyed_keys(host).is_empty()
}

fn off_outcome(host: &HostSnapshot) -> Option<PowerRequestOutcome> {
    if host.online {
        return Some(PowerRequestOutcome::NotReached(
            "was requested to be on again (spec.online)".into(),
        ));
    }
    is_confirmed_off(host).then(|| PowerRequestOutcome::Reached("is confirmed off".into()))
}

fn is_confirmed_off(host: &HostSnapshot) -> bool {
    let status = &host.status;
    status.power.state == Some(PowerState::Off) && status.power.off_confirmed_at.is_some()
}

fn cycle_outcome(
    before: &HostSnapshot,
    asked: &HostSnapshot,
    host: &HostSnapshot,
) -> Option<PowerRequestOutcome> {
    let status = &host.status;
    if find_request_id(host, None).is_some() || status.pending_reboot_since > status.last_powered_on
    {
        return None;
    }
    if status.last_powered_on > before.status.last_powered_on {
        return is_powered_on(host)
            .then(|| PowerRequestOutcome::Reached("was off and is on again".into()));
    }
    // No verdict while our own write is the last known version.
    let changed = host.resource_version != asked.resource_version;
    changed.then(|| {
        PowerRequestOutcome::NotReached(
            "was not rebooted: the request was removed before the power was cut".into(),
        )
    })
}

fn hold_outcome(key: &str, host: &HostSnapshot) -> Option<PowerRequestOutcome> {
    let Some(id) = find_request_id(host, Some(key)) else {
        return Some(PowerRequestOutcome::NotReached(format!(
            "is no longer kept off by key {key}"
        )));
    };
    let is_proved = is_confirmed_off(host) && host.status.power.confirmed_for.contains(&id);
    is_proved.then(|| PowerRequestOutcome::Reached("is kept off and confirmed off".into()))
}

fn release_outcome(key: &str, host: &HostSnapshot) -> Option<PowerRequestOutcome> {
    if find_request_id(host, Some(key)).is_some() {
        return Some(PowerRequestOutcome::NotReached(format!(
            "is kept off by key {key} again"
        )));
    }
    let keys = obeyed_keys(host);
    if !keys.is_empty() {
        return Some(PowerRequestOutcome::Reached(format!(
            "stays off{}",
            held_by_text(&keys)
        )));
    }
    if !host.online {
        return Some(PowerRequestOutcome::Reached(
            "stays off: spec.online is false".into(),
        ));
    }
    is_powered_on(host).then(|| PowerRequestOutcome::Reached("is on".into()))
}

/// The id of the annotation, if the host carries it.
fn find_request_id(host: &HostSnapshot, key: Option<&str>) -> Option<String> {
    let mut asked = explained_annotations(host).into_iter();
    let found = asked.find(|asked| asked.request.key.as_deref() == key);
    found.map(|found| found.request.id())
}

#[cfg(test)]
#[path = "end_tests.rs"]
mod tests;
