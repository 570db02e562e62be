//! Tests the patches of hosts.

use std::time::Duration;

use dogwatch_core::condition::{ConditionStatus, ConditionWrite, DesiredCondition};
use dogwatch_core::power::{
    HostStatus, PendingCommand, PendingCommandEnd, PowerCommand, PowerHistoryEntry, PowerState,
    PowerStatus, StatusWrite,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::object::HostObject;
use super::super::{status, write};
use super::host;

fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(1_790_000_000_000_000 + microseconds).unwrap()
}

fn command(end: PendingCommandEnd) -> PendingCommand {
    PendingCommand {
        id: "p/1".into(),
        command: PowerCommand::SoftOff,
        level: 1,
        target: "abc".into(),
        since: at(3),
        at: at(4),
        attempt: 2,
        before: 1,
        after_unknown: false,
        why: "HeldOff".into(),
        end,
    }
}

fn full(end: PendingCommandEnd) -> HostStatus {
    HostStatus {
        powered_on: Some(false),
        operational: None,
        provisioning: Some("externally provisioned".into()),
        last_powered_on: Some(at(1)),
        pending_reboot_since: Some(at(2)),
        power: PowerStatus {
            state: Some(PowerState::Off),
            observed_at: Some(at(5)),
            off_confirmed_at: Some(at(6)),
            confirmed_for: vec!["reboot.metal3.io/k=1".into()],
            command: Some(command(end)),
            obeyed_in: Some("provisioned".into()),
            externally_provisioned: Some(true),
            history: vec![PowerHistoryEntry {
                what: PowerCommand::Off,
                why: "HeldOff".into(),
                at: at(7),
                outcome: "PoweredOff".into(),
                took: Duration::from_millis(4_250),
                attempts: 3,
            }],
        },
        conditions: Vec::new(),
    }
}

#[test]
fn a_status_reads_back_as_it_was_written_to_the_microsecond() {
    let (at, message) = (at(9), "no answer".to_owned());
    for end in [
        PendingCommandEnd::Open,
        PendingCommandEnd::Answered { at },
        PendingCommandEnd::Failed {
            at,
            message: message.clone(),
        },
        PendingCommandEnd::Unknown { at, message },
    ] {
        let written = status::status_patch(&full(end.clone()));
        assert_eq!(
            host(&json!({ "online": true }), &Value::Object(written)).status,
            full(end)
        );
    }
}

#[test]
fn the_schema_knows_every_field_that_is_written() {
    let crd = dogwatch_api::bare_metal_host::host_crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let end = PendingCommandEnd::Failed {
        at: at(9),
        message: "x".into(),
    };
    let written = Value::Object(status::status_patch(&full(end)));
    knows(schema, &written, "status");
}

fn knows(schema: &Value, value: &Value, path: &str) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let part = &schema["properties"][name];
                assert!(part.is_object(), "{path}.{name} is not in the schema");
                knows(part, value, &format!("{path}.{name}"));
            }
        }
        Value::Array(items) => {
            for item in items {
                knows(&schema["items"], item, &format!("{path}[]"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn writing(status: HostStatus) -> StatusWrite {
    StatusWrite {
        status,
        why: "test",
    }
}

fn condition(kind: &'static str, reason: &str) -> ConditionWrite {
    ConditionWrite {
        observation: DesiredCondition {
            kind,
            status: ConditionStatus::True,
            reason: reason.into(),
            message: "m".into(),
            heartbeat: false,
            shows_reason: false,
        },
        last_transition: at(0),
    }
}

#[test]
fn every_write_names_the_incarnation_and_the_version_it_was_made_for() {
    let host = host(&json!({ "online": true }), &json!({ "poweredOn": true }));
    let body = write::status_patch_body(&host, &writing(full(PendingCommandEnd::Open)), &[], None);
    let expected = json!({ "uid": "u", "resourceVersion": "7" });
    assert_eq!(body["metadata"], expected);
    assert_eq!(write::patch_precondition(&host), expected);
}

#[test]
fn what_is_absent_is_said_to_be_absent() {
    let host = host(&json!({ "online": true }), &json!({ "poweredOn": true }));
    let body = write::status_patch_body(&host, &writing(HostStatus::default()), &[], None);
    assert_eq!(
        body["status"],
        json!({
            "provisioning": { "lastPoweredOn": null, "pendingRebootSince": null },
            "power": { "state": null, "observedAt": null, "offConfirmedAt": null, "confirmedFor": null,
                "command": null, "obeyedIn": null, "externallyProvisioned": null, "history": null },
        })
    );
    // The absent fields of a command as well: an older message must not stay.
    let mut open = full(PendingCommandEnd::Open);
    open.power.history.clear();
    let body = write::status_patch_body(&host, &writing(open), &[], None);
    let command = &body["status"]["power"]["command"];
    assert!(
        command["message"].is_null() && command.get("message").is_some(),
        "{command}"
    );
    assert!(
        command["endedAt"].is_null() && command.get("endedAt").is_some(),
        "{command}"
    );
}

#[test]
fn conditions_of_others_stay_as_they_are_and_ours_that_are_not_written_too() {
    let foreign = json!({ "type": "Manageable", "status": "True", "reason": "Manageable", "message": "",
        "observedGeneration": 4, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let ours = json!({ "type": "HeldOff", "status": "False", "reason": "NotHeld", "message": "",
        "lastTransitionTime": "2026-01-02T00:00:00Z" });
    let standing = json!({ "poweredOn": true, "conditions": [foreign, ours] });
    let host = host(&json!({ "online": true }), &standing);
    let writes = [condition("PowerAsWanted", "AsWanted")];
    assert!(
        write::needs_object(&host, &writes),
        "the list is replaced as a whole"
    );
    let object: HostObject = serde_json::from_value(json!({ "status": standing })).unwrap();
    let body = write::status_patch_body(
        &host,
        &writing(HostStatus::default()),
        &writes,
        Some(&object),
    );
    let conditions = body["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[..2], [foreign, ours]);
    assert_eq!(conditions[2]["type"], "PowerAsWanted");
    assert_eq!(conditions.len(), 3);
    // Without conditions to replace, the object is not read.
    assert!(!write::needs_object(&host, &[]));
}

#[test]
fn a_first_status_has_what_metal3_requires_and_a_later_one_leaves_it_alone() {
    let fresh = host(&json!({ "online": true }), &Value::Null);
    assert!(write::needs_object(&fresh, &[]));
    let object: HostObject = serde_json::from_value(json!({})).unwrap();
    let body =
        write::status_patch_body(&fresh, &writing(HostStatus::default()), &[], Some(&object));
    let status = &body["status"];
    assert_eq!(status["operationalStatus"], "OK");
    assert_eq!(status["poweredOn"], true, "never false without a reading");
    assert_eq!(
        (&status["errorCount"], &status["errorMessage"]),
        (&json!(0), &json!(""))
    );
    assert_eq!(
        (
            &status["provisioning"]["ID"],
            &status["provisioning"]["state"]
        ),
        (&json!(""), &json!(""))
    );
    let error = json!({ "status": { "operationalStatus": "error", "provisioning": { "ID": "1", "state": "provisioned" } } });
    let object: HostObject = serde_json::from_value(error).unwrap();
    let body =
        write::status_patch_body(&fresh, &writing(HostStatus::default()), &[], Some(&object));
    assert!(body["status"].get("operationalStatus").is_none());
    assert!(body["status"]["provisioning"].get("ID").is_none());
}

#[test]
fn a_field_that_is_not_there_after_the_write_is_named() {
    let write = writing(full(PendingCommandEnd::Open));
    let conditions = [condition("PowerAsWanted", "AsWanted")];
    let kept = json!({ "poweredOn": false, "provisioning": { "state": "externally provisioned" } });
    let answer = host(&json!({ "online": true }), &kept);
    let dropped = write::dropped_fields(&answer, &write, &conditions);
    assert!(
        [
            "provisioning.lastPoweredOn",
            "power.command",
            "power.offConfirmedAt",
            "conditions"
        ]
        .iter()
        .all(|field| dropped.contains(field)),
        "{dropped:?}"
    );
    assert!(!dropped.contains(&"poweredOn") && !dropped.contains(&"provisioning.state"));
    let whole = host(
        &json!({ "online": true }),
        &Value::Object(status::status_patch(&write.status)),
    );
    assert_eq!(write::dropped_fields(&whole, &write, &[]), [""; 0]);
    // Decisions may have a higher time resolution than the written status.
    let mut finer = write.status.clone();
    finer.power.observed_at = Some(at(5) + jiff::SignedDuration::from_nanos(400));
    assert_eq!(write::dropped_fields(&whole, &writing(finer), &[]), [""; 0]);
}
