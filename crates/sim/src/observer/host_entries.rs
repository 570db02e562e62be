//! Describes changes of a BareMetalHost in lines for people.

use dogwatch_core::condition::CurrentCondition;
use dogwatch_core::power::{HostSnapshot, PendingCommand, PendingCommandEnd, REBOOT_ANNOTATION};
use dogwatch_k8s::host::{HostObject, convert_host};
use serde_json::Value;

use super::change_entries::ObserverEntry;
use super::cluster_observer::ObservedChange;

/// Conditions that get their own line; `PowerAsWanted` mostly repeats what other lines say.
const REPORTED_HOST_CONDITIONS: [&str; 2] = ["PowerControlReady", "HeldOff"];

/// Reads a BareMetalHost; `None`: the object is not a valid one.
pub fn parse_host(host: &Value) -> Option<HostSnapshot> {
    let object: HostObject = serde_json::from_value(host.clone()).ok()?;
    Some(convert_host(&object))
}

pub(super) fn host_entries(change: &ObservedChange) -> Vec<ObserverEntry> {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let texts = match (before.and_then(parse_host), after.and_then(parse_host)) {
        (_, None) => vec!["its host is deleted".to_owned()],
        (None, Some(_)) => vec!["its host is there".to_owned()],
        (Some(before), Some(after)) => describe_host_changes(&before, &after),
    };
    let tell = |text| ObserverEntry::from_line(&change.name, text);
    texts.into_iter().map(tell).collect()
}

fn describe_host_changes(before: &HostSnapshot, after: &HostSnapshot) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(describe_pending_reboot(before, after));
    texts.extend(describe_off_proof(before, after));
    texts.extend(describe_served_requests(before, after));
    let (old, new) = (&before.status.power.command, &after.status.power.command);
    texts.extend(describe_command(old.as_ref(), new.as_ref()));
    texts.extend(describe_power(before, after));
    texts.extend(describe_conditions(before, after));
    texts
}

fn describe_pending_reboot(before: &HostSnapshot, after: &HostSnapshot) -> Option<String> {
    let (old, new) = (
        before.status.pending_reboot_since,
        after.status.pending_reboot_since,
    );
    (new.is_some() && old != new).then(|| "a reboot is pending".to_owned())
}

fn describe_off_proof(before: &HostSnapshot, after: &HostSnapshot) -> Option<String> {
    let of = |host: &HostSnapshot| host.status.power.off_confirmed_at;
    match (of(before), of(after)) {
        (None, Some(_)) => Some("off is proved".to_owned()),
        (Some(old), Some(new)) if old != new => Some("off is proved anew".to_owned()),
        (Some(_), None) => Some("no longer proved off".to_owned()),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

/// Describes requests that are gone, whoever removed them.
fn describe_served_requests(before: &HostSnapshot, after: &HostSnapshot) -> Vec<String> {
    let requests = before.annotations.keys();
    let requests = requests.filter(|name| name.starts_with(REBOOT_ANNOTATION));
    let gone = requests.filter(|name| !after.annotations.contains_key(*name));
    gone.map(|name| format!("{name} is gone")).collect()
}

fn describe_command(old: Option<&PendingCommand>, new: Option<&PendingCommand>) -> Option<String> {
    let new = new?;
    let old = old.filter(|old| old.id == new.id);
    match old {
        None => Some(describe_pending_command(new)),
        Some(old) if old.end != new.end => describe_command_end(new),
        Some(_) => None,
    }
}

fn describe_pending_command(new: &PendingCommand) -> String {
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

fn describe_command_end(new: &PendingCommand) -> Option<String> {
    match &new.end {
        PendingCommandEnd::Open => None,
        PendingCommandEnd::Answered { .. } => Some(format!("{} was answered", new.command)),
        PendingCommandEnd::Failed { message, .. } => {
            Some(format!("{} failed: {message}", new.command))
        }
        PendingCommandEnd::Unknown { message, .. } => {
            Some(format!("{} has no known end: {message}", new.command))
        }
    }
}

fn describe_power(before: &HostSnapshot, after: &HostSnapshot) -> Option<String> {
    let (old, new) = (before.status.powered_on, after.status.powered_on);
    let said = match new {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    };
    (old != new).then(|| format!("is said to be {said}"))
}

fn describe_conditions(before: &HostSnapshot, after: &HostSnapshot) -> Vec<String> {
    let of = |host: &HostSnapshot, kind: &str| {
        let mut all = host.status.conditions.iter();
        all.find(|condition| condition.kind == kind).cloned()
    };
    let one = |kind: &&str| {
        let (old, new) = (of(before, kind), of(after, kind)?);
        let is_same =
            |old: &CurrentCondition| (&old.status, &old.reason) == (&new.status, &new.reason);
        (!old.as_ref().is_some_and(is_same))
            .then(|| format!("{kind}={}, {}: {}", new.status, new.reason, new.message))
    };
    REPORTED_HOST_CONDITIONS.iter().filter_map(one).collect()
}
