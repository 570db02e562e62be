//! Tests the conversion of hosts.

use std::collections::BTreeSet;

use dogwatch_api::annotation::{
    CONFIRMED_OFF, MACHINE_REMEDIATION_KEY, METAL3_REBOOT, NODE_BACKUP,
};
use dogwatch_core::power::{HostConsumer, HostSnapshot, HostStatus, PendingCommandEnd};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{convert_host, host};

/// Each device as text: its address, or what is wrong with it.
fn levels(host: &HostSnapshot) -> Vec<Vec<String>> {
    let shown = |device: &dogwatch_core::power::PowerDevice| match &device.address {
        Ok(address) => format!("{address} {} {}", device.credentials, device.verify),
        Err(bad) => format!("! {bad}"),
    };
    let levels = host.levels.iter();
    levels
        .map(|level| level.devices.iter().map(shown).collect())
        .collect()
}

#[test]
fn the_levels_are_the_bmc_and_then_those_of_power() {
    let pdu = |plug: u8| json!({ "address": format!("fence+fence_apc://p?plug={plug}"), "credentialsName": "pdu" });
    let bmc = json!({ "address": "redfish://192.0.2.1", "credentialsName": "bmc",
        "disableCertificateVerification": true });
    let both = json!({ "levels": [{ "devices": [pdu(1), pdu(2)] }] });
    let whole = host(
        &json!({ "online": true, "bmc": bmc, "power": both }),
        &Value::Null,
    );
    let expected = [
        vec!["redfish://192.0.2.1 bmc false"],
        vec![
            "fence+fence_apc://p?plug=1 pdu true",
            "fence+fence_apc://p?plug=2 pdu true",
        ],
    ];
    assert_eq!(levels(&whole), expected);
    for none in [
        json!({ "online": true }),
        json!({ "online": true, "bmc": null, "power": null }),
        json!({ "online": true, "bmc": { "address": "", "credentialsName": "" } }),
        json!({ "online": false, "bmc": {}, "power": {} }),
    ] {
        assert_eq!(host(&none, &Value::Null).levels, [], "{none}");
    }
}

#[test]
fn what_power_and_remediation_are_about_is_kept_of_the_annotations_and_nothing_else() {
    let names = [
        METAL3_REBOOT,
        MACHINE_REMEDIATION_KEY,
        CONFIRMED_OFF,
        NODE_BACKUP,
        "baremetalhost.metal3.io/paused",
        "baremetalhost.metal3.io/detached",
    ];
    let mut annotations: Map<String, Value> = names
        .map(|name| (name.to_owned(), json!("x")))
        .into_iter()
        .collect();
    annotations.insert("inspect.metal3.io/hardwaredetails".into(), json!("{}"));
    let object = json!({ "metadata": { "name": "h", "annotations": annotations }, "spec": {} });
    let host = convert_host(&serde_json::from_value(object).unwrap());
    let kept: BTreeSet<&str> = host.annotations.keys().map(String::as_str).collect();
    assert_eq!(kept, BTreeSet::from(names));
    assert_eq!(
        CONFIRMED_OFF,
        dogwatch_core::power::CONFIRMED_OFF_ANNOTATION
    );
}

#[test]
fn whose_a_host_is_is_read_and_whoever_cannot_be_read_is_somebody_all_the_same() {
    let consumer = |group: &str, kind: &str, namespace: &str, name: &str| HostConsumer {
        group: group.into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    let reference = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Metal3Machine", "namespace": "site", "name": "m1", "uid": "7" });
    let metal3 = consumer(
        "infrastructure.cluster.x-k8s.io",
        "Metal3Machine",
        "site",
        "m1",
    );
    for (reference, expected) in [
        (Value::Null, None),
        (reference, Some(metal3)),
        (
            json!({ "apiVersion": "v1", "kind": "Pod", "name": "p" }),
            Some(consumer("", "Pod", "", "p")),
        ),
        (json!({}), Some(HostConsumer::default())),
        (json!("text"), Some(HostConsumer::default())),
        (
            json!({ "name": 7, "kind": [] }),
            Some(HostConsumer::default()),
        ),
    ] {
        let spec = json!({ "online": true, "consumerRef": reference });
        assert_eq!(host(&spec, &Value::Null).consumer, expected, "{spec}");
    }
}

/// Specs that no schema would accept, and the reported error. `BMC` is a usable one.
const UNREADABLE: [(&str, &str); 18] = [
    ("null", "spec.online is missing"),
    (r#""text""#, "spec.online is missing"),
    (r#"{"bmc": BMC}"#, "spec.online is missing"),
    (
        r#"{"online": "yes", "bmc": BMC}"#,
        "spec.online is not true or false",
    ),
    (
        r#"{"online": true, "disablePowerOff": 1, "bmc": BMC}"#,
        "spec.disablePowerOff is not true or false",
    ),
    (
        r#"{"online": true, "externallyProvisioned": "x", "bmc": BMC}"#,
        "spec.externallyProvisioned",
    ),
    (
        r#"{"online": true, "bmc": []}"#,
        "spec.bmc is not an object",
    ),
    (
        r#"{"online": true, "bmc": {"address": 7}}"#,
        "spec.bmc.address: it is not text",
    ),
    (
        r#"{"online": true, "bmc": {"credentialsName": "x"}}"#,
        "spec.bmc.address",
    ),
    (
        r#"{"online": true, "bmc": {"address": "", "credentialsName": "x"}}"#,
        "empty",
    ),
    (
        r#"{"online": true, "bmc": {"address": "irmc://h", "credentialsName": "x"}}"#,
        "ipmi://",
    ),
    (
        r#"{"online": true, "bmc": {"address": "ipmi://h", "disableCertificateVerification": "no"}}"#,
        "spec.bmc.disableCertificateVerification",
    ),
    (
        r#"{"online": true, "power": 3}"#,
        "spec.power is not an object",
    ),
    (
        r#"{"online": true, "power": {"levels": {}}}"#,
        "spec.power.levels is not a list",
    ),
    (
        r#"{"online": true, "power": {"levels": [{}]}}"#,
        "spec.power.levels[0].devices",
    ),
    (
        r#"{"online": true, "power": {"levels": ["x"]}}"#,
        "spec.power.levels[0].devices",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": []}]}}"#,
        "levels[0].devices",
    ),
    (
        r#"{"online": true, "power": {"levels": [{"devices": [{"address": "foo://h"}]}]}}"#,
        "spec.power.levels[0].devices[0].address: foo://",
    ),
];

#[test]
fn a_spec_that_cannot_be_read_leaves_no_way_to_the_bmc_and_says_why() {
    const BMC: &str = r#"{"address": "ipmi://192.0.2.1", "credentialsName": "bmc"}"#;
    for (spec, says) in UNREADABLE {
        let spec = serde_json::from_str(&spec.replace("BMC", BMC)).unwrap();
        let shown = levels(&host(&spec, &Value::Null)).concat();
        let is_unusable = |device: &String| device.starts_with("! ");
        assert!(shown.iter().all(is_unusable), "{spec}: {shown:?}");
        assert!(
            shown.iter().any(|device| device.contains(says)),
            "{spec}: {shown:?}"
        );
    }
}

#[test]
fn a_status_that_cannot_be_read_never_makes_the_host_look_safer() {
    for garbage in [
        json!(null),
        json!(3),
        json!([]),
        json!({ "power": "x", "provisioning": [] }),
    ] {
        let read = host(&json!({ "online": true }), &garbage).status;
        assert_eq!(read, HostStatus::default(), "{garbage}");
    }
    let read = host(
        &json!({ "online": true }),
        &json!({
            "poweredOn": "false",
            "provisioning": { "state": "", "pendingRebootSince": "yesterday", "lastPoweredOn": 5 },
            "power": { "state": "off", "offConfirmedAt": "soon", "history": [{}, "x"],
                "command": { "id": 7, "command": "Explode", "end": "Answered", "endedAt": "2026-01-01T00:00:00Z" } },
        }),
    )
    .status;
    assert_eq!(
        (read.powered_on, read.provisioning.as_deref()),
        (None, None)
    );
    // The latest possible time leaves no later one: nothing happens, and the status says so.
    assert_eq!(read.pending_reboot_since, Some(Timestamp::MAX));
    assert_eq!(read.last_powered_on, Some(Timestamp::MAX));
    assert_eq!(
        (read.power.state, read.power.off_confirmed_at),
        (None, None)
    );
    assert!(read.power.history.is_empty());
    let command = read.power.command.unwrap();
    assert!(matches!(command.end, PendingCommandEnd::Unknown { .. }) && command.after_unknown);
    // An answer without a time is ignored.
    let answered = json!({ "power": { "command": { "id": "p/1", "command": "PowerOff", "end": "Answered" } } });
    let command = host(&json!({ "online": true }), &answered)
        .status
        .power
        .command
        .unwrap();
    assert!(
        matches!(command.end, PendingCommandEnd::Unknown { .. }),
        "{command:?}"
    );
}

#[test]
fn only_annotations_about_power_are_kept() {
    let kept = [
        "reboot.metal3.io",
        "reboot.metal3.io/key",
        "baremetalhost.metal3.io/paused",
        "baremetalhost.metal3.io/detached",
        "dogwatch.dev/node",
    ];
    let dropped = [
        "baremetalhost.metal3.io/status",
        "inspect.metal3.io/hardwaredetails",
        "kubectl.kubernetes.io/last-applied-configuration",
    ];
    let annotations: serde_json::Map<_, _> = kept
        .iter()
        .chain(&dropped)
        .map(|name| ((*name).to_owned(), json!("x")))
        .collect();
    let object = json!({ "metadata": { "name": "h", "annotations": annotations } });
    let host = convert_host(&serde_json::from_value(object).unwrap());
    let mut names: Vec<&str> = host.annotations.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut expected = kept.to_vec();
    expected.sort_unstable();
    assert_eq!(names, expected);
}
