//! A change of a BareMetalHost, as a person reads it.

use dogwatch_core::condition::Condition;
use dogwatch_core::power::{End, Host, Intention, REBOOT};
use dogwatch_k8s::host::{HostObject, convert};
use serde_json::Value;

use super::lines::Entry;
use super::observer::Change;

/// Conditions that are told; `PowerAsWanted` says more often what else is told.
const TOLD: [&str; 2] = ["PowerControlReady", "HeldOff"];

/// Reads a BareMetalHost; `None`: it is none.
pub fn host_of(host: &Value) -> Option<Host> {
    let object: HostObject = serde_json::from_value(host.clone()).ok()?;
    Some(convert(&object))
}

pub(super) fn lines(change: &Change) -> Vec<Entry> {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let texts = match (before.and_then(host_of), after.and_then(host_of)) {
        (_, None) => vec!["its host is deleted".to_owned()],
        (None, Some(_)) => vec!["its host is there".to_owned()],
        (Some(before), Some(after)) => changes(&before, &after),
    };
    let tell = |text| Entry::line(&change.name, text);
    texts.into_iter().map(tell).collect()
}

fn changes(before: &Host, after: &Host) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(pending(before, after));
    texts.extend(proof(before, after));
    texts.extend(served(before, after));
    let (old, new) = (&before.status.power.command, &after.status.power.command);
    texts.extend(command(old.as_ref(), new.as_ref()));
    texts.extend(power(before, after));
    texts.extend(conditions(before, after));
    texts
}

fn pending(before: &Host, after: &Host) -> Option<String> {
    let (old, new) = (
        before.status.pending_reboot_since,
        after.status.pending_reboot_since,
    );
    (new.is_some() && old != new).then(|| "a reboot is pending".to_owned())
}

fn proof(before: &Host, after: &Host) -> Option<String> {
    let of = |host: &Host| host.status.power.off_confirmed_at;
    match (of(before), of(after)) {
        (None, Some(_)) => Some("off is proved".to_owned()),
        (Some(old), Some(new)) if old != new => Some("off is proved anew".to_owned()),
        (Some(_), None) => Some("off holds no more".to_owned()),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// Requests that are gone, whoever took them away.
fn served(before: &Host, after: &Host) -> Vec<String> {
    let requests = before.annotations.keys();
    let requests = requests.filter(|name| name.starts_with(REBOOT));
    let gone = requests.filter(|name| !after.annotations.contains_key(*name));
    gone.map(|name| format!("{name} is gone")).collect()
}

fn command(old: Option<&Intention>, new: Option<&Intention>) -> Option<String> {
    let new = new?;
    let old = old.filter(|old| old.id == new.id);
    match old {
        None => Some(intention(new)),
        Some(old) if old.end != new.end => end(new),
        Some(_) => None,
    }
}

fn intention(new: &Intention) -> String {
    let attempt = match new.attempt {
        1 => String::new(),
        number => format!(", attempt {number}"),
    };
    let level = match new.level {
        0 => String::new(),
        number => format!(", level {number}"),
    };
    format!("intends {}: {}{attempt}{level}", new.command, new.why)
}

fn end(new: &Intention) -> Option<String> {
    match &new.end {
        End::Open => None,
        End::Answered { .. } => Some(format!("{} was answered", new.command)),
        End::Failed { message, .. } => Some(format!("{} failed: {message}", new.command)),
        End::Unknown { message, .. } => {
            Some(format!("{} has no known end: {message}", new.command))
        }
    }
}

fn power(before: &Host, after: &Host) -> Option<String> {
    let (old, new) = (before.status.powered_on, after.status.powered_on);
    let said = match new {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    };
    (old != new).then(|| format!("is said to be {said}"))
}

fn conditions(before: &Host, after: &Host) -> Vec<String> {
    let of = |host: &Host, kind: &str| {
        let mut all = host.status.conditions.iter();
        all.find(|condition| condition.kind == kind).cloned()
    };
    let one = |kind: &&str| {
        let (old, new) = (of(before, kind), of(after, kind)?);
        let is_same = |old: &Condition| (&old.status, &old.reason) == (&new.status, &new.reason);
        (!old.as_ref().is_some_and(is_same))
            .then(|| format!("{kind}={}, {}: {}", new.status, new.reason, new.message))
    };
    TOLD.iter().filter_map(one).collect()
}
