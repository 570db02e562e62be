//! Decides what to write for a power request, and what to refuse.

use dogwatch_core::explain::{ExplainedAnnotation, explained_annotations};
use dogwatch_core::power::{HostSnapshot, PowerState};
use dogwatch_k8s::fleet::HostChange;
use serde_json::{Value, json};

use super::request::{PowerOffMode, PowerOperation, RequestReason};
use crate::command::hosts::HostUnchanged;

/// The annotation that requests one reboot; with `/KEY` behind it, it holds a host off.
const REBOOT_ANNOTATION: &str = dogwatch_api::annotation::METAL3_REBOOT;

/// Parses a key: the part after the slash of an annotation's name.
pub fn parse_key(text: &str) -> Result<String, String> {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let (first, last) = (text.chars().next(), text.chars().last());
    if text.len() <= 63 && ends(first) && ends(last) && text.chars().all(inside) {
        return Ok(text.to_owned());
    }
    Err("write a key of at most 63 letters and digits; - _ and . are allowed between them".into())
}

/// What to write to the host in its present state.
pub fn decide_host_change(
    host: &HostSnapshot,
    wish: &PowerOperation,
    words: &RequestReason<'_>,
) -> Result<HostChange, HostUnchanged> {
    if host.deleting {
        return Err(HostUnchanged::host_is_deleting());
    }
    if wish.cuts_power() && host.disable_power_off {
        return Err(HostUnchanged::refuse_change(
            "has spec.disablePowerOff: Dogwatch can neither switch it off nor prove that it is off",
            "remove spec.disablePowerOff if the BMC keeps its power while the host is off; otherwise reboot the host from its operating system",
        ));
    }
    match wish {
        PowerOperation::On => decide_online(host, true),
        PowerOperation::Off => decide_online(host, false),
        PowerOperation::Cycle { mode, force } => decide_cycle(host, *mode, *force, words),
        PowerOperation::Hold { key, mode, force } => decide_hold(host, key, *mode, *force, words),
        PowerOperation::Release { key } => decide_release(host, key),
    }
}

fn decide_online(host: &HostSnapshot, wanted: bool) -> Result<HostChange, HostUnchanged> {
    if host.online == wanted {
        let word = if wanted { "on" } else { "off" };
        return Err(HostUnchanged::AlreadySet(format!(
            "was already requested to be {word}{}",
            state_text(host)
        )));
    }
    Ok(HostChange::Online(wanted))
}

fn decide_cycle(
    host: &HostSnapshot,
    mode: PowerOffMode,
    force: bool,
    words: &RequestReason<'_>,
) -> Result<HostChange, HostUnchanged> {
    let name = &host.name;
    if !host.online {
        let text = "has spec.online false: after a reboot it would stay off";
        return Err(HostUnchanged::refuse_change(
            text,
            format!("dogwatch power on {name}"),
        ));
    }
    if host.status.power.state == Some(PowerState::Off) && host.status.powered_on == Some(false) {
        let keys = obeyed_keys(host);
        let next = match keys.first() {
            Some(key) => format!("dogwatch power release {name} --key {key}"),
            None => format!("dogwatch explain host/{name}"),
        };
        let held = held_by_text(&keys);
        return Err(HostUnchanged::refuse_change(
            format!("is off{held}: there is nothing to reboot"),
            next,
        ));
    }
    let standing = find_request(host, None);
    if let Some(standing) = standing.filter(|standing| standing.is_obeyed) {
        let is_enough = standing.request.is_hard || mode != PowerOffMode::Hard;
        if is_enough {
            let how = if standing.request.is_hard {
                "hard"
            } else {
                "soft"
            };
            return Err(HostUnchanged::AlreadySet(format!(
                "was already requested to reboot ({how})"
            )));
        }
    }
    check_annotation_obeyed(host, force)?;
    Ok(HostChange::Annotate {
        name: REBOOT_ANNOTATION.into(),
        value: annotation_value(mode, force, words),
    })
}

fn decide_hold(
    host: &HostSnapshot,
    key: &str,
    mode: PowerOffMode,
    force: bool,
    words: &RequestReason<'_>,
) -> Result<HostChange, HostUnchanged> {
    check_annotation_obeyed(host, force)?;
    let name = format!("{REBOOT_ANNOTATION}/{key}");
    let value = annotation_value(mode, force, words);
    match host.annotations.get(&name) {
        None => Ok(HostChange::Annotate { name, value }),
        Some(there) if *there == value => Err(HostUnchanged::AlreadySet(format!(
            "was already requested to be off by key {key}{}",
            state_text(host)
        ))),
        Some(there) => Err(HostUnchanged::refuse_change(
            format!("already has key {key} with another value: {there}"),
            "use another key, or keep this one",
        )),
    }
}

fn decide_release(host: &HostSnapshot, key: &str) -> Result<HostChange, HostUnchanged> {
    let name = format!("{REBOOT_ANNOTATION}/{key}");
    if host.annotations.contains_key(&name) {
        return Ok(HostChange::Remove { name });
    }
    let keys = obeyed_keys(host);
    let text = if keys.is_empty() {
        "has no key that keeps it off".into()
    } else {
        format!("is not kept off by key {key}, but by {}", keys.join(", "))
    };
    Err(HostUnchanged::AlreadySet(text))
}

/// Whether the power controller would obey an annotation on this host.
fn check_annotation_obeyed(host: &HostSnapshot, force: bool) -> Result<(), HostUnchanged> {
    let mut asking = host.clone();
    let value = if force { r#"{"force":true}"# } else { "" };
    asking.annotations = [(REBOOT_ANNOTATION.to_owned(), value.to_owned())].into();
    if explained_annotations(&asking)
        .iter()
        .all(|asked| asked.is_obeyed)
    {
        return Ok(());
    }
    let state = host.status.provisioning.as_deref().unwrap_or("none");
    Err(HostUnchanged::refuse_change(
        format!(
            "is in provisioning state {state}: Dogwatch obeys reboot annotations on provisioned hosts only"
        ),
        "wait until the host is provisioned, or add --force",
    ))
}

fn annotation_value(mode: PowerOffMode, force: bool, words: &RequestReason<'_>) -> String {
    let mode = match mode {
        PowerOffMode::Hard => "hard",
        PowerOffMode::Soft | PowerOffMode::Unspecified => "soft",
    };
    let mut value = json!({ "mode": mode, "requester": words.requester });
    if force {
        value["force"] = Value::Bool(true);
    }
    if !words.reason.is_empty() {
        value["reason"] = words.reason.into();
    }
    value.to_string()
}

/// Whether `dogwatch power hold` wrote the key: then its value names the requester.
pub fn is_written_by_person(host: &HostSnapshot, key: &str) -> bool {
    let value = host.annotations.get(&format!("{REBOOT_ANNOTATION}/{key}"));
    let value = value.and_then(|value| serde_json::from_str::<Value>(value).ok());
    value.is_some_and(|value| value.get("requester").is_some_and(Value::is_string))
}

fn find_request(host: &HostSnapshot, key: Option<&str>) -> Option<ExplainedAnnotation> {
    let mut asked = explained_annotations(host).into_iter();
    asked.find(|asked| asked.request.key.as_deref() == key)
}

/// The keys that hold the host off and are obeyed.
pub fn obeyed_keys(host: &HostSnapshot) -> Vec<String> {
    let obeyed = explained_annotations(host)
        .into_iter()
        .filter(|asked| asked.is_obeyed);
    obeyed.filter_map(|asked| asked.request.key).collect()
}

/// Names the keys that hold the host off; the text follows a state.
pub fn held_by_text(keys: &[String]) -> String {
    if keys.is_empty() {
        String::new()
    } else {
        format!(", kept off by {}", keys.join(", "))
    }
}

fn state_text(host: &HostSnapshot) -> String {
    let state = host.status.power.state.map(PowerState::as_str);
    let state = state.map(|state| format!("; it is {state}"));
    format!(
        "{}{}",
        state.unwrap_or_default(),
        held_by_text(&obeyed_keys(host))
    )
}
