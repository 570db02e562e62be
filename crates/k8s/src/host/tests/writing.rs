//! Decisions in, patches out.

use std::time::Duration;

use dogwatch_core::condition::{Observation, Status, Write};
use dogwatch_core::power::{
    Command, Done, End, HostStatus, Intention, PowerStatus, State, StatusWrite,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::object::HostObject;
use super::super::{status, write};
use super::host;

fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(1_790_000_000_000_000 + microseconds).unwrap()
}

fn command(end: End) -> Intention {
    Intention {
        id: "p/1".into(),
        command: Command::SoftOff,
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

fn full(end: End) -> HostStatus {
    HostStatus {
        powered_on: Some(false),
        operational: None,
        provisioning: Some("externally provisioned".into()),
        last_powered_on: Some(at(1)),
        pending_reboot_since: Some(at(2)),
        power: PowerStatus {
            state: Some(State::Off),
            observed_at: Some(at(5)),
            off_confirmed_at: Some(at(6)),
            confirmed_for: vec!["reboot.metal3.io/k=1".into()],
            command: Some(command(end)),
            obeyed_in: Some("provisioned".into()),
            externally_provisioned: Some(true),
            history: vec![Done {
                what: Command::Off,
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
        End::Open,
        End::Answered { at },
        End::Failed {
            at,
            message: message.clone(),
        },
        End::Unknown { at, message },
    ] {
        let written = status::written(&full(end.clone()));
        assert_eq!(
            host(&json!({ "online": true }), &Value::Object(written)).status,
            full(end)
        );
    }
}

#[test]
fn the_schema_knows_every_field_that_is_written() {
    let crd = dogwatch_api::bare_metal_host::crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let end = End::Failed {
        at: at(9),
        message: "x".into(),
    };
    let written = Value::Object(status::written(&full(end)));
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

fn condition(kind: &'static str, reason: &str) -> Write {
    Write {
        observation: Observation {
            kind,
            status: Status::True,
            reason: reason.into(),
            message: "m".into(),
            heartbeat: false,
        },
        last_transition: at(0),
    }
}

#[test]
fn every_write_names_the_incarnation_and_the_version_it_was_made_for() {
    let host = host(&json!({ "online": true }), &json!({ "poweredOn": true }));
    let body = write::patch(&host, &writing(full(End::Open)), &[], None);
    let expected = json!({ "uid": "u", "resourceVersion": "7" });
    assert_eq!(body["metadata"], expected);
    assert_eq!(write::precondition(&host), expected);
}

#[test]
fn what_is_absent_is_said_to_be_absent() {
    let host = host(&json!({ "online": true }), &json!({ "poweredOn": true }));
    let body = write::patch(&host, &writing(HostStatus::default()), &[], None);
    assert_eq!(
        body["status"],
        json!({
            "provisioning": { "lastPoweredOn": null, "pendingRebootSince": null },
            "power": { "state": null, "observedAt": null, "offConfirmedAt": null, "confirmedFor": null,
                "command": null, "obeyedIn": null, "externallyProvisioned": null, "history": null },
        })
    );
    // A command's own absent parts as well: an older message must not stay.
    let mut open = full(End::Open);
    open.power.history.clear();
    let body = write::patch(&host, &writing(open), &[], None);
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
    let body = write::patch(
        &host,
        &writing(HostStatus::default()),
        &writes,
        Some(&object),
    );
    let conditions = body["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[..2], [foreign, ours]);
    assert_eq!(conditions[2]["type"], "PowerAsWanted");
    assert_eq!(conditions.len(), 3);
    // Nothing to replace: nothing to read.
    assert!(!write::needs_object(&host, &[]));
}

#[test]
fn a_first_status_has_what_metal3_requires_and_a_later_one_leaves_it_alone() {
    let fresh = host(&json!({ "online": true }), &Value::Null);
    assert!(write::needs_object(&fresh, &[]));
    let object: HostObject = serde_json::from_value(json!({})).unwrap();
    let body = write::patch(&fresh, &writing(HostStatus::default()), &[], Some(&object));
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
    let body = write::patch(&fresh, &writing(HostStatus::default()), &[], Some(&object));
    assert!(body["status"].get("operationalStatus").is_none());
    assert!(body["status"]["provisioning"].get("ID").is_none());
}

#[test]
fn a_field_that_is_not_there_after_the_write_is_named() {
    let write = writing(full(End::Open));
    let conditions = [condition("PowerAsWanted", "AsWanted")];
    let kept = json!({ "poweredOn": false, "provisioning": { "state": "externally provisioned" } });
    let answer = host(&json!({ "online": true }), &kept);
    let dropped = write::dropped(&answer, &write, &conditions);
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
        &Value::Object(status::written(&write.status)),
    );
    assert_eq!(write::dropped(&whole, &write, &[]), [""; 0]);
    // Decisions may be finer than what is written.
    let mut finer = write.status.clone();
    finer.power.observed_at = Some(at(5) + jiff::SignedDuration::from_nanos(400));
    assert_eq!(write::dropped(&whole, &writing(finer), &[]), [""; 0]);
}
