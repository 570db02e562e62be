//! `status`: read from an object, and as it is written.

use dogwatch_api::CONTROLLER;
use dogwatch_core::duration;
use dogwatch_core::power::{Command, Done, End, HostStatus, Intention, PowerStatus, State};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::object::HostObject;
use crate::condition;
use crate::field::{last_status_write, text, time};

/// What stands there. A part that cannot be read never makes the host look safer than it is.
pub(super) fn read(object: &HostObject) -> HostStatus {
    let status = &object.status;
    let provisioning = &status["provisioning"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let last_write = last_status_write(&object.metadata, CONTROLLER);
    let state = text(&provisioning["state"]);
    let operational = text(&status["operationalStatus"]);
    HostStatus {
        powered_on: status["poweredOn"].as_bool(),
        operational: (!operational.is_empty()).then_some(operational),
        provisioning: (!state.is_empty()).then_some(state),
        last_powered_on: ordering_time(&provisioning["lastPoweredOn"]),
        pending_reboot_since: ordering_time(&provisioning["pendingRebootSince"]),
        power: power(&status["power"]),
        conditions: conditions
            .map(|it| condition::read(it, last_write))
            .collect(),
    }
}

/// As a merge patch: what is absent is null, or an older one would stay.
pub(super) fn written(status: &HostStatus) -> Map<String, Value> {
    let mut provisioning = json!({
        "lastPoweredOn": status.last_powered_on.map(micros),
        "pendingRebootSince": status.pending_reboot_since.map(micros),
    });
    if let Some(state) = &status.provisioning {
        provisioning["state"] = json!(state);
    }
    let mut written = Map::new();
    if let Some(powered_on) = status.powered_on {
        written.insert("poweredOn".into(), json!(powered_on));
    }
    written.insert("provisioning".into(), provisioning);
    written.insert("power".into(), power_written(&status.power));
    written
}

fn power_written(power: &PowerStatus) -> Value {
    let history: Vec<Value> = power.history.iter().map(done_written).collect();
    json!({
        "state": power.state.map(State::as_str),
        "observedAt": power.observed_at.map(micros),
        "offConfirmedAt": power.off_confirmed_at.map(micros),
        "confirmedFor": (!power.confirmed_for.is_empty()).then_some(&power.confirmed_for),
        "command": power.command.as_ref().map(command_written),
        "obeyedIn": power.obeyed_in,
        "externallyProvisioned": power.externally_provisioned,
        "history": (!history.is_empty()).then_some(history),
    })
}

fn command_written(command: &Intention) -> Value {
    let (end, at, message) = match &command.end {
        End::Open => ("Open", None, None),
        End::Answered { at } => ("Answered", Some(*at), None),
        End::Failed { at, message } => ("Failed", Some(*at), Some(message)),
        End::Unknown { at, message } => ("Unknown", Some(*at), Some(message)),
    };
    json!({
        "id": command.id,
        "command": command.command.as_str(),
        "level": command.level,
        "target": command.target,
        "since": micros(command.since),
        "at": micros(command.at),
        "attempt": command.attempt,
        "before": command.before,
        "afterUnknown": command.after_unknown,
        "why": command.why,
        "end": end,
        "endedAt": at.map(micros),
        "message": message,
    })
}

fn done_written(done: &Done) -> Value {
    json!({
        "what": done.what.as_str(),
        "why": done.why,
        "at": micros(done.at),
        "outcome": done.outcome,
        "took": duration::format(done.took),
        "attempts": done.attempts,
    })
}

/// RFC 3339 with microseconds: the times order what happened.
pub(super) fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn power(power: &Value) -> PowerStatus {
    let list = |name: &str| power[name].as_array().into_iter().flatten();
    PowerStatus {
        state: power["state"].as_str().and_then(State::parse),
        observed_at: time(&power["observedAt"]),
        off_confirmed_at: time(&power["offConfirmedAt"]),
        confirmed_for: list("confirmedFor").map(text).collect(),
        command: command(&power["command"]),
        obeyed_in: power["obeyedIn"].as_str().map(str::to_owned),
        externally_provisioned: power["externallyProvisioned"].as_bool(),
        history: list("history").filter_map(done).collect(),
    }
}

/// A command that stands there in a form that nobody knows may be under way, whatever it is.
fn command(command: &Value) -> Option<Intention> {
    if command.is_null() {
        return None;
    }
    let at = time(&command["at"]).unwrap_or(Timestamp::UNIX_EPOCH);
    let known = command["command"].as_str().and_then(Command::parse);
    let end = known.and_then(|_| end(command));
    Some(Intention {
        id: text(&command["id"]),
        command: known.unwrap_or(Command::Off),
        level: usize::try_from(command["level"].as_u64().unwrap_or_default()).unwrap_or_default(),
        target: text(&command["target"]),
        since: time(&command["since"]).unwrap_or(at),
        at,
        attempt: number(&command["attempt"]),
        before: number(&command["before"]),
        after_unknown: command["afterUnknown"].as_bool().unwrap_or(true),
        why: text(&command["why"]),
        end: end.unwrap_or_else(|| End::Unknown {
            at,
            message: "what stands in status.power.command cannot be read".to_owned(),
        }),
    })
}

fn end(command: &Value) -> Option<End> {
    let at = time(&command["endedAt"]);
    let message = text(&command["message"]);
    match command["end"].as_str()? {
        "Open" => Some(End::Open),
        "Answered" => Some(End::Answered { at: at? }),
        "Failed" => Some(End::Failed { at: at?, message }),
        "Unknown" => Some(End::Unknown { at: at?, message }),
        _ => None,
    }
}

fn done(done: &Value) -> Option<Done> {
    Some(Done {
        what: Command::parse(done["what"].as_str()?)?,
        why: text(&done["why"]),
        at: time(&done["at"])?,
        outcome: text(&done["outcome"]),
        took: duration::parse(done["took"].as_str()?).ok()?,
        attempts: number(&done["attempts"]),
    })
}

/// A time that orders a reboot. One that cannot be read leaves no room for a later one, which is said,
/// and lets nothing happen; taken for absent it would undo a reboot that is due.
fn ordering_time(value: &Value) -> Option<Timestamp> {
    (!value.is_null()).then(|| time(value).unwrap_or(Timestamp::MAX))
}

fn number(value: &Value) -> u32 {
    value
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or_default()
}
