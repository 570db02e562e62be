//! Reads and writes `status` of a host.

use dogwatch_api::CONTROLLER;
use dogwatch_api::bare_metal_host::{
    BareMetalHostStatus, HostPowerChange, HostPowerCommandEnd, HostPowerCommandStatus,
    HostPowerStatus, HostProvisioningStatus,
};
use dogwatch_core::duration;
use dogwatch_core::power::{
    HostStatus, PendingCommand, PendingCommandEnd, PowerCommand, PowerHistoryEntry, PowerState,
    PowerStatus,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Map, Value};

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

/// A merge patch: absent fields of ours are null, because older values would stay otherwise.
pub(super) fn status_patch(status: &HostStatus) -> Map<String, Value> {
    let written = BareMetalHostStatus {
        powered_on: status.powered_on,
        provisioning: Some(HostProvisioningStatus {
            state: status.provisioning.clone(),
            last_powered_on: status.last_powered_on.map(MicroTime),
            pending_reboot_since: status.pending_reboot_since.map(MicroTime),
            ..HostProvisioningStatus::default()
        }),
        power: Some(power_status(&status.power)),
        ..BareMetalHostStatus::default()
    };
    match serde_json::to_value(written) {
        Ok(Value::Object(written)) => written,
        other => unreachable!("a struct of texts and numbers: {other:?}"),
    }
}

fn power_status(power: &PowerStatus) -> HostPowerStatus {
    let history: Vec<_> = power.history.iter().map(power_change).collect();
    HostPowerStatus {
        state: power.state,
        observed_at: power.observed_at.map(MicroTime),
        off_confirmed_at: power.off_confirmed_at.map(MicroTime),
        confirmed_for: (!power.confirmed_for.is_empty()).then(|| power.confirmed_for.clone()),
        command: power.command.as_ref().map(command_status),
        obeyed_in: power.obeyed_in.clone(),
        externally_provisioned: power.externally_provisioned,
        history: (!history.is_empty()).then_some(history),
    }
}

fn command_status(command: &PendingCommand) -> HostPowerCommandStatus {
    let (end, at, message) = match &command.end {
        PendingCommandEnd::Open => (HostPowerCommandEnd::Open, None, None),
        PendingCommandEnd::Answered { at } => (HostPowerCommandEnd::Answered, Some(*at), None),
        PendingCommandEnd::Failed { at, message } => {
            (HostPowerCommandEnd::Failed, Some(*at), Some(message))
        }
        PendingCommandEnd::Unknown { at, message } => {
            (HostPowerCommandEnd::Unknown, Some(*at), Some(message))
        }
    };
    HostPowerCommandStatus {
        id: Some(command.id.clone()),
        command: Some(command.command),
        level: Some(command.level),
        target: Some(command.target.clone()),
        since: Some(MicroTime(command.since)),
        at: Some(MicroTime(command.at)),
        attempt: Some(command.attempt),
        before: Some(command.before),
        after_unknown: Some(command.after_unknown),
        why: Some(command.why.clone()),
        end: Some(end),
        ended_at: at.map(MicroTime),
        message: message.cloned(),
    }
}

fn power_change(done: &PowerHistoryEntry) -> HostPowerChange {
    HostPowerChange {
        what: Some(done.what),
        why: Some(done.why.clone()),
        at: Some(MicroTime(done.at)),
        outcome: Some(done.outcome.clone()),
        took: Some(duration::format_duration(done.took)),
        attempts: Some(done.attempts),
    }
}

fn parse_power(power: &Value) -> PowerStatus {
    let list = |name: &str| power[name].as_array().into_iter().flatten();
    PowerStatus {
        state: power["state"].as_str().and_then(PowerState::from_text),
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
    let known = command["command"]
        .as_str()
        .and_then(PowerCommand::from_text);
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
        what: PowerCommand::from_text(done["what"].as_str()?)?,
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
