//! Reads and writes `status` of a host.

use dogwatch_api::CONTROLLER;
use dogwatch_core::duration;
use dogwatch_core::power::{
    HostStatus, PendingCommand, PendingCommandEnd, PowerCommand, PowerHistoryEntry, PowerState,
    PowerStatus,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::object::HostObject;
use crate::condition;
use crate::json_field::{last_status_write, parse_text, parse_time};

/// An unreadable part never makes the host look safer than it is.
pub(super) fn parse_status(object: &HostObject) -> HostStatus {
    let status = &object.status;
    let provisioning = &status["provisioning"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let last_write = last_status_write(&object.metadata, CONTROLLER);
    let state = parse_text(&provisioning["state"]);
    let operational = parse_text(&status["operationalStatus"]);
    HostStatus {
        powered_on: status["poweredOn"].as_bool(),
        operational: (!operational.is_empty()).then_some(operational),
        provisioning: (!state.is_empty()).then_some(state),
        last_powered_on: parse_ordering_time(&provisioning["lastPoweredOn"]),
        pending_reboot_since: parse_ordering_time(&provisioning["pendingRebootSince"]),
        power: parse_power(&status["power"]),
        conditions: conditions
            .map(|it| condition::parse_condition(it, last_write))
            .collect(),
    }
}

/// A merge patch: absent fields are null, because older values would stay otherwise.
pub(super) fn status_patch(status: &HostStatus) -> Map<String, Value> {
    let mut provisioning = json!({
        "lastPoweredOn": status.last_powered_on.map(format_micros),
        "pendingRebootSince": status.pending_reboot_since.map(format_micros),
    });
    if let Some(state) = &status.provisioning {
        provisioning["state"] = json!(state);
    }
    let mut written = Map::new();
    if let Some(powered_on) = status.powered_on {
        written.insert("poweredOn".into(), json!(powered_on));
    }
    written.insert("provisioning".into(), provisioning);
    written.insert("power".into(), power_patch(&status.power));
    written
}

fn power_patch(power: &PowerStatus) -> Value {
    let history: Vec<Value> = power.history.iter().map(history_entry_patch).collect();
    json!({
        "state": power.state.map(PowerState::as_str),
        "observedAt": power.observed_at.map(format_micros),
        "offConfirmedAt": power.off_confirmed_at.map(format_micros),
        "confirmedFor": (!power.confirmed_for.is_empty()).then_some(&power.confirmed_for),
        "command": power.command.as_ref().map(command_patch),
        "obeyedIn": power.obeyed_in,
        "externallyProvisioned": power.externally_provisioned,
        "history": (!history.is_empty()).then_some(history),
    })
}

fn command_patch(command: &PendingCommand) -> Value {
    let (end, at, message) = match &command.end {
        PendingCommandEnd::Open => ("Open", None, None),
        PendingCommandEnd::Answered { at } => ("Answered", Some(*at), None),
        PendingCommandEnd::Failed { at, message } => ("Failed", Some(*at), Some(message)),
        PendingCommandEnd::Unknown { at, message } => ("Unknown", Some(*at), Some(message)),
    };
    json!({
        "id": command.id,
        "command": command.command.as_str(),
        "level": command.level,
        "target": command.target,
        "since": format_micros(command.since),
        "at": format_micros(command.at),
        "attempt": command.attempt,
        "before": command.before,
        "afterUnknown": command.after_unknown,
        "why": command.why,
        "end": end,
        "endedAt": at.map(format_micros),
        "message": message,
    })
}

fn history_entry_patch(done: &PowerHistoryEntry) -> Value {
    json!({
        "what": done.what.as_str(),
        "why": done.why,
        "at": format_micros(done.at),
        "outcome": done.outcome,
        "took": duration::format_duration(done.took),
        "attempts": done.attempts,
    })
}

/// RFC 3339 with microseconds: these times order events.
pub(super) fn format_micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn parse_power(power: &Value) -> PowerStatus {
    let list = |name: &str| power[name].as_array().into_iter().flatten();
    PowerStatus {
        state: power["state"].as_str().and_then(PowerState::parse),
        observed_at: parse_time(&power["observedAt"]),
        off_confirmed_at: parse_time(&power["offConfirmedAt"]),
        confirmed_for: list("confirmedFor").map(parse_text).collect(),
        command: parse_command(&power["command"]),
        obeyed_in: power["obeyedIn"].as_str().map(str::to_owned),
        externally_provisioned: power["externallyProvisioned"].as_bool(),
        history: list("history").filter_map(parse_history_entry).collect(),
    }
}

/// A command of unknown form may still be running.
fn parse_command(command: &Value) -> Option<PendingCommand> {
    if command.is_null() {
        return None;
    }
    let at = parse_time(&command["at"]).unwrap_or(Timestamp::UNIX_EPOCH);
    let known = command["command"].as_str().and_then(PowerCommand::parse);
    let end = known.and_then(|_| parse_command_end(command));
    Some(PendingCommand {
        id: parse_text(&command["id"]),
        command: known.unwrap_or(PowerCommand::Off),
        level: usize::try_from(command["level"].as_u64().unwrap_or_default()).unwrap_or_default(),
        target: parse_text(&command["target"]),
        since: parse_time(&command["since"]).unwrap_or(at),
        at,
        attempt: parse_number(&command["attempt"]),
        before: parse_number(&command["before"]),
        after_unknown: command["afterUnknown"].as_bool().unwrap_or(true),
        why: parse_text(&command["why"]),
        end: end.unwrap_or_else(|| PendingCommandEnd::Unknown {
            at,
            message: "status.power.command cannot be read".to_owned(),
        }),
    })
}

fn parse_command_end(command: &Value) -> Option<PendingCommandEnd> {
    let at = parse_time(&command["endedAt"]);
    let message = parse_text(&command["message"]);
    match command["end"].as_str()? {
        "Open" => Some(PendingCommandEnd::Open),
        "Answered" => Some(PendingCommandEnd::Answered { at: at? }),
        "Failed" => Some(PendingCommandEnd::Failed { at: at?, message }),
        "Unknown" => Some(PendingCommandEnd::Unknown { at: at?, message }),
        _ => None,
    }
}

fn parse_history_entry(done: &Value) -> Option<PowerHistoryEntry> {
    Some(PowerHistoryEntry {
        what: PowerCommand::parse(done["what"].as_str()?)?,
        why: parse_text(&done["why"]),
        at: parse_time(&done["at"])?,
        outcome: parse_text(&done["outcome"]),
        took: duration::parse_duration(done["took"].as_str()?).ok()?,
        attempts: parse_number(&done["attempts"]),
    })
}

/// A time that orders a reboot. An unreadable one becomes the latest possible time: no later time
/// exists, nothing happens, and the status says so. Treated as absent, it would cancel a reboot
/// that is due.
fn parse_ordering_time(value: &Value) -> Option<Timestamp> {
    (!value.is_null()).then(|| parse_time(value).unwrap_or(Timestamp::MAX))
}

fn parse_number(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or_default()
}
