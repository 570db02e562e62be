//! What a real API server makes of the kind BareMetalHost: bad input is refused with the field named and
//! a word on what to write, metal3's own objects are taken and keep what they have, and tables say what
//! people look for.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use dogwatch_api::bare_metal_host::crd;
use dogwatch_k8s::host::{HostObject, convert};
use dogwatch_testbed::ControlPlane;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts";

/// A client of a server that has the kind.
async fn client() -> Client {
    static SERVED: OnceCell<()> = OnceCell::const_new();
    let plane = dogwatch_testbed::shared().await;
    SERVED.get_or_init(|| install(plane)).await;
    let kubeconfig = kube::config::Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

async fn install(plane: &ControlPlane) {
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.run_kubectl(&apply, &crd().to_string()).await.unwrap();
    let established = [
        "wait",
        "--for=condition=established",
        "--timeout=180s",
        "crd/baremetalhosts.metal3.io",
    ];
    plane.run_kubectl(&established, "").await.unwrap();
    // A new kind answers 429 until its storage is there; kubectl waits for it.
    plane.run_kubectl(&["get", "bmh"], "").await.unwrap();
}

/// Asks whether it would be taken; nothing is stored. What is unknown is refused as kubectl has it.
async fn admitted(client: &Client, spec: &Value) -> Result<Value, String> {
    let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "h" }, "spec": spec });
    let path = format!("{HOSTS}?dryRun=All&fieldValidation=Strict");
    send(client, "POST", &path, &host).await
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let kind = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", kind);
    let request = request.body(body.to_string().into_bytes()).unwrap();
    match client.request(request).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

/// Spec, the field that is named, and what is said.
const REFUSED: [(&str, &str, &str); 21] = [
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
    let (mut wrong, mut said) = (Vec::new(), String::new());
    for (spec, field, says) in REFUSED {
        match admitted(&client, &serde_json::from_str(spec).unwrap()).await {
            Err(message) if message.contains(field) && message.contains(says) => said += &message,
            Err(message) => wrong.push(format!("{spec} says: {message}")),
            Ok(_) => wrong.push(format!("{spec} is taken")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let spec = &crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let unsaid: Vec<&str> = messages(spec)
        .into_iter()
        .filter(|message| !said.contains(message))
        .collect();
    assert!(unsaid.is_empty(), "no case above breaks: {unsaid:?}");
}

/// What the rules say, wherever they stand in a schema.
fn messages(schema: &Value) -> Vec<&str> {
    let own = schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten();
    let mut found: Vec<&str> = own.filter_map(|rule| rule["message"].as_str()).collect();
    let properties = schema["properties"].as_object().into_iter();
    let properties = properties.flat_map(|parts| parts.values());
    for part in properties.chain(schema.get("items")) {
        found.extend(messages(part));
    }
    found
}

/// As people write them for metal3; the last ones are what the condition speaks of, not the schema.
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
        let taken = admitted(&client, &spec).await.unwrap();
        assert_eq!(taken["spec"], spec);
        let object: HostObject = serde_json::from_value(taken).unwrap();
        let host = convert(&object);
        assert_eq!(Value::Bool(host.online), spec["online"]);
    }
}

/// Every field of a status.
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
    let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "table" }, "spec": { "online": true,
            "consumerRef": { "name": "machine-7" },
            "bmc": { "address": "ipmi://192.0.2.1", "credentialsName": "bmc" } } });
    send(&client, "POST", HOSTS, &host).await.unwrap();
    let status = whole_status();
    let path = format!("{HOSTS}/table/status?fieldValidation=Strict");
    let taken = send(&client, "PATCH", &path, &json!({ "status": status }))
        .await
        .unwrap();
    assert_eq!(taken["status"], status);
    let plane = dogwatch_testbed::shared().await;
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
        let refused = send(&client, "PATCH", &path, &json!({ "status": garbage }))
            .await
            .unwrap_err();
        assert!(refused.contains(field), "{refused}");
    }
}
