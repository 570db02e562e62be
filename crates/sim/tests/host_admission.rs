//! The kind BareMetalHost on a real API server: bad input is refused with the field and a
//! correction, metal3's own objects are accepted and keep their fields, and tables show the useful
//! columns.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_api::bare_metal_host::host_crd;
use dogwatch_k8s::host::{HostObject, convert_host};
use kube::Client;
use serde_json::{Value, json};
use support::admission::{Kind, Refused};
use tokio::sync::OnceCell;

const HOSTS: Kind = Kind {
    api: ("metal3.io/v1alpha1", "BareMetalHost"),
    path: "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts",
};

/// A client of a server with the kind.
async fn client() -> Client {
    static SERVED: OnceCell<()> = OnceCell::const_new();
    let install = async || HOSTS.install(&host_crd()).await;
    SERVED.get_or_init(install).await;
    support::real::client().await
}

const REFUSED: [Refused; 21] = [
    ("{}", "spec.online", "Required"),
    (r#"{"online": "yes"}"#, "spec.online", "boolean"),
    (
        r#"{"online": false, "disablePowerOff": true}"#,
        "spec.disablePowerOff",
        "set online to true",
    ),
    (
        r#"{"online": true, "bmc": {"address": "ipmi://h"}}"#,
        "spec.bmc.credentialsName",
        "Required",
    ),
    (
        r#"{"online": true, "bmc": {"credentialsName": "x"}}"#,
        "spec.bmc.address",
        "Required",
    ),
    (
        r#"{"online": true, "bmc": {"address": "ipmi://h", "credentialsName": ""}}"#,
        "spec.bmc",
        "credentialsName must name the Secret",
    ),
    (
        r#"{"online": true, "bmc": {"address": "ipmi://root:x@h", "credentialsName": "x"}}"#,
        "spec.bmc.address",
        "leave user and password out",
    ),
    (
        r#"{"online": true, "bmc": {"address": "ipmi://h ", "credentialsName": "x"}}"#,
        "spec.bmc.address",
        "leave blanks out",
    ),
    (
        r#"{"online": true, "bmc": {"address": 7, "credentialsName": "x"}}"#,
        "spec.bmc.address",
        "string",
    ),
    (
        r#"{"online": true, "bmc": {"address": "ipmi://h", "credentialsName": "x", "disableCertificateVerification": "no"}}"#,
        "spec.bmc.disableCertificateVerification",
        "boolean",
    ),
    (
        r#"{"online": true, "power": {}}"#,
        "spec.power.levels",
        "Required",
    ),
    (
        r#"{"online": true, "power": {"levels": []}}"#,
        "spec.power.levels",
        "at least 1",
    ),
    (
        r#"{"online": true, "power": {"level": []}}"#,
        "spec.power.level",
        "unknown field",
    ),
    (
        r#"{"online": true, "power": {"levels": [{}]}}"#,
        "spec.power.levels[0].devices",
        "Required",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": []}]}}"#,
        "spec.power.levels[0].devices",
        "at least 1",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": [{"address": "", "credentialsName": "x"}]}]}}"#,
        "spec.power.levels[0].devices[0].address",
        "at least 1 char",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": [{"address": "fence+fence_apc://h", "credentialsName": ""}]}]}}"#,
        "spec.power.levels[0].devices[0].credentialsName",
        "at least 1 char",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": [{"address": "fence+fence_apc://a:b@h", "credentialsName": "x"}]}]}}"#,
        "spec.power.levels[0].devices[0].address",
        "leave user and password out",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": [{"addres": "x"}]}]}}"#,
        "spec.power.levels[0].devices[0].addres",
        "unknown field",
    ),
    (
        r#"{"online": true, "consumerRef": {"names": "x"}}"#,
        "spec.consumerRef.names",
        "unknown field",
    ),
    (
        r#"{"online": true, "externallyProvisioned": "x"}"#,
        "spec.externallyProvisioned",
        "boolean",
    ),
];

#[tokio::test]
async fn bad_input_is_refused_with_the_field_named_and_what_to_write() {
    let client = client().await;
    HOSTS.refuses(&client, "h", &REFUSED, &host_crd()).await;
}

/// Hosts as people write them for metal3; the schema accepts the last ones too, and only the
/// condition reports their errors.
#[tokio::test]
async fn what_metal3_takes_is_taken_and_keeps_what_it_has() {
    let client = client().await;
    let image = json!({ "url": "http://192.0.2.9/image", "checksum": "auto", "format": "raw" });
    for spec in [
        json!({ "online": true }),
        json!({ "online": true, "bmc": { "address": "", "credentialsName": "" } }),
        json!({ "online": false, "bootMACAddress": "00:11:22:33:44:55", "bootMode": "UEFI",
            "bmc": { "address": "redfish-virtualmedia+http://192.0.2.1/redfish/v1/Systems/1",
                "credentialsName": "bmc", "disableCertificateVerification": true } }),
        json!({ "online": true, "image": image, "userData": { "name": "u", "namespace": "default" },
            "rootDeviceHints": { "deviceName": "/dev/vda" }, "automatedCleaningMode": "disabled",
            "consumerRef": { "apiVersion": "v1", "kind": "Machine", "name": "m", "namespace": "default" },
            "taints": [{ "key": "a", "effect": "NoSchedule" }], "externallyProvisioned": true,
            "disablePowerOff": true, "description": "rack 4" }),
        json!({ "online": true, "bmc": { "address": "ilo4://h", "credentialsName": "bmc" } }),
        json!({ "online": true, "bmc": { "address": "irmc://h", "credentialsName": "bmc" },
            "power": { "levels": [{ "devices": [
                { "address": "fence+fence_apc://pdu?plug=3", "credentialsName": "pdu" }] }] } }),
    ] {
        let taken = HOSTS.admitted(&client, "h", &spec).await.unwrap();
        assert_eq!(taken["spec"], spec);
        let object: HostObject = serde_json::from_value(taken).unwrap();
        let host = convert_host(&object);
        assert_eq!(Value::Bool(host.online), spec["online"]);
    }
}

/// A status with every field.
fn whole_status() -> Value {
    let time = "2026-01-01T00:00:00.000001Z";
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({ "type": kind, "status": status, "reason": reason,
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    json!({
        "poweredOn": false, "operationalStatus": "OK", "errorCount": 0, "errorMessage": "",
        "hardware": { "hostname": "h" },
        "provisioning": { "ID": "", "state": "externally provisioned", "lastPoweredOn": time,
            "pendingRebootSince": time },
        "power": { "state": "Off", "observedAt": time, "offConfirmedAt": time, "confirmedFor": ["k=1"],
            "obeyedIn": "externally provisioned", "externallyProvisioned": true,
            "command": { "id": "p/1", "command": "PowerOff", "level": 0, "target": "t", "since": time,
                "at": time, "attempt": 1, "before": 0, "afterUnknown": false, "why": "HeldOff",
                "end": "Answered", "endedAt": time },
            "history": [{ "what": "PowerOff", "why": "HeldOff", "at": time, "outcome": "PoweredOff",
                "took": "4.2s", "attempts": 1 }] },
        "conditions": [condition("HeldOff", "True", "HeldOff"), condition("PowerAsWanted", "True", "AsWanted"),
            condition("PowerControlReady", "False", "Unreachable")],
    })
}

#[tokio::test]
async fn a_status_is_taken_whole_with_its_microseconds_and_shown_in_the_table() {
    let client = client().await;
    let spec = json!({ "online": true, "consumerRef": { "name": "machine-7" },
        "bmc": { "address": "ipmi://192.0.2.1", "credentialsName": "bmc" } });
    let host = HOSTS.object("table", &spec);
    HOSTS.send(&client, "POST", "", &host).await.unwrap();
    let status = whole_status();
    let path = "/table/status?fieldValidation=Strict";
    let change = json!({ "status": status });
    let taken = HOSTS.send(&client, "PATCH", path, &change).await.unwrap();
    assert_eq!(taken["status"], status);
    let plane = dogwatch_testbed::shared_control_plane().await;
    let table = plane
        .run_kubectl(&["get", "bmhost", "table", "-o", "wide"], "")
        .await
        .unwrap();
    for shown in [
        "machine-7",
        "externally provisioned",
        "Off",
        "AsWanted",
        "ipmi://192.0.2.1",
    ] {
        assert!(table.contains(shown), "{shown}: {table}");
    }
    for (garbage, field) in [
        (
            json!({ "power": { "state": "Sleeping" } }),
            "status.power.state",
        ),
        (
            json!({ "power": { "command": { "command": "Reset" } } }),
            "status.power.command.command",
        ),
        (
            json!({ "provisioning": { "lastPoweredOn": "yesterday" } }),
            "lastPoweredOn",
        ),
        (json!({ "poweredOn": "no" }), "status.poweredOn"),
    ] {
        let change = json!({ "status": garbage });
        let answer = HOSTS.send(&client, "PATCH", path, &change).await;
        let refused = answer.unwrap_err();
        assert!(refused.contains(field), "{refused}");
    }
}
