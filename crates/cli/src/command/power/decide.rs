//! What is written for a wish, and what is not.

use dogwatch_core::explain::{Asked, asked};
use dogwatch_core::power::{Host, State};
use dogwatch_k8s::fleet::HostChange;
use serde_json::{Value, json};

use super::wish::{Mode, Wish, Words};
use crate::command::hosts::No;

/// The annotation that asks for one reboot, and the beginning of those that hold a host off.
const REBOOT: &str = dogwatch_api::annotation::METAL3_REBOOT;

/// What follows the slash of an annotation's name.
pub fn key(text: &str) -> Result<String, String> {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let (first, last) = (text.chars().next(), text.chars().last());
    if text.len() <= 63 && ends(first) && ends(last) && text.chars().all(inside) {
        return Ok(text.to_owned());
    }
    Err("a key has letters, digits, - _ and . inside, and up to 63 of them".into())
}

/// What to write on the host as it stands.
pub fn judge(host: &Host, wish: &Wish, words: &Words<'_>) -> Result<HostChange, No> {
    if host.deleting {
        return Err(No::deleting());
    }
    if wish.cuts_power() && host.disable_power_off {
        return Err(No::refused(
            "has spec.disablePowerOff: it can neither be switched off nor be proved off",
            "unset it where its BMC keeps power while the host is off; else reboot it from inside",
        ));
    }
    match wish {
        Wish::On => online(host, true),
        Wish::Off => online(host, false),
        Wish::Cycle { mode, force } => cycle(host, *mode, *force, words),
        Wish::Hold { key, mode, force } => hold(host, key, *mode, *force, words),
        Wish::Release { key } => release(host, key),
    }
}

fn online(host: &Host, wanted: bool) -> Result<HostChange, No> {
    if host.online == wanted {
        let word = if wanted { "on" } else { "off" };
        return Err(No::Already(format!(
            "was asked to be {word} already{}",
            state(host)
        )));
    }
    Ok(HostChange::Online(wanted))
}

fn cycle(host: &Host, mode: Mode, force: bool, words: &Words<'_>) -> Result<HostChange, No> {
    let name = &host.name;
    if !host.online {
        let text = "is wanted off (spec.online): a reboot would not bring it back";
        return Err(No::refused(text, format!("dogwatch power on {name}")));
    }
    if host.status.power.state == Some(State::Off) && host.status.powered_on == Some(false) {
        let keys = keys(host);
        let next = match keys.first() {
            Some(key) => format!("dogwatch power release {name} --key {key}"),
            None => format!("dogwatch explain host/{name}"),
        };
        let held = held(&keys);
        return Err(No::refused(
            format!("is off{held}: there is nothing to reboot"),
            next,
        ));
    }
    let standing = standing(host, None);
    if let Some(standing) = standing.filter(|standing| standing.is_obeyed) {
        let is_enough = standing.request.is_hard || mode != Mode::Hard;
        if is_enough {
            let how = if standing.request.is_hard {
                "hard"
            } else {
                "soft"
            };
            return Err(No::Already(format!("was asked to reboot already ({how})")));
        }
    }
    obeyed(host, force)?;
    Ok(HostChange::Annotate {
        name: REBOOT.into(),
        value: value(mode, force, words),
    })
}

fn hold(
    host: &Host,
    key: &str,
    mode: Mode,
    force: bool,
    words: &Words<'_>,
) -> Result<HostChange, No> {
    obeyed(host, force)?;
    let name = format!("{REBOOT}/{key}");
    let value = value(mode, force, words);
    match host.annotations.get(&name) {
        None => Ok(HostChange::Annotate { name, value }),
        Some(there) if *there == value => Err(No::Already(format!(
            "was asked to be off by key {key} already{}",
            state(host)
        ))),
        Some(there) => Err(No::refused(
            format!("has key {key} already, with another value: {there}"),
            "take a key of your own, or leave it",
        )),
    }
}

fn release(host: &Host, key: &str) -> Result<HostChange, No> {
    let name = format!("{REBOOT}/{key}");
    if host.annotations.contains_key(&name) {
        return Ok(HostChange::Remove { name });
    }
    let keys = keys(host);
    let text = if keys.is_empty() {
        "is held off by no key".into()
    } else {
        format!("is not held off by key {key}, but by {}", keys.join(", "))
    };
    Err(No::Already(text))
}

/// Whether an annotation would be obeyed.
fn obeyed(host: &Host, force: bool) -> Result<(), No> {
    let mut asking = host.clone();
    let value = if force { r#"{"force":true}"# } else { "" };
    asking.annotations = [(REBOOT.to_owned(), value.to_owned())].into();
    if asked(&asking).iter().all(|asked| asked.is_obeyed) {
        return Ok(());
    }
    let state = host.status.provisioning.as_deref().unwrap_or("none");
    Err(No::refused(
        format!(
            "is in provisioning state {state}: reboot annotations are obeyed on provisioned hosts only"
        ),
        "wait until it is provisioned, or say --force",
    ))
}

fn value(mode: Mode, force: bool, words: &Words<'_>) -> String {
    let mode = match mode {
        Mode::Hard => "hard",
        Mode::Soft | Mode::NotSaid => "soft",
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

/// Whether `dogwatch power hold` wrote the key: its value says who asked.
pub fn is_a_persons(host: &Host, key: &str) -> bool {
    let value = host.annotations.get(&format!("{REBOOT}/{key}"));
    let value = value.and_then(|value| serde_json::from_str::<Value>(value).ok());
    value.is_some_and(|value| value.get("requester").is_some_and(Value::is_string))
}

fn standing(host: &Host, key: Option<&str>) -> Option<Asked> {
    let mut asked = asked(host).into_iter();
    asked.find(|asked| asked.request.key.as_deref() == key)
}

/// The keys that hold it off.
pub fn keys(host: &Host) -> Vec<String> {
    let obeyed = asked(host).into_iter().filter(|asked| asked.is_obeyed);
    obeyed.filter_map(|asked| asked.request.key).collect()
}

/// Who holds it off, behind a state.
pub fn held(keys: &[String]) -> String {
    if keys.is_empty() {
        String::new()
    } else {
        format!(", held off by {}", keys.join(", "))
    }
}

fn state(host: &Host) -> String {
    let state = host.status.power.state.map(State::as_str);
    let state = state.map(|state| format!("; it is {state}"));
    format!("{}{}", state.unwrap_or_default(), held(&keys(host)))
}
